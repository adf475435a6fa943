"""From a query to chains of holders: who shuffles what, in which ring, in which order.

Every party makes the same plan from the same public query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from vertibayes_mpc.commitments import Commitments, Selection
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party


@dataclass(frozen=True)
class ShuffledTable:
    """What all parties know of one table.

    Parameters
    ----------
    index : int
        Its place in the query: part of its labels.
    members : tuple of int
        The places of its operands, in the order of its axes.
    chain : tuple of Party
        The holders, in the order in which they shuffle.
    shape : tuple of int
        The number of states on each axis.
    dropping : tuple of int
        The members of which a missing value drops the record.
    ring : Ring
        The smallest that holds its cells: a site that lies has no room for tags beside the codes.
    """

    index: int
    members: tuple[int, ...]
    chain: tuple[Party, ...]
    shape: tuple[int, ...]
    dropping: tuple[int, ...]
    ring: Ring

    @property
    def cells(self) -> int:
        """The number of its cells."""
        return prod(self.shape)

    @property
    def strides(self) -> list[int]:
        """How much a step along each axis adds to a joint code."""
        return [prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]

    @property
    def is_local(self) -> bool:
        """Whether one site holds all its columns and counts it alone."""
        return len(self.chain) == 1


@dataclass(frozen=True)
class ShufflePlan:
    """All that the parties do to count tables by shuffle in one query.

    Parameters
    ----------
    commitments : Commitments
        What all parties know of the columns.
    families : tuple of tuple of int
        For each table the places of its operands, in the order of its axes.
    selection : Selection
        The records that are counted.
    missing : bool, default=False
        Whether a missing value is a state; otherwise records with a missing value drop out.
    number : int, default=0
        The number of the query, ascending: masks and orders are for one query.

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

    def _table(self, index: int, members: tuple[int, ...]) -> ShuffledTable:
        operands = [self.commitments.operands[i] for i in members]
        holders = sorted({holder for operand in operands for holder in operand.holders})
        first = index % len(holders)  # the first and the last do more work: each site in turn
        hides = [operand.missing and not self.missing for operand in operands]
        shape = tuple(o.width + 1 - hidden for o, hidden in zip(operands, hides, strict=True))
        dropping = tuple(place for place, hidden in zip(members, hides, strict=True) if hidden)
        ring = Ring(max(prod(shape) - 1, 1).bit_length())
        chain = (*holders[first:], *holders[:first])
        return ShuffledTable(index, members, chain, shape, dropping, ring)

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
    def dropping(self) -> tuple[ShuffledTable, ...]:
        """The tables of several holders in which records drop out."""
        return tuple(table for table in self.shuffled if table.dropping)

    @property
    def rounds(self) -> int:
        """The most rounds of the query: noise, the chain, tags, the shares."""
        return self.longest + 2 * bool(self.dropping)

    def rings(self, table: ShuffledTable) -> tuple[Ring, ...]:
        """Return the rings of the vectors along a table's chain: codes, and tags if there are."""
        return (table.ring, self.commitments.flag_ring) if table.dropping else (table.ring,)

    @cached_property
    def label(self) -> bytes:
        """A digest of the query: part of every label, except those of committed columns."""
        query = self.commitments.label, self.number, self.selection.name, int(self.missing)
        parts: list[bytes | int] = [*query]
        for members in self.families:
            parts += [len(members), *members]
        return label("shuffled tables", *parts)
