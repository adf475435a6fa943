"""The protocol `Counter`, and the checks and sizes that all counters share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.words import offered
from vertibayes_protocols.variables import Family, Rows, Variable, axis_lengths

Table: TypeAlias = NDArray[np.int64]

MOST_CELLS = 10_000_000  # of one table
CELLS_AT_A_TIME = 1 << 22  # of the tables that a learner holds at once: 32 MiB


class Source(Protocol):
    """What counters and choosers say of a study."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the study's order."""
        ...

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def most_variables(self) -> int | None:
        """How many variables a family may have; None if that is not limited."""
        ...


class Counter(Source, Protocol):
    """Counts over all records."""

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families.

        Parameters
        ----------
        families : sequence of Family
        missing : bool, default=False
            False counts the records that are complete in the family. True appends a last index,
            "missing", to each axis whose variable has missing cells.
        rows : Rows, default=Rows()
            Over which records; all by default.

        Returns
        -------
        tables : list of ndarray, dtype int64, C-contiguous
            One a family, in order; axis 0 the child, then the parents as given, each axis in the
            order of `Variable.states`.

        Raises
        ------
        ValueError
            If a variable is unknown or appears twice in a family, or a table has too many cells.
        """
        ...

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted, before any of them is.

        Raises
        ------
        ValueError
            As `tables`; also if a table would take more memory than a party allows.
        """
        ...


def cells_of(lengths: Mapping[str, int], family: Family) -> int:
    """Return the number of cells of a family's table."""
    return prod(map(lengths.__getitem__, family.members))


def margin(table: Table, members: Sequence[str], names: Sequence[str]) -> Table:
    """Return the margin of some variables of a table, with the axes in their order."""
    others = tuple(axis for axis, name in enumerate(members) if name not in names)
    kept = [name for name in members if name in names]
    return np.asarray(table.sum(axis=others).transpose([kept.index(name) for name in names]))


def portions(lengths: Mapping[str, int], families: Sequence[Family]) -> Iterator[list[Family]]:
    """Cut families into portions whose tables can be held in memory at once, one at least."""
    portion: list[Family] = []
    held = 0
    for family in families:
        cells = cells_of(lengths, family)
        if portion and held + cells > CELLS_AT_A_TIME:
            yield portion
            portion, held = [], 0
        portion.append(family)
        held += cells
    if portion:
        yield portion


def check_families(
    variables: Mapping[str, Variable], families: Sequence[Family], missing: bool
) -> None:
    """Refuse families that cannot be counted."""
    lengths = axis_lengths(variables, missing)
    for family in families:
        for name in family.members:
            if name not in variables:
                raise ValueError(f"no variable {name!r}; known are {offered(name, variables)}")
        if len(set(family.members)) < len(family.members):
            raise ValueError(f"a variable appears twice in the family {family.members}")
        cells = cells_of(lengths, family)
        if cells > MOST_CELLS:
            raise ValueError(
                f"the table of {', '.join(family.members)} has {cells} cells; a table may have at "
                f"most {MOST_CELLS}: choose fewer parents"
            )


class Without:
    """A counter of all records but some: counts are additive, so it takes a difference."""

    def __init__(self, counter: Counter, rows: Rows) -> None:
        self._counter, self._rows = counter, rows
        self.variables, self.most_variables = counter.variables, counter.most_variables
        self.records = counter.records - rows.count(counter.records)

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families over all records but those left out; see `Counter.tables`."""
        if rows != Rows():
            raise ValueError("rows cannot be chosen among those of a difference")
        everything = self._counter.tables(families, missing=missing)
        some = self._counter.tables(families, missing=missing, rows=self._rows)
        return [a - b for a, b in zip(everything, some, strict=True)]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted; see `Counter.check`."""
        self._counter.check(families, missing=missing)
