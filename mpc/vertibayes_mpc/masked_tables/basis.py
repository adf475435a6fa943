"""Tables in the basis 1, e_1 .. e_w of each column, and the way back to its w + 1 states.

Columns are committed without the indicator of their first code. Since all indicators add up to 1, a
table over all codes is a linear function of one in this basis. Shares are linear too: each site
converts its own shares, and leaves out the cells that are not revealed.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.masked_tables.plan import Group, Plan
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party


def table_shares(plan: Plan, products: Elements, sums: Elements, party: Party) -> Elements:
    """Convert shares of products into shares of the cells that the plan reveals.

    `products`, of shape (plan.height, columns of the study), are inner products of the left terms
    with each column; `sums` are those of the left terms' columns, then of the study's columns.
    """
    holders = [plan.commitments.operands[group.prefix[0]].holders for group in plan.groups]
    ones = [plan.selection.records if held[0] == party else 0 for held in holders]
    groups = zip(plan.groups, ones, strict=True)
    return np.concatenate([_group(plan, g, products, sums, own).ravel() for g, own in groups])


def _group(plan: Plan, group: Group, products: Elements, sums: Elements, ones: int) -> Elements:
    in_basis = _in_basis(plan, group, products, sums, ones)
    for axis in range(len(group.prefix)):
        rows = np.moveaxis(in_basis, axis, 0)
        rows[0] -= rows[1:].sum(axis=0, dtype=rows.dtype)
    shown = in_basis[tuple(slice(plan.states(i)) for i in group.prefix)]
    if not group.lasts:
        return plan.commitments.ring.reduce(shown[..., 0])
    return plan.commitments.ring.reduce(_last_axis(plan, group, shown))


def _in_basis(plan: Plan, group: Group, products: Elements, sums: Elements, ones: int) -> Elements:
    """Place the shares of all terms: axes the prefix's, then 1 and the last operands' columns."""
    widths = [plan.commitments.operands[i].width for i in group.prefix]
    columns = plan.columns(group.lasts)
    table = np.empty((*(w + 1 for w in widths), 1 + len(columns)), products.dtype)
    corner = table.reshape(-1, 1 + len(columns))[0]
    corner[0] = ones
    corner[1:] = sums[plan.height + columns]
    axes = range(len(widths))
    for chosen in (c for size in range(1, len(widths) + 1) for c in combinations(axes, size)):
        inside = tuple(slice(1, None) if axis in chosen else 0 for axis in axes)
        term = tuple(sorted(group.prefix[axis] for axis in chosen))
        order = [group.prefix.index(i) for i in plan.commitments.axes(term)]
        rows = plan.rows[term]
        block = np.column_stack([sums[rows], products[rows][:, columns]])
        block = block.reshape(*(widths[axis] for axis in order), -1)
        table[inside] = block.transpose(*np.argsort(order), len(order))
    return table


def _last_axis(plan: Plan, group: Group, table: Elements) -> Elements:
    """Add the first state of each last operand, and leave out its missing state if it is hidden."""
    widths = np.array([plan.commitments.operands[z].width for z in group.lasts])
    starts = np.cumsum([0, *widths[:-1]])
    columns = table[..., 1:]
    firsts = table[..., :1] - np.add.reduceat(columns, starts, axis=-1, dtype=table.dtype)
    cells = np.insert(columns, starts, firsts, axis=-1)
    return cells[..., _shown(plan, group.lasts)]


def _shown(plan: Plan, lasts: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which states of the last operands are revealed."""
    full = [plan.commitments.operands[z].width + 1 for z in lasts]
    return np.concatenate([np.arange(f) < plan.states(z) for f, z in zip(full, lasts, strict=True)])


def tables_of(plan: Plan, cells: Elements) -> list[NDArray[np.int64]]:
    """Cut revealed cells into tables: of each group, one with each of its last operands."""
    tables, at = [], 0
    for group in plan.groups:
        height, width = plan.shape(group)
        block = cells[at : at + height * width].reshape(height, width).astype(np.int64)
        at += height * width
        axes = [plan.states(i) for i in group.prefix]
        ends = np.cumsum([plan.states(z) for z in group.lasts])[:-1]
        for table in np.split(block, ends, axis=1) if group.lasts else [block[:, 0]]:
            shape = (*axes, -1) if group.lasts else tuple(axes)
            tables.append(np.ascontiguousarray(table).reshape(shape))
    return tables
