"""The words that queries and learners share: variables, families, choices of records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

# Controls but the tab; characters that end lines or turn directions.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Variable:
    """A categorical variable.

    Parameters
    ----------
    name : str
    states : tuple of str
        In declared order, which is the order of codes and of axes everywhere.
    missing : bool, default=False
        Whether cells may be missing: their code is ``len(states)``.

    Raises
    ------
    ValueError
        If two states have one name.
    """

    name: str
    states: tuple[str, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        if len(set(self.states)) < len(self.states):
            raise ValueError(f"variable {self.name!r} has a state twice")

    def check_printable(self) -> None:
        """Refuse names that would do something to the terminals of others, to whom they come.

        Raises
        ------
        ValueError
            It names the variable, and the state.
        """
        for text in (self.name, *self.states):
            if _CONTROL.search(text):
                raise ValueError(f"variable {self.name!r}: {text!r} has control characters")

    @property
    def codes(self) -> int:
        """The number of codes: states, and one for missing."""
        return len(self.states) + self.missing


class Family(NamedTuple):
    """A child with its parents, in order.

    Families that agree in all but the last parent share an extension (`mpc.masked_tables`).
    """

    child: str
    parents: tuple[str, ...] = ()

    @property
    def members(self) -> tuple[str, ...]:
        """The child, then the parents: the axes of the family's table."""
        return (self.child, *self.parents)


class Rows(NamedTuple):
    """The records at places [first, last) of a permutation that the sites draw jointly.

    Parameters
    ----------
    seed : int, default=0
        Which of the permutations: a site that works with the analyst knows them, and can look for
        one in which it knows all but one of some records side by side.
    first, last : int
        The places; ``Rows()`` is all records.
    """

    seed: int = 0
    first: int = 0
    last: int | None = None

    def count(self, records: int) -> int:
        """Return how many of `records` records are chosen.

        Raises
        ------
        ValueError
            If the places do not lie within the records.
        """
        last = records if self.last is None else self.last
        if not 0 <= self.first <= last <= records or not 0 <= self.seed < 2**63:
            raise ValueError(f"{self} does not lie within {records} records")
        return last - self.first
