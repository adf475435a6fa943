"""The programs of lookups: a site's shares of counts in, its shares of the values out; a dealer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.lookups import many_sites, two_sites
from vertibayes_mpc.lookups.plan import LookupPlan, Masks, Slice
from vertibayes_mpc.lookups.rounds import Dealt, Lookup, together
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements, Packed
from vertibayes_mpc.rounds import Party, Program, send


def look_up(
    site: Holder, plan: LookupPlan, counts: Mapping[int, Elements]
) -> Program[dict[int, Elements]]:
    """Look counts up with the other sites and the dealer; return this site's shares of the values.

    `counts` are this site's shares, by number of the batch, for the batches in which it takes part:
    shape (batch.counts,), modulo a multiple of high * low. The values are alike, in `plan.ring`. A
    DealReusedError says that this site has looked up with this plan before; a
    MalformedMessageError, that a message has a wrong size; a ValueError, that the counts are not
    those of the plan, or of a ring that is too small.
    """
    mine = [i for i, batch in enumerate(plan.batches) if site.party in batch.holders]
    sizes = {index: (plan.batches[index].counts,) for index in mine}
    given = {index: shares.shape for index, shares in counts.items()}
    if given != sizes:
        raise ValueError(f"counts must have the shapes {sizes}, got {given}")
    if mine and plan.counts.bits > site.commitments.ring.bits:
        bits = site.commitments.ring.bits
        raise ValueError(f"high * low must divide 2**{bits}, got 2**{plan.counts.bits}")
    site.use(plan.name)
    values = {index: np.zeros(size, plan.ring.dtype) for index, size in sizes.items()}
    for number, part in enumerate(plan.parts):
        slices = {s.batch: s for s in part if s.batch in values}
        lookups = {
            i: _start(site, plan, each, counts[i][each.start : each.stop])
            for i, each in slices.items()
        }
        dealer = site.commitments.dealer
        shares = yield from together(lookups, plan, number, dealer)
        for index, each in slices.items():
            values[index][each.start : each.stop] = shares[index]
    return values


def _start(site: Holder, plan: LookupPlan, part: Slice, counts: Elements) -> Lookup:
    ring = plan.counts
    own = counts.astype(ring.dtype)  # modulo high * low, which divides the ring of the counts
    masks, dealer = Masks(site.dealer_key, plan, part), site.commitments.dealer
    pair = len(plan.batches[part.batch].holders) == 2
    protocol = two_sites.look_up if pair else many_sites.look_up
    return protocol(plan, part, masks, site.party, dealer, ring.reduce(own))


def deal_lookups(keys: Mapping[Party, Stream], plan: LookupPlan) -> Program[None]:
    """Deal the masks of a plan's lookups, part by part; expect nothing."""
    for number, part in enumerate(plan.parts):
        outgoing: dict[Party, list[Packed]] = {}
        for each in part:
            outgoing.setdefault(plan.dealt_to(each), []).append(_deal(keys, plan, each))
        name = plan.part_label(number, 0)
        yield from send({to: Dealt(np.concatenate(v), name) for to, v in outgoing.items()})


def _deal(keys: Mapping[Party, Stream], plan: LookupPlan, part: Slice) -> Packed:
    masks = [Masks(keys[holder], plan, part) for holder in plan.batches[part.batch].holders]
    return two_sites.deal(*masks) if len(masks) == 2 else many_sites.deal(masks)
