"""The programs of table lookups: sites turn unit vectors, the analyst adds up the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.sharing import open_sum, send_share, zero_share
from vertibayes_mpc.table_lookups.plan import TableLookupPlan
from vertibayes_mpc.unit_vectors import deal_units, reveal_masked, turned, units_of

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
    yield from lookups.add_shared(sums)
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
    padded = np.zeros((plan.columns, 1 << plan.index_ring(place).bits), np.uint64)
    padded[:, : len(table)] = np.ascontiguousarray(table.T).view(np.uint64)
    return plan.ring.reduce(padded.astype(plan.ring.dtype))


class _Lookups:
    """One site's part in the lookups of a plan."""

    def __init__(self, site: Holder, plan: TableLookupPlan, tables: Sequence[Elements]) -> None:
        self.site, self.plan, self.tables = site, plan, tables

    def indices(self, table: int) -> Elements:
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
                sums += values[:, self.indices(table).astype(np.intp)]
        return sums

    def add_shared(self, sums: Elements) -> Program[None]:
        """Add this site's shares of the sums over tables of several holders."""
        plan, me = self.plan, self.site.party
        mine = [table for table, holders in plan.shared.holders.items() if me in holders]
        own = {table: self.indices(table) for table in mine}
        masked = yield from reveal_masked(self.site, plan.shared, own)
        for part in plan.shared.parts:
            units = yield from units_of(self.site, plan.shared, mine, part)
            for table in mine:
                rows = turned(units[table], masked[table][part])
                sums[:, part] += plan.ring.dot(self.tables[table], rows)


def open_rows(plan: TableLookupPlan) -> Program[Elements]:
    """Add up the sites' shares: the analyst's side.

    Returns
    -------
    sums : ndarray of shape (columns, records), dtype `plan.ring.dtype`

    Raises
    ------
    MalformedMessageError
        If a site's share has a wrong size.
    """
    records = plan.selection.records
    sums = yield from open_sum(plan.parties, plan.ring, plan.columns * records)
    return sums.reshape(plan.columns, records)


def deal_rows(keys: Mapping[Party, Stream], plan: TableLookupPlan) -> Program[None]:
    """Deal unit vectors for the lookups of a plan; expect nothing.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : TableLookupPlan
        The plan of the lookups.
    """
    yield from deal_units(keys, plan.shared)
