"""From a query to chains of holders, who shuffles what; the streams and messages of a shuffle."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Commitments, Selection
from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import ArrayMessage, Party


@dataclass(frozen=True)
class ShuffledTable:
    """What all parties know of one table."""

    index: int  # its place in the query: part of its labels
    members: tuple[int, ...]  # operands, in the order of its axes
    chain: tuple[Party, ...]  # the holders, in the order in which they shuffle
    shape: tuple[int, ...]  # states on each axis
    dropping: tuple[int, ...]  # members of which a missing value drops the record
    ring: Ring  # the smallest: a site that lies has no room for tags beside the codes

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

    Masks and orders are for one query. A ValueError says that an operand is unknown or appears
    twice in a table, or that a table has too many cells.
    """

    commitments: Commitments
    families: tuple[tuple[int, ...], ...]  # of each table the operands, in the order of its axes
    selection: Selection  # the records that are counted
    missing: bool = False  # a missing value is a state; otherwise such records drop out
    number: int = 0  # of the query, ascending

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


class Noise(Labelled, kind="noise"):
    """A holder's noise on the flags of missing values, for the first of the chain."""


class Shuffled(Labelled, kind="shuffled"):
    """Codes and tags, in a holder's order, for the next of the chain."""


class Masks(Labelled, kind="shuffled masks"):
    """From the dealer: what the masks add to the codes, and to the tags, at the chain's end."""


class Tags(Labelled, kind="tags"):
    """The masked tags at the chain's end, for all holders."""


@dataclass(frozen=True, slots=True)
class Codes(ArrayMessage, kind="codes"):
    """A holder's shares of the codes, or the cells of a table that it counted by itself.

    Zeros pad the shares of tables in which records drop out, so that the size of the message does
    not reveal how many are revealed.
    """

    complete: NDArray[np.uint32] = field(repr=False)  # how many, by such table


@dataclass(frozen=True)
class Streams:
    """The streams of a plan's tables under one key; only `seal` is under the key of all sites."""

    key: Stream
    plan: ShufflePlan

    def order(self, table: ShuffledTable) -> NDArray[np.intp]:
        """Return the site's permutation of the records, pi."""
        return self.key.permutation(self.label("order", table), self.plan.selection.records)

    def masks(self, table: ShuffledTable) -> list[Elements]:
        """Return the masks of each vector that the site sends on: r of codes, r' of tags."""
        masks = [self._elements("mask", table, table.ring)]
        if table.dropping:
            masks.append(self._elements("tag mask", table, self.plan.commitments.flag_ring))
        return masks

    def share(self, table: ShuffledTable) -> Elements:
        """Return the site's share of the codes, d."""
        return self._elements("share", table, table.ring)

    def noise(self, table: ShuffledTable, place: int) -> Elements:
        """Return the noise rho that the site adds where an operand's value is missing."""
        return self._elements("noise", table, self.plan.commitments.flag_ring, place)

    def noise_mask(self, table: ShuffledTable) -> Elements:
        """Return the mask of the sum of the site's noises, sent to the first of the chain."""
        return self._elements("noise mask", table, self.plan.commitments.flag_ring)

    def seal(self, table: ShuffledTable, count: int) -> NDArray[np.intp]:
        """Return the last permutation, sigma, of the `count` revealed records."""
        return self.key.permutation(self.label("seal", table), count)

    def label(self, purpose: str, table: ShuffledTable, *parts: int) -> bytes:
        """Return the label of one purpose for one table."""
        return label(purpose, self.plan.label, table.index, *parts)

    def _elements(self, purpose: str, table: ShuffledTable, ring: Ring, *parts: int) -> Elements:
        shape = (self.plan.selection.records,)
        return self.key.elements(ring, self.label(purpose, table, *parts), shape)
