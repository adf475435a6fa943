"""The two kinds of masks: those of pairs, which cancel in the sum, and a party's own."""

from __future__ import annotations

from collections.abc import Mapping

from vertibayes_mpc.masked_sum.plan import SumPlan
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.sharing import zero_share


def pair_masks(plan: SumPlan, party: Party, peers: Mapping[Party, Stream]) -> Elements:
    """Return the sum of a party's masks with its neighbours."""
    return zero_share(party, peers, plan.ring, label("pair mask", plan.label), plan.length)


def own_mask(plan: SumPlan, seed: Stream) -> Elements:
    """Return a party's self-mask."""
    return seed.elements(plan.ring, label("self mask", plan.label), (plan.length,))
