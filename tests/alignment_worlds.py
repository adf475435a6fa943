"""All parties of an alignment, with repeatable randomness."""

import numpy as np

from tests.randomness import SeededRandomness
from vertibayes_mpc.alignment import (
    AlignmentPlan,
    Member,
    deal_people,
    match_people,
    place_people,
    share_people,
)
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all

RINGS = (Ring(24), Ring(48))


def plan_of(lists, everyone=None, level=1, sizes=None, rings=RINGS, **more):
    sites = tuple(lists)
    return AlignmentPlan(
        b"run",
        sites,
        {site: len(lists[site]) for site in sites} | (sizes or {}),
        "analyst",
        sites if everyone is None else everyone,
        dealer="dealer" if level == 2 else "",
        rows=dict.fromkeys(sites, rings) if level == 2 else {},
        **more,
    )


def rows_of(lists):
    """Row elements that name the site and the person."""
    return {
        site: [
            np.array([ring.bits * 1000 + 7 * at + int(p) for p in people], ring.dtype)
            for ring in RINGS
        ]
        for at, (site, people) in enumerate(lists.items())
    }


def programs(plan, lists, rows=None, seed=b""):
    """Return the programs of all parties; the seed gives all keys."""
    dealer, keys = (
        {site: StreamKey(label("dealer key", seed, site)) for site in lists} for _ in range(2)
    )
    result = {"analyst": match_people(plan, SeededRandomness(seed + b"analyst"))}
    for site, people in lists.items():
        randomness = SeededRandomness(seed + site.encode())
        member = Member(site, StreamKey(bytes(32)), randomness, keys[site])
        if plan.level == 1:
            result[site] = place_people(member, plan, people)
        else:
            result[site] = share_people(member, plan, people, (rows or rows_of(lists))[site])
    if plan.level == 2:
        result["dealer"] = deal_people(dealer, plan)
    return result


def align(plan, lists, **more):
    return run_all(programs(plan, lists, **more))[0]
