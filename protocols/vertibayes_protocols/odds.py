"""Log odds: what the analyst asks of records that lie at several sites, as sums of table rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import label
from vertibayes_protocols.wire import Most

MOST_FRACTION_BITS = 40
MOST_TABLES = 10_000


class OddsTable(NamedTuple):
    """What the values of some variables add to the log odds of a target's states.

    Parameters
    ----------
    variables : tuple of str
        The axes, in order.
    numbers : ndarray of shape (codes of each variable, states - 1), dtype int64
        What is added to ``ln P(state) - ln P(first state)`` for each other state, as a multiple of
        ``2**-fraction_bits``; the last code of a variable that may be missing is a missing value.
    """

    variables: tuple[str, ...]
    numbers: NDArray[np.int64]

    @property
    def flat(self) -> NDArray[np.int64]:
        """The numbers, a row for each joint code: shape (rows, states - 1)."""
        return self.numbers.reshape(-1, self.numbers.shape[-1])


@dataclass(frozen=True)
class Odds:
    """The log odds of a target's states, as a sum over tables.

    Parameters
    ----------
    target : str
        The variable that is predicted.
    states : tuple of str
        Its states: two or more.
    tables : tuple of OddsTable
        One or more.
    fraction_bits : int
        As of `OddsTable`; from 0 to 40.

    Raises
    ------
    ValueError
        If the tables do not fit the states, or their numbers could overflow 63 bits in sum.
    """

    target: str
    states: tuple[str, ...]
    tables: tuple[OddsTable, ...] = field(repr=False)
    fraction_bits: int = MOST_FRACTION_BITS

    def __post_init__(self) -> None:
        check_states(self.target, self.states, self.fraction_bits)
        columns = len(self.states) - 1
        if not self.tables or any(t.numbers.shape[-1] != columns for t in self.tables):
            raise ValueError(f"log odds must have one table or more, each of {columns} columns")
        reach = sum(int(np.abs(table.numbers).max(initial=0)) for table in self.tables)
        if reach >= 1 << 62:
            raise ValueError("the sums of the tables' numbers must stay below 2**62")

    @property
    def shape(self) -> OddsShape:
        """What all parties may know of them: everything but the numbers."""
        tables = tuple(table.variables for table in self.tables)
        digest = digest_of([table.flat for table in self.tables])
        return OddsShape(self.target, self.states, tables, digest, self.fraction_bits)


@dataclass(frozen=True, slots=True)
class OddsShape:
    """Log odds without the numbers of their tables.

    Parameters
    ----------
    target, states, fraction_bits
        As of `Odds`; the target need not be a variable of a study.
    tables : tuple of tuple of str
        The axes of each table.
    digest : bytes
        Of the numbers of all tables, so that all sites look up the same.

    Raises
    ------
    ValueError
        If the tables do not fit the target.
    """

    target: str
    states: tuple[str, ...]
    tables: Annotated[tuple[tuple[str, ...], ...], Most(MOST_TABLES)]
    digest: bytes
    fraction_bits: int

    def __post_init__(self) -> None:
        check_states(self.target, self.states, self.fraction_bits)
        if not self.tables or not all(self.tables):
            raise ValueError("a prediction must have tables, each with an axis")
        if self.target in self.variables:
            raise ValueError(f"the target {self.target!r} cannot be a variable of the tables")

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the tables, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self.tables)))


def check_states(target: str, states: Sequence[str], fraction_bits: int) -> None:
    """Refuse a target of fewer than two states, or numbers too fine, with a ValueError."""
    if len(set(states)) < len(states) or len(states) < 2:
        raise ValueError(f"the target {target!r} must have two states or more, each once")
    if not 0 <= fraction_bits <= MOST_FRACTION_BITS:
        raise ValueError(
            f"fraction_bits must be from 0 to {MOST_FRACTION_BITS}, got {fraction_bits}"
        )


def digest_of(tables: Sequence[NDArray[np.int64]]) -> bytes:
    """Return the digest of the numbers of tables."""
    return label("odds", *(np.ascontiguousarray(table, "<i8").tobytes() for table in tables))
