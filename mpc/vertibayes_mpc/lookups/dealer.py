"""The dealer's program: masks for the lookups of all batches, part by part.

The dealer holds no data and receives none. Its messages are functions of the streams that it shares
with the sites: the same for the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vertibayes_mpc.lookups import many_sites, two_sites
from vertibayes_mpc.lookups.masks import Masks
from vertibayes_mpc.lookups.messages import Dealt, Packed
from vertibayes_mpc.lookups.plan import LookupPlan, Slice
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.rounds import Party, Program, send


def deal_lookups(keys: Mapping[Party, Stream], plan: LookupPlan) -> Program[None]:
    """Deal the masks of a plan's lookups, part by part; expect nothing.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : LookupPlan
        The plan of the lookups.
    """
    for number, part in enumerate(plan.parts):
        outgoing: dict[Party, list[Packed]] = {}
        for each in part:
            outgoing.setdefault(plan.dealt_to(each), []).append(_deal(keys, plan, each))
        name = plan.part_label(number, 0)
        yield from send({to: Dealt(np.concatenate(v), name) for to, v in outgoing.items()})


def _deal(keys: Mapping[Party, Stream], plan: LookupPlan, part: Slice) -> Packed:
    masks = [Masks(keys[holder], plan, part) for holder in plan.batches[part.batch].holders]
    return two_sites.deal(*masks) if len(masks) == 2 else many_sites.deal(masks)
