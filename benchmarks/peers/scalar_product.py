"""Scalar products of 0/1 vectors of 10,000 records: the published recursion, mended, beside peers.

The first peer is this project's own main path, which counts the whole table of n columns, where a
scalar product counts one cell; so one case asks for a table of 4 x 4 x 4, a product a cell. The
second is MPyC, three processes over TCP: numpy arrays shared over F_{2^31-1}, two secure
multiplications. Ours and masked tables run in this process.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from peers.mpyc_run import mpyc_seconds
from side_by_side import seconds_of

from vertibayes_mpc.commitments import (
    CodeColumn,
    Commitments,
    Holder,
    Operand,
    Selection,
    commit,
)
from vertibayes_mpc.masked_tables import Group, Plan, count_tables, deal_tables, open_tables
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.scalar_product import (
    Multiplier,
    Product,
    deal_product,
    receive_product,
    scalar_product,
    subprotocols,
)
from vertibayes_mpc.scheduler import run_all

RECORDS, TIMES = 10_000, 3
RING = Ring.holding(RECORDS)
DEALER = "honest but curious, all but one party may collude; a dealer who colludes with nobody"
MAJORITY = "honest but curious, a majority does not collude; no dealer"

Columns = dict[Party, NDArray[np.uint8]]
Cell = tuple[int, ...]


def rows() -> list[list[str]]:
    """Measure n = 2 .. 5 parties beside masked tables, and n = 3 beside MPyC.

    Returns
    -------
    rows : list of list of str
        Primitive and setting, ours, the peer's name and time, the ratio, both trust models.
    """
    cells = [[(1,) * n] for n in (2, 3, 4, 5)]
    found = [_beside_masked_tables(_columns(len(cell[0]), 2), cell) for cell in cells]
    found.append(_beside_masked_tables(_columns(3, 4), list(np.ndindex(4, 4, 4))))
    ours = seconds_of(lambda: products(_columns(3, 2), cells[1]), TIMES)
    theirs = mpyc_seconds("mpyc_scalar_product.py", "--no-log")
    if theirs is None:
        return found  # it is not there
    return [*found, _row(3, 1, ours, "MPyC, 3 processes", theirs, MAJORITY)]


def _beside_masked_tables(columns: Columns, cells: list[Cell]) -> list[str]:
    """Measure the counts of some cells, by a product each, and by the table of all."""
    counts, table = products(columns, cells), _table(columns)
    assert counts.tolist() == [table[cell] for cell in cells]
    ours = seconds_of(lambda: products(columns, cells), TIMES)
    peer = seconds_of(lambda: _table(columns), TIMES)
    return _row(len(columns), len(cells), ours, "masked tables, this project", peer, DEALER)


def _row(n: int, cells: int, ours: float, peer: str, seconds: float, trust: str) -> list[str]:
    setting = f"scalar product, {n} parties, {RECORDS:,} records, {cells} at once"
    return [
        f"{setting}, {subprotocols(n)} sub-protocols",
        f"{ours * 1e3:.1f} ms",
        peer,
        f"{seconds * 1e3:.1f} ms",
        f"{seconds / ours:.3g}",
        DEALER,
        trust,
    ]


def _columns(n: int, states: int) -> Columns:
    generator = np.random.default_rng(n)
    return {f"site {i}": generator.integers(0, states, RECORDS).astype(np.uint8) for i in range(n)}


def _key(a: Party, b: Party) -> StreamKey:
    return StreamKey(label("benchmark", *sorted((a, b))))


def products(columns: Columns, cells: list[Cell]) -> Elements:
    """Count the records of each cell by a scalar product of indicators."""
    records = len(next(iter(columns.values())))
    ring = Ring.holding(records)
    product = Product(b"benchmark", b"", ring, tuple(columns), len(cells), records)
    keys = {site: _key(site, "dealer") for site in columns}
    states = dict(zip(columns, np.array(cells).T, strict=True))
    vectors = {s: (columns[s] == states[s][:, None]).astype(ring.dtype) for s in columns}
    programs = {
        s: scalar_product(Multiplier(s, keys[s]), product, vectors[s], "analyst") for s in columns
    }
    programs |= {"dealer": deal_product(keys, product), "analyst": receive_product(product)}
    counts: Elements = run_all(programs)[0]["analyst"]
    return counts


def _table(columns: Columns) -> NDArray[np.int64]:
    """Commit the columns and count their table."""
    operands = tuple(Operand(s.encode(), int(codes.max()), (s,)) for s, codes in columns.items())
    commitments = Commitments(b"benchmark", RING, RECORDS, operands)
    holders = {
        site: Holder(
            site,
            commitments,
            {place: CodeColumn(codes)},
            _key(site, "dealer"),
            {peer: _key(site, peer) for peer in columns if peer != site},
            _key("all", "sites"),
        )
        for place, (site, codes) in enumerate(columns.items())
    }
    run_all({site: commit(holder) for site, holder in holders.items()})
    *prefix, last = range(len(columns))
    plan = Plan(commitments, (Group(tuple(prefix), (last,)),), Selection(commitments))
    programs = {site: count_tables(holder, plan, "analyst") for site, holder in holders.items()}
    programs["dealer"] = deal_tables({site: _key(site, "dealer") for site in columns}, plan)
    table: NDArray[np.int64]
    (table,) = run_all(programs | {"analyst": open_tables(plan)})[0]["analyst"]
    return table
