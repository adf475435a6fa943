"""The dealer's program: unit vectors at the masks of indices, part by part.

The dealer holds no data and receives none. Its messages are functions of the streams that it shares
with the sites: the same for the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program, send
from vertibayes_mpc.table_lookups.masks import Masks
from vertibayes_mpc.table_lookups.messages import UnitVectors
from vertibayes_mpc.table_lookups.plan import TableLookupPlan


def deal_rows(keys: Mapping[Party, Stream], plan: TableLookupPlan) -> Program[None]:
    """Deal unit vectors for the lookups of a plan; expect nothing.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : TableLookupPlan
        The plan of the lookups.
    """
    masks = {site: Masks(keys[site], plan) for site in plan.parties}
    turns = {t: _sum_of_masks(plan, masks, t) for t in plan.shared}
    for part in plan.parts:
        outgoing: dict[Party, list[Elements]] = {}
        for table in plan.shared:
            dealt = plan.ring.pack(_units(plan, masks, table, part, turns[table][part]))
            outgoing.setdefault(plan.holders(table)[0], []).append(dealt)
        name = units_label(plan, part)
        yield from send({to: UnitVectors(np.concatenate(v), name) for to, v in outgoing.items()})


def units_label(plan: TableLookupPlan, part: slice) -> bytes:
    """Return the label of the dealer's messages of a part."""
    return label("table lookup dealt", plan.name, part.start)


def _sum_of_masks(plan: TableLookupPlan, masks: Mapping[Party, Masks], table: int) -> Elements:
    each = (masks[site].indices(table) for site in plan.holders(table))
    return plan.index_ring(table).reduce(reduce(np.add, each))


def _units(
    plan: TableLookupPlan, masks: Mapping[Party, Masks], table: int, part: slice, turns: Elements
) -> Elements:
    """Return the first holder's shares of unit vectors: shape (records, size)."""
    units = np.zeros((len(turns), plan.size(table)), plan.ring.dtype)
    units[np.arange(len(turns)), turns.astype(np.intp)] = 1
    for site in plan.holders(table)[1:]:
        units -= masks[site].units(table, part)
    return plan.ring.reduce(units)
