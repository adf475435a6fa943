"""The analyst's program: add up the shares of the codes, and count them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import ImpossibleTablesError, MalformedMessageError
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Expect, Party, Program, exchange
from vertibayes_mpc.shuffled_tables.messages import Codes
from vertibayes_mpc.shuffled_tables.plan import ShuffledTable, ShufflePlan


def open_shuffled(plan: ShufflePlan) -> Program[list[NDArray[np.int64]]]:
    """Count the tables of a plan from the codes that its sites reveal.

    Returns
    -------
    tables : list of ndarray, dtype int64, C-contiguous
        In the order of `plan.families`, each with the axes of its family.

    Raises
    ------
    MalformedMessageError
        If a site's shares have a wrong size.
    ImpossibleTablesError
        If a code lies outside its table: a holder or the dealer lies.
    """
    if not plan.tables:
        return []
    expect = {site: Expect(Codes, _most(plan, site)) for site in plan.parties}
    received = yield from exchange({}, expect)
    readers = {site: _Reader(plan, site, message) for site, message in received.items()}
    tables = [_count(plan, table, readers) for table in plan.tables]
    for reader in readers.values():
        reader.check_end()
    return tables


def _most(plan: ShufflePlan, site: Party) -> int:
    """Return the most bytes and numbers of a site's message; an empty array counts as one."""
    size = plan.selection.records
    return 2 + sum(
        table.cells * plan.commitments.ring.bytes if table.is_local else table.ring.bytes * size + 1
        for table in plan.tables
        if site in table.chain
    )


class _Reader:
    """Reads one site's message, table after table."""

    def __init__(self, plan: ShufflePlan, site: Party, message: Codes) -> None:
        dropping = [table for table in plan.dropping if site in table.chain]
        if message.values.dtype != np.uint8 or message.complete.dtype != np.uint32:
            raise MalformedMessageError(site, "codes of a wrong type")
        if message.complete.shape != (len(dropping),) or message.values.ndim != 1:
            raise MalformedMessageError(site, "codes of a wrong shape")
        self.site, self.values, self.at = site, message.values, 0
        numbers = zip(dropping, message.complete.tolist(), strict=True)
        self.complete: dict[int, int] = {table.index: count for table, count in numbers}

    def take(self, ring: Ring, count: int) -> Elements:
        """Return the next vector."""
        end = self.at + ring.bytes * count
        if end > len(self.values):
            raise MalformedMessageError(self.site, "codes that are cut short")
        vector = ring.unpack(self.values[self.at : end])
        self.at = end
        return vector

    def check_end(self) -> None:
        """Refuse bytes that belong to no table."""
        if self.at != len(self.values):
            raise MalformedMessageError(self.site, "more codes than its tables have")


def _count(
    plan: ShufflePlan, table: ShuffledTable, readers: Mapping[Party, _Reader]
) -> NDArray[np.int64]:
    if table.is_local:
        counted = readers[table.chain[0]].take(plan.commitments.ring, table.cells)
        return counted.astype(np.int64).reshape(table.shape)
    counts = {readers[s].complete.get(table.index, plan.selection.records) for s in table.chain}
    if len(counts) > 1 or max(counts) > plan.selection.records:
        check = f"shuffled table {table.index}: {sorted(counts)} complete records by its sites"
        raise ImpossibleTablesError(table.chain, plan.commitments.dealer, check)
    codes = np.zeros(max(counts), table.ring.dtype)
    for site in table.chain:
        codes += readers[site].take(table.ring, plan.selection.records)[: len(codes)]
    codes = table.ring.reduce(codes)
    if (codes > table.cells - 1).any():
        check = f"shuffled table {table.index}: a record has a code beyond its cells"
        raise ImpossibleTablesError(table.chain, plan.commitments.dealer, check)
    return np.bincount(codes.astype(np.intp), minlength=table.cells).reshape(table.shape)
