"""What all parties know of table lookups, and their programs: sites turn unit vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc import unit_vectors
from vertibayes_mpc.commitments import Commitments, Holder, Selection, Term
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.sharing import open_sum, send_share, zero_share
from vertibayes_mpc.unit_vectors import Indices, deal_units, reveal_masked, turned, units_of

MOST_CELLS = 1 << 12  # rows of a table: a unit vector then has 32 KiB for each record
WORDS = Ring(64)


@dataclass(frozen=True)
class TableLookupPlan:
    """All that the parties do to look records up in tables of at most `MOST_CELLS` rows."""

    label: bytes  # names the query, with its number: no two plans have the same
    selection: Selection  # the records
    tables: tuple[Term, ...]  # the operands that are the axes of each table, at least one
    columns: int  # of each table
    ring: Ring = WORDS  # of the tables' numbers

    def __post_init__(self) -> None:
        for place, axes in enumerate(self.tables):
            if not axes or len(set(axes)) < len(axes):
                raise ValueError(f"a table must have one axis or more, each once, got {axes}")
            if self.rows(place) > MOST_CELLS:
                raise ValueError(
                    f"a table has {self.rows(place):,} rows; at most {MOST_CELLS:,} are allowed"
                )
            if self.index_ring(place).bits > self.commitments.code_ring.bits:
                raise ValueError("the ring of codes must hold the indices of tables")
        if self.columns < 1:
            raise ValueError(f"tables must have at least one column, got {self.columns}")

    @property
    def commitments(self) -> Commitments:
        """The commitments of the study."""
        return self.selection.commitments

    def lengths(self, table: int) -> tuple[int, ...]:
        """Return the length of each axis of a table."""
        return tuple(self.commitments.operands[place].width + 1 for place in self.tables[table])

    def rows(self, table: int) -> int:
        """Return the number of rows of a table; the last axis changes fastest."""
        return prod(self.lengths(table))

    def index_ring(self, table: int) -> Ring:
        """Return the ring of the indices of a table: the smallest that holds them."""
        return Ring(max((self.rows(table) - 1).bit_length(), 1))

    def holders(self, table: int) -> tuple[Party, ...]:
        """Return the sites that hold an axis of a table, sorted."""
        return self.commitments.holders(self.tables[table])

    @cached_property
    def shared(self) -> Indices:
        """The indices in the tables of several holders."""
        shared = [t for t in range(len(self.tables)) if len(self.holders(t)) > 1]
        return Indices(
            "table lookup",
            self.name,
            self.selection.records,
            self.ring,
            {table: self.index_ring(table) for table in shared},
            {table: self.holders(table) for table in shared},
        )

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that take part, sorted."""
        return tuple(sorted({site for t in range(len(self.tables)) for site in self.holders(t)}))

    @property
    def is_dealt(self) -> bool:
        """Whether the dealer takes part."""
        return bool(self.shared.rings)

    @cached_property
    def name(self) -> bytes:
        """A digest of all that the plan says: part of every label."""
        parts: list[bytes | int] = [self.label, self.commitments.label, self.selection.name]
        parts += [self.selection.records, self.columns, self.ring.bits, unit_vectors.PART_BYTES]
        for axes in self.tables:
            parts += [len(axes), *axes]
        return label("table lookups", *parts)

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends, labels aside."""
        return self.shared.dealt_bytes

    @property
    def sent_bytes(self) -> int:
        """The bytes that sites send each other and the analyst, labels aside."""
        shown = self.ring.packed_size(self.columns * self.selection.records)
        return self.shared.sent_bytes + len(self.parties) * shown

    @property
    def memory(self) -> int:
        """The bytes that a site needs at a time, about."""
        each = 8 * (len(self.shared.rings) + 3 * self.columns + 2)
        sizes = (1 << self.index_ring(table).bits for table in range(len(self.tables)))
        tables = 16 * sum(sizes) * self.columns
        return self.selection.records * each + self.shared.memory + tables


Tables: TypeAlias = Sequence[NDArray[np.int64]]  # each of shape (rows, columns)


def share_rows(site: Holder, plan: TableLookupPlan, tables: Tables) -> Program[Elements]:
    """Look records up in all tables with the other sites and the dealer.

    `tables`, each of shape (rows, columns), are public, and all sites have the same. Returns this
    site's shares of the sum of each record's rows: shape (columns, records), in `plan.ring`. Errors
    are as of `share_counts`; also a ValueError if the tables are not those of the plan.
    """
    shapes = [(plan.rows(table), plan.columns) for table in range(len(plan.tables))]
    if [table.shape for table in tables] != shapes:
        raise ValueError(f"tables must have the shapes {shapes}")
    site.use(plan.name)
    padded = [_padded(plan, place, table) for place, table in enumerate(tables)]
    held = [t for t in range(len(plan.tables)) if site.party in plan.holders(t)]
    indices = {table: _indices(site, plan, table) for table in held}
    sums = np.zeros((plan.columns, plan.selection.records), plan.ring.dtype)
    for table in indices.keys() - plan.shared.rings.keys():
        sums += padded[table][:, indices.pop(table).astype(np.intp)]
    masked = yield from reveal_masked(site, plan.shared, indices)
    for part in plan.shared.parts:
        units = yield from units_of(site, plan.shared, list(indices), part)
        for table in indices:
            rows = turned(units[table], masked[table][part])
            sums[:, part] += plan.ring.dot(padded[table], rows)
    return plan.ring.reduce(sums)


def show_rows(
    site: Holder, plan: TableLookupPlan, shares: Elements, analyst: Party
) -> Program[None]:
    """Send what `share_rows` returned to the analyst, who runs `open_rows`, under zero shares."""
    peers = {peer: site.peer_keys[peer] for peer in plan.parties if peer != site.party}
    name = label("table lookup zeros", plan.name)
    zeros = zero_share(site.party, peers, plan.ring, name, shares.size)
    yield from send_share(shares.ravel() + zeros, plan.ring, analyst)


def _padded(plan: TableLookupPlan, place: int, table: NDArray[np.int64]) -> Elements:
    """Return a table by columns, with zeros up to the size of a unit vector."""
    padded = np.zeros((plan.columns, 1 << plan.index_ring(place).bits), np.uint64)
    padded[:, : len(table)] = np.ascontiguousarray(table.T).view(np.uint64)
    return plan.ring.reduce(padded.astype(plan.ring.dtype))


def _indices(site: Holder, plan: TableLookupPlan, table: int) -> Elements:
    """Return this site's parts of the indices of all records."""
    ring, total, step = plan.index_ring(table), np.zeros(plan.selection.records, np.uint64), 1
    for place, length in reversed([*zip(plan.tables[table], plan.lengths(table), strict=True)]):
        if site.party in plan.commitments.operands[place].holders:
            load = partial(site.clear, plan.commitments.form("codes", place), place)
            codes = plan.selection.whole(load)
            total += np.uint64(step) * codes.astype(np.uint64)
        step *= length
    return ring.reduce(total.astype(ring.dtype))  # it divides the ring of the codes


def open_rows(plan: TableLookupPlan) -> Program[Elements]:
    """Add up the sites' shares, of shape (columns, records): the analyst's side."""
    records = plan.selection.records
    sums = yield from open_sum(plan.parties, plan.ring, plan.columns * records)
    return sums.reshape(plan.columns, records)


def deal_rows(keys: Mapping[Party, Stream], plan: TableLookupPlan) -> Program[None]:
    """Deal unit vectors for the lookups of a plan; expect nothing."""
    yield from deal_units(keys, plan.shared)
