"""What the report reads of a counter of released tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from protocols.release import FamilyTables
from protocols.variables import Variable
from vertibayes.counting import Table


class Released(Protocol):
    """Released tables: a `ReleasedCounter` is one."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the study's order."""
        ...

    @property
    def records(self) -> int:
        """The public number of records."""
        ...

    @property
    def request(self) -> FamilyTables:
        """The families of the tables, and the rule."""
        ...

    @property
    def released(self) -> Sequence[Table]:
        """One table a family, as released: may be negative with noise."""
        ...
