"""The analyst's program: add up the shares of the codes, and count them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import ImpossibleTablesError, MalformedMessageError
from vertibayes_mpc.labelled import Layout, Piece, size_of, unpacked
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Party, Program, exchange
from vertibayes_mpc.shuffled_tables.plan import Codes, ShuffledTable, ShufflePlan


def open_shuffled(plan: ShufflePlan) -> Program[list[NDArray[np.int64]]]:
    """Count the tables of a plan from the codes that its sites reveal.

    Returns int64 tables in the order of `plan.families`, each with the axes of its family. A
    MalformedMessageError says that a site's shares have a wrong size; an ImpossibleTablesError,
    that a code lies outside its table: a holder or the dealer lies.
    """
    if not plan.tables:
        return []
    expect = {site: Expect(Codes, _most(plan, site)) for site in plan.parties}
    received = yield from exchange({}, expect)
    shares = {site: _opened(plan, site, message) for site, message in received.items()}
    return [_count(plan, table, shares) for table in plan.tables]


def _layout(plan: ShufflePlan, site: Party) -> Layout:
    """Return what a site sends: the cells of its tables, or shares of the codes of all records."""
    return [
        Piece(plan.commitments.ring, (table.cells,))
        if table.is_local
        else Piece(table.ring, (plan.selection.records,))
        for table in plan.tables
        if site in table.chain
    ]


def _most(plan: ShufflePlan, site: Party) -> int:
    """Return the most bytes and numbers of a site's message; an empty array counts as one."""
    layout = _layout(plan, site)
    return 2 + size_of(layout) + len(layout)


class _Shares(NamedTuple):
    """A site's vectors, table after table; and how many records are complete, by table."""

    vectors: Iterator[Elements]
    complete: dict[int, int]


def _opened(plan: ShufflePlan, site: Party, message: Codes) -> _Shares:
    """Take a site's message apart, or blame the site."""
    dropping, layout = [t for t in plan.dropping if site in t.chain], _layout(plan, site)
    if message.values.dtype != np.uint8 or message.complete.dtype != np.uint32:
        raise MalformedMessageError(site, "codes of a wrong type")
    if message.complete.shape != (len(dropping),) or message.values.ndim != 1:
        raise MalformedMessageError(site, "codes of a wrong shape")
    if (size := len(message.values)) != size_of(layout):
        short = size < size_of(layout)
        reason = "codes that are cut short" if short else "more codes than its tables have"
        raise MalformedMessageError(site, reason)
    numbers = zip(dropping, message.complete.tolist(), strict=True)
    complete: dict[int, int] = {table.index: count for table, count in numbers}
    return _Shares(unpacked(layout, message.values, site), complete)


def _count(
    plan: ShufflePlan, table: ShuffledTable, shares: Mapping[Party, _Shares]
) -> NDArray[np.int64]:
    if table.is_local:
        counted = next(shares[table.chain[0]].vectors)
        return counted.astype(np.int64).reshape(table.shape)
    counts = {shares[s].complete.get(table.index, plan.selection.records) for s in table.chain}
    if len(counts) > 1 or max(counts) > plan.selection.records:
        check = f"shuffled table {table.index}: {sorted(counts)} complete records by its sites"
        raise ImpossibleTablesError(table.chain, plan.commitments.dealer, check)
    codes = np.zeros(max(counts), table.ring.dtype)
    for site in table.chain:
        codes += next(shares[site].vectors)[: len(codes)]
    codes = table.ring.reduce(codes)
    if (codes > table.cells - 1).any():
        check = f"shuffled table {table.index}: a record has a code beyond its cells"
        raise ImpossibleTablesError(table.chain, plan.commitments.dealer, check)
    return np.bincount(codes.astype(np.intp), minlength=table.cells).reshape(table.shape)
