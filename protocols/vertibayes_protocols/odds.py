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
    """What the values of some variables add to the log odds of a target's states."""

    variables: tuple[str, ...]  # the axes, in order
    numbers: NDArray[np.int64]

    @property
    def flat(self) -> NDArray[np.int64]:
        """The numbers, a row for each joint code: shape (rows, states - 1)."""
        return self.numbers.reshape(-1, self.numbers.shape[-1])


@dataclass(frozen=True)
class Odds:
    """The log odds of a target's states, as a sum over tables."""

    target: str  # the variable that is predicted
    states: tuple[str, ...]  # its states: two or more
    tables: tuple[OddsTable, ...] = field(repr=False)  # one or more
    fraction_bits: int = MOST_FRACTION_BITS  # as of `OddsTable`; from 0 to 40

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
    """Log odds without the numbers of their tables."""

    # As of `Odds`; the target need not be a variable of a study.
    target: str
    states: tuple[str, ...]
    tables: Annotated[tuple[tuple[str, ...], ...], Most(MOST_TABLES)]  # the axes of each table
    digest: bytes  # of the numbers of all tables, so that all sites look up the same
    fraction_bits: int  # as of `Odds`; the target need not be a variable of a study

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
