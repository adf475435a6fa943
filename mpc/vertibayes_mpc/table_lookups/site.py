"""A site's program: mask its parts of the indices, turn unit vectors, and add up rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.labelled import LABEL_BYTES, labelled_bytes
from vertibayes_mpc.lookups.factors import turned
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange
from vertibayes_mpc.sharing import send_share, zero_share
from vertibayes_mpc.table_lookups.dealer import units_label
from vertibayes_mpc.table_lookups.masks import Masks
from vertibayes_mpc.table_lookups.messages import MaskedIndices, UnitVectors
from vertibayes_mpc.table_lookups.plan import TableLookupPlan

Tables: TypeAlias = Sequence[NDArray[np.int64]]  # each of shape (rows, columns)


def share_rows(site: Holder, plan: TableLookupPlan, tables: Tables) -> Program[Elements]:
    """Look records up in all tables with the other sites and the dealer.

    Parameters
    ----------
    site : Holder
        The columns and keys of this site, one of `plan.parties`.
    plan : TableLookupPlan
        The plan of the lookups.
    tables : sequence of ndarray of shape (rows, columns), dtype int64
        The public tables, which all sites have alike.

    Returns
    -------
    shares : ndarray of shape (columns, records), dtype `plan.ring.dtype`
        This site's shares of the sum of each record's rows.

    Raises
    ------
    DealReusedError
        If this site has looked up with this plan before.
    MalformedMessageError, UnexpectedMessageError
        If a message has a wrong size or is for other lookups; they name the sender.
    ValueError
        If the tables are not those of the plan.
    """
    shapes = [(plan.rows(table), plan.columns) for table in range(len(plan.tables))]
    if [table.shape for table in tables] != shapes:
        raise ValueError(f"tables must have the shapes {shapes}")
    site.use(plan.name)
    lookups = _Lookups(site, plan, [_padded(plan, place, t) for place, t in enumerate(tables)])
    sums = lookups.alone()
    turns = yield from lookups.turns()
    for part in plan.parts:
        sums[:, part] += yield from lookups.of_part(part, turns)
    return plan.ring.reduce(sums)


def show_rows(
    site: Holder, plan: TableLookupPlan, shares: Elements, analyst: Party
) -> Program[None]:
    """Send this site's shares of the sums to the analyst, under zero shares.

    Parameters
    ----------
    site, plan : Holder, TableLookupPlan
        As of `share_rows`.
    shares : ndarray of shape (columns, records)
        What `share_rows` returned.
    analyst : Party
        Who runs `open_rows`.
    """
    peers = {peer: site.peer_keys[peer] for peer in plan.parties if peer != site.party}
    name = label("table lookup zeros", plan.name)
    zeros = zero_share(site.party, peers, plan.ring, name, shares.size)
    yield from send_share(plan.ring.reduce(shares.ravel() + zeros), analyst)


def _padded(plan: TableLookupPlan, place: int, table: NDArray[np.int64]) -> Elements:
    """Return a table by columns, with zeros up to the size of a unit vector."""
    padded = np.zeros((plan.columns, plan.size(place)), np.uint64)
    padded[:, : len(table)] = np.ascontiguousarray(table.T).view(np.uint64)
    return plan.ring.reduce(padded.astype(plan.ring.dtype))


class _Lookups:
    """One site's part in the lookups of a plan."""

    def __init__(self, site: Holder, plan: TableLookupPlan, tables: Sequence[Elements]) -> None:
        self.site, self.plan, self.tables = site, plan, tables
        self.masks = Masks(site.dealer_key, plan)

    def _indices(self, table: int) -> Elements:
        """Return this site's parts of the indices of all records."""
        plan, site, step = self.plan, self.site, 1
        ring, total = plan.index_ring(table), np.zeros(plan.selection.records, np.uint64)
        axes = zip(plan.tables[table], plan.lengths(table), strict=True)
        for place, length in reversed(list(axes)):
            if site.party in plan.commitments.operands[place].holders:
                total += np.uint64(step) * self._codes(place).astype(np.uint64)
            step *= length
        return ring.reduce(total.astype(ring.dtype))  # it divides the ring of the codes

    def _codes(self, place: int) -> Elements:
        form = self.plan.commitments.form("codes", place)
        assert form is not None  # all columns are committed as codes
        return self.plan.selection.whole(lambda block: self.site.clear(form, place, block))

    def alone(self) -> Elements:
        """Return the sums over the tables of which this site holds all axes."""
        plan = self.plan
        sums = np.zeros((plan.columns, plan.selection.records), plan.ring.dtype)
        for table, values in enumerate(self.tables):
            if plan.holders(table) == (self.site.party,):
                sums += values[:, self._indices(table).astype(np.intp)]
        return sums

    def turns(self) -> Program[dict[int, Elements]]:
        """Reveal the indices of all records under masks, each to the holders of its table."""
        plan, me, name = self.plan, self.site.party, label("table lookup turns", self.plan.name)
        mine = [table for table in plan.shared if me in plan.holders(table)]
        ours = {t: self._indices(t) + self.masks.indices(t) for t in mine}
        packed = {t: plan.index_ring(t).pack(indices) for t, indices in ours.items()}
        common = {p: held for p in plan.parties if p != me and (held := plan.between(me, p))}
        outbox = {
            peer: MaskedIndices(np.concatenate([packed[t] for t in held]), name)
            for peer, held in common.items()
        }
        sizes = {peer: len(message.values) for peer, message in outbox.items()}
        expect = {p: Expect(MaskedIndices, size + LABEL_BYTES) for p, size in sizes.items()}
        received = (yield from exchange(outbox, expect)) if common else {}
        for peer, message in received.items():
            text = labelled_bytes(message, peer, sizes[peer], name)
            for table, theirs in self._taken_apart(common[peer], text, plan.selection.records):
                ours[table] = ours[table] + theirs
        return {t: plan.index_ring(t).reduce(indices) for t, indices in ours.items()}

    def _taken_apart(
        self, tables: Sequence[int], values: NDArray[np.uint8], records: int
    ) -> list[tuple[int, Elements]]:
        pieces, at = [], 0
        for table in tables:
            ring = self.plan.index_ring(table)
            pieces.append((table, ring.unpack(values[at : at + records * ring.bytes])))
            at += records * ring.bytes
        return pieces

    def of_part(self, part: slice, turns: Mapping[int, Elements]) -> Program[Elements]:
        """Return this site's shares of the sums over shared tables, in a part of the records."""
        plan, dealt = self.plan, (yield from self._dealt(part))
        sums = np.zeros((plan.columns, part.stop - part.start), plan.ring.dtype)
        for table, by in turns.items():
            units = dealt[table] if table in dealt else self.masks.units(table, part)
            rows = turned(units, by[part].astype(np.intp))
            sums += plan.ring.dot(self.tables[table], rows)
        return sums

    def _dealt(self, part: slice) -> Program[dict[int, Elements]]:
        """Receive the unit vectors of the tables of which this site is the first holder."""
        plan, dealer = self.plan, self.plan.commitments.dealer
        tables, records = plan.dealt_to(self.site.party), part.stop - part.start
        if not tables:
            return {}
        sizes = [records * plan.size(table) * plan.ring.bytes for table in tables]
        expect = {dealer: Expect(UnitVectors, sum(sizes) + LABEL_BYTES)}
        message = (yield from exchange({}, expect))[dealer]
        values = labelled_bytes(message, dealer, sum(sizes), units_label(plan, part))
        pieces = np.split(values, np.cumsum(sizes)[:-1])
        return {
            table: plan.ring.unpack(piece).reshape(records, plan.size(table))
            for table, piece in zip(tables, pieces, strict=True)
        }
