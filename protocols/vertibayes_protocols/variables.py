"""Variables, families and choices of records, which queries and learners share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

# Control characters except the tab; characters that end a line or change the text direction.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def is_printable(text: str) -> bool:
    """Whether a text has no control characters, which would act on terminals."""
    return not _CONTROL.search(text)


def for_terminals(text: str) -> str:
    """Return a text of several lines with a question mark for each control character."""
    return "\n".join(_CONTROL.sub("?", line) for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class Variable:
    """A categorical variable.

    Parameters
    ----------
    name : str
        The name of the variable's column.
    states : tuple of str
        The states in the declared order, which is the order of codes and axes everywhere.
    missing : bool, default=False
        Whether values may be missing: their code is ``len(states)``.

    Raises
    ------
    ValueError
        If two states have the same name.

    Examples
    --------
    >>> smoker = Variable("smoker", ("no", "yes"), missing=True)
    >>> smoker.codes
    3
    """

    name: str
    states: tuple[str, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        if len(set(self.states)) < len(self.states):
            raise ValueError(f"variable {self.name!r}: a state appears twice; name each state once")

    def check_printable(self) -> None:
        """Refuse names whose control characters would act on the terminals of other parties.

        Raises
        ------
        ValueError
            If the name of the variable or of a state has a control character.
        """
        for text in (self.name, *self.states):
            if not is_printable(text):
                raise ValueError(
                    f"variable {self.name!r}: {text!r} has control characters; correct it, or "
                    "exclude the variable"
                )

    @property
    def codes(self) -> int:
        """The number of codes: one per state, and one for missing values."""
        return len(self.states) + self.missing


def axis_lengths(variables: Mapping[str, Variable], missing: bool) -> dict[str, int]:
    """Return the length of each variable's axis in a table.

    Examples
    --------
    >>> smoker = Variable("smoker", ("no", "yes"), missing=True)
    >>> axis_lengths({"smoker": smoker}, missing=True)
    {'smoker': 3}
    """
    return {name: v.codes if missing else len(v.states) for name, v in variables.items()}


class Family(NamedTuple):
    """A child with its parents, in order.

    Families that differ only in the last parent share an extension
    (`vertibayes_mpc.masked_tables`).

    Parameters
    ----------
    child : str
        The name of a variable.
    parents : tuple of str, default=()
        The names of its parents.

    Examples
    --------
    >>> Family("cancer", ("smoker", "age")).members
    ('cancer', 'smoker', 'age')
    """

    child: str
    parents: tuple[str, ...] = ()

    @property
    def members(self) -> tuple[str, ...]:
        """The child, then the parents: the axes of the family's table."""
        return (self.child, *self.parents)


class Rows(NamedTuple):
    """The records at places [first, last) of a permutation that the sites draw jointly.

    A site that works with the analyst knows the permutations. It can look for one that puts a
    record that it does not know beside records that it knows.

    Parameters
    ----------
    seed : int, default=0
        The number of the permutation.
    first, last : int
        The places; ``Rows()`` is all records.

    Examples
    --------
    >>> Rows(first=100).count(records=1000), Rows().count(records=1000)
    (900, 1000)
    """

    seed: int = 0
    first: int = 0
    last: int | None = None

    @property
    def whole(self) -> Rows:
        """The same records, in integers of Python where they were given in those of numpy."""
        last = None if self.last is None else index(self.last)
        return Rows(index(self.seed), index(self.first), last)

    def count(self, records: int) -> int:
        """Return the number of chosen records, of `records` in all.

        Raises
        ------
        ValueError
            If the places do not lie within the records.
        """
        last = records if self.last is None else self.last
        if not 0 <= self.first <= last <= records or not 0 <= self.seed < 2**63:
            raise ValueError(f"{self} does not lie within {records} records")
        return last - self.first
