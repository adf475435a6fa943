import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc.alignment import (
    AlignmentPlan,
    Member,
    deal_people,
    match_people,
    place_people,
    share_people,
)
from mpc.errors import (
    TooFewPeopleError,
)
from mpc.randomness import StreamKey, label
from mpc.ring import Ring
from mpc.scheduler import run_all
from tests.randomness import SeededRandomness

RINGS = (Ring(24), Ring(48))


def plan_of(lists, everyone=None, level=1, sizes=None, **more):
    sites = tuple(lists)
    return AlignmentPlan(
        b"run",
        sites,
        {site: len(lists[site]) for site in sites} | (sizes or {}),
        "analyst",
        sites if everyone is None else everyone,
        dealer="dealer" if level == 2 else "",
        rows=dict.fromkeys(sites, RINGS) if level == 2 else {},
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
    keys = {site: StreamKey(label("dealer key", site)) for site in lists}
    result = {"analyst": match_people(plan, SeededRandomness(seed + b"analyst"))}
    for site, people in lists.items():
        randomness = SeededRandomness(seed + site.encode())
        member = Member(site, StreamKey(bytes(32)), randomness, keys[site])
        if plan.level == 1:
            result[site] = place_people(member, plan, people)
        else:
            result[site] = share_people(member, plan, people, (rows or rows_of(lists))[site])
    if plan.level == 2:
        result["dealer"] = deal_people(keys, plan)
    return result


def align(plan, lists, **more):
    return run_all(programs(plan, lists, **more))[0]


def added_up(plan, outputs, owner):
    """Add the shares of all sites: the rows of one site, over the study's people."""
    rings = enumerate(plan.rings(owner))
    shares = [outputs[site].shares[owner] for site in plan.sites]
    return [ring.reduce(sum(share[at] for share in shares)) for at, ring in rings]


@st.composite
def worlds(draw):
    """Lists of 2 to 5 sites, who must be in all of which, and padded sizes."""
    sites = "abcde"[: draw(st.integers(2, 5))]
    people = st.lists(st.integers(0, 6), unique=True, min_size=1)
    lists = {site: [b"%d" % person for person in draw(people)] for site in sites}
    everyone = tuple(draw(st.lists(st.sampled_from(sites), unique=True)))
    padding = {site: draw(st.integers(0, 2)) for site in sites}
    exact = plan_of(lists, everyone).exact
    sizes = {s: len(lists[s]) + (0 if s in exact else padding[s]) for s in sites}
    return lists, everyone, sizes


def joined(lists, everyone):
    """The oracle: who is in the study."""
    if not everyone:
        return set().union(*lists.values())
    return set.intersection(*(set(lists[site]) for site in everyone))


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_sites_learn_the_places_of_the_people_whom_a_join_has(world):
    lists, everyone, sizes = world
    plan, study = plan_of(lists, everyone, sizes=sizes), joined(lists, everyone)
    if not study:
        with pytest.raises(TooFewPeopleError, match="write identifiers differently"):
            align(plan, lists)
        return
    outputs = align(plan, lists)
    person = {}
    for site, people in lists.items():
        assert outputs[site].people == outputs["analyst"].people == len(study)
        places = outputs[site].places
        assert places.dtype == np.int64 and len(places) == len(people)
        for place, identifier in zip(places.tolist(), people, strict=True):
            assert (place >= 0) == (identifier in study)
            assert place < 0 or person.setdefault(place, identifier) == identifier
    assert set(person) <= set(range(len(study))) and len(set(person.values())) == len(person)
    padding = sum(sizes[site] - len(lists[site]) for site in lists)
    people = len(set().union(*lists.values()))
    assert sum(outputs["analyst"].regions.values()) == people + padding
    for region, count in outputs["analyst"].regions.items():
        inside = joined(lists, region) - set().union(*(lists[s] for s in lists if s not in region))
        assert len(region) == 1 or len(inside) == count


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_sites_share_the_rows_of_the_people_whom_a_join_has(world):
    lists, everyone, sizes = world
    plan, study = plan_of(lists, everyone, 2, sizes=sizes), joined(lists, everyone)
    if not study:
        with pytest.raises(TooFewPeopleError):
            align(plan, lists)
        return
    outputs = align(plan, lists)
    rows = rows_of(lists)
    cells = []
    for site, people in lists.items():
        held = [dict(zip(people, column.tolist(), strict=True)) for column in rows[site]]
        cells += [[column.get(person, 0) for person in study] for column in held]
    shared = [column.tolist() for site in lists for column in added_up(plan, outputs, site)]
    assert sorted(zip(*shared, strict=True)) == sorted(zip(*cells, strict=True))
    assert outputs["dealer"] == outputs["analyst"].people == len(study)
