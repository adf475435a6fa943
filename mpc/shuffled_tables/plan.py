"""From tables asked to chains of holders: who shuffles what, in which ring, in which order.

Pure public combinatorics: every party makes the same plan from the same query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from mpc.commitments import Commitments, Selection
from mpc.randomness import label
from mpc.ring import Ring
from mpc.rounds import Party


@dataclass(frozen=True)
class ShuffledTable:
    """What all parties know of one table.

    Parameters
    ----------
    number : int
        Its place in the query: labels name it.
    members : tuple of int
        The places of its operands; its axes, in order.
    chain : tuple of Party
        The holders, in the order in which they shuffle.
    shape : tuple of int
    gaps : tuple of int
        The members whose missing values are not counted.
    ring : Ring
        The smallest that holds its cells: who lies has no room for tags beside the codes.
    """

    number: int
    members: tuple[int, ...]
    chain: tuple[Party, ...]
    shape: tuple[int, ...]
    gaps: tuple[int, ...]
    ring: Ring

    @property
    def cells(self) -> int:
        """The number of its cells."""
        return prod(self.shape)

    @property
    def strides(self) -> list[int]:
        """What a step along each axis adds to a joint code."""
        return [prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]

    @property
    def is_local(self) -> bool:
        """Whether one site holds all of it, and counts it by itself."""
        return len(self.chain) == 1


@dataclass(frozen=True)
class ShufflePlan:
    """All that the parties do to count tables by shuffle in one query.

    Parameters
    ----------
    commitments : Commitments
    families : tuple of tuple of int
        Of each table the places of its operands, in the order of its axes.
    selection : Selection
    missing : bool
        Whether a missing value is a state: else records that miss one are not counted.
    number : int
        Of the query, ascending: masks and orders are for one query.

    Raises
    ------
    ValueError
        If an operand is unknown or appears twice in a table, or a table has too many cells.
    """

    commitments: Commitments
    families: tuple[tuple[int, ...], ...]
    selection: Selection
    missing: bool = False
    number: int = 0

    def __post_init__(self) -> None:
        known = range(len(self.commitments.operands))
        for members in self.families:
            if not all(i in known for i in members):
                raise ValueError(f"an operand of {members} was not committed")
            if not members or len(set(members)) < len(members):
                raise ValueError(f"a table must have operands, each once, got {members}")
        limit = self.commitments.code_ring
        for table in self.tables:
            if table.ring.bits > limit.bits:
                raise ValueError(
                    f"a table has {table.cells} cells; at most 2**{limit.bits} can be shuffled"
                )

    @cached_property
    def tables(self) -> tuple[ShuffledTable, ...]:
        """The tables, in the order asked."""
        return tuple(self._table(i, members) for i, members in enumerate(self.families))

    def _table(self, number: int, members: tuple[int, ...]) -> ShuffledTable:
        operands = [self.commitments.operands[i] for i in members]
        holders = sorted({holder for operand in operands for holder in operand.holders})
        first = number % len(holders)  # the first and the last do more: each in turn
        hides = [operand.missing and not self.missing for operand in operands]
        shape = tuple(o.width + 1 - hidden for o, hidden in zip(operands, hides, strict=True))
        gaps = tuple(place for place, hidden in zip(members, hides, strict=True) if hidden)
        ring = Ring(max(prod(shape) - 1, 1).bit_length())
        chain = (*holders[first:], *holders[:first])
        return ShuffledTable(number, members, chain, shape, gaps, ring)

    @cached_property
    def shuffled(self) -> tuple[ShuffledTable, ...]:
        """The tables of several holders."""
        return tuple(table for table in self.tables if not table.is_local)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that take part, sorted."""
        return tuple(sorted({site for table in self.tables for site in table.chain}))

    @property
    def longest(self) -> int:
        """The number of sites in the longest chain."""
        return max((len(table.chain) for table in self.tables), default=0)

    @property
    def with_gaps(self) -> tuple[ShuffledTable, ...]:
        """The tables of several holders in which records drop out."""
        return tuple(table for table in self.shuffled if table.gaps)

    @property
    def rounds(self) -> int:
        """Rounds of the query, at most: noise, the chain, tags, the opening."""
        return self.longest + 2 * bool(self.with_gaps)

    def rings(self, table: ShuffledTable) -> tuple[Ring, ...]:
        """Return the rings of what travels along a table's chain: codes, and tags if any."""
        return (table.ring, self.commitments.flag_ring) if table.gaps else (table.ring,)

    @cached_property
    def name(self) -> bytes:
        """A digest of all that is asked: part of every label but those of committed columns."""
        parts: list[bytes | int] = [
            self.commitments.context,
            self.number,
            self.selection.name,
            int(self.missing),
        ]
        for members in self.families:
            parts += [len(members), *members]
        return label("shuffled tables", *parts)
