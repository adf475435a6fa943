"""The dealer's program at level 2: the masks of the rows that are in the study."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.alignment.chain import row_mask
from vertibayes_mpc.alignment.messages import (
    Chosen,
    Outgoing,
    Packed,
    RowMasks,
    check_numbers,
    empty_rows,
    expect_outcome,
    incoming_numbers,
    pack_rows,
    transfer,
)
from vertibayes_mpc.alignment.plan import AlignmentPlan
from vertibayes_mpc.alignment.site import shares_of
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program


def deal_people(keys: Mapping[Party, Stream], plan: AlignmentPlan) -> Program[int]:
    """Follow the masks of the rows through the sites' orders; return the number of people.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : AlignmentPlan
        The plan, of level 2.

    Raises
    ------
    MalformedMessageError
        If places recur: the table of one person would be counted several times.
    TooFewPeopleError, PeopleNotApartError
        As all sites.
    """
    people, _ = yield from expect_outcome(plan)
    chosen = {owner: np.empty(people, np.int64) for owner in plan.sites}
    for owner, places in chosen.items():
        yield from transfer(plan, Chosen, (), [incoming_numbers(plan.matcher, owner, places)])
        check_numbers(places, plan.sizes[owner], plan.matcher, all_in=owner in plan.everyone)
    for owner, places in chosen.items():
        masks = _masks(keys, plan, owner, places)
        yield from transfer(plan, RowMasks, [_outgoing_masks(plan, owner, masks, people)])
    return people


def _masks(
    keys: Mapping[Party, Stream], plan: AlignmentPlan, owner: Party, chosen: NDArray[np.int64]
) -> list[Elements]:
    """Return what the first site must subtract: the masks of the rows, and the others' shares."""
    rings = plan.rings(owner)
    totals = empty_rows(rings, len(chosen))
    inside, places = chosen >= 0, chosen[chosen >= 0]
    for site in reversed(plan.chain(owner)):
        for at, ring in enumerate(rings):
            totals[at][inside] += row_mask(plan, keys[site], owner, at, ring)[places]
        if site != owner:
            places = keys[site].permutation(plan.name("order", owner), plan.sizes[owner])[places]
    for site in plan.sites[1:]:
        shares = shares_of(plan, keys[site], owner, len(chosen))
        for total, share in zip(totals, shares, strict=True):
            total += share
    return [ring.reduce(total) for ring, total in zip(rings, totals, strict=True)]


def _outgoing_masks(
    plan: AlignmentPlan, owner: Party, masks: list[Elements], people: int
) -> Outgoing:
    rings = plan.rings(owner)

    def load(piece: slice) -> Packed:
        return pack_rows(rings, masks, piece)

    return Outgoing(plan.sites[0], owner, people, plan.row_bytes(owner), load)
