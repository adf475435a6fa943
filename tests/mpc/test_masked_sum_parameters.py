"""Neighbourhoods: the bounds, against scipy and against drawn circles, and the circles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from vertibayes_mpc.masked_sum import (
    Neighbourhood,
    compromise_probability,
    failure_probability,
    smallest_neighbourhood,
)
from vertibayes_mpc.masked_sum.plan import at_least
from vertibayes_mpc.masked_sum.roster import Circle

pytestmark = pytest.mark.laws


@given(st.integers(1, 300), st.data())
def test_the_tail_is_that_of_the_hypergeometric_distribution(population, data):
    marked = data.draw(st.integers(0, population))
    drawn = data.draw(st.integers(0, population))
    count = data.draw(st.integers(-2, population + 2))
    expected = hypergeom.sf(count - 1, population, marked, drawn)
    assert at_least(count, population, marked, drawn) == pytest.approx(
        expected, rel=1e-7, abs=1e-290
    )


@pytest.mark.parametrize(
    ("parties", "corrupt", "dropped", "found"),
    [
        (2, 0, 0, (1, 2)),
        (3, 0, 1, (2, 2)),
        (5, 1, 1, (4, 4)),
        (10, 1, 4, (9, 6)),
        (100, 5, 5, (24, 19)),
        (1000, 50, 50, (80, 62)),
        (1000, 100, 100, (154, 116)),
        (10_000, 1000, 1000, (200, 149)),
    ],
)
def test_known_neighbourhoods(parties, corrupt, dropped, found):
    neighbourhood = smallest_neighbourhood(parties, corrupt, dropped)
    assert neighbourhood == found
    assert compromise_probability(parties, neighbourhood, corrupt) <= 2**-40
    assert failure_probability(parties, neighbourhood, dropped) <= 2**-20
    degree, threshold = neighbourhood
    assert 2 * threshold > degree + 1
    if degree < parties - 1:
        for t in range(degree // 2, degree):
            fewer = Neighbourhood(degree - 2, t)
            safe = compromise_probability(parties, fewer, corrupt) <= 2**-40
            assert not (safe and failure_probability(parties, fewer, dropped) <= 2**-20)


@pytest.mark.parametrize(
    ("parties", "corrupt", "dropped"), [(2, 1, 1), (10, 1, 5), (9, 3, 3), (3, 3, 0)]
)
def test_too_many_are_corrupt_or_drop_out(parties, corrupt, dropped):
    with pytest.raises(
        ValueError, match=f"{parties} parties: {corrupt} corrupt, {dropped} dropped"
    ):
        smallest_neighbourhood(parties, corrupt, dropped)


@pytest.mark.parametrize(
    ("parties", "neighbourhood", "corrupt", "dropped"),
    [(60, Neighbourhood(12, 9), 6, 8), (200, Neighbourhood(20, 15), 20, 16)],
)
def test_the_bounds_hold_on_drawn_circles(parties, neighbourhood, corrupt, dropped):
    """Bounds, and not far from what happens: how often over circles of the smallest roster."""
    degree, threshold = neighbourhood
    generator = np.random.default_rng(4)
    roster, half = neighbourhood.quorum(parties), degree // 2

    def sides(count, size):
        """Return how many are marked among the k/2 before, and the k/2 after, each place."""
        marks = generator.permutation(np.arange(size) < count).astype(int)
        after = np.array([np.roll(marks, -i)[1 : half + 1].sum() for i in range(size)])
        return marks, np.roll(after, half + 1), after

    compromised, failed, runs = 0, 0, 1500
    for _ in range(runs):
        marks, before, after = sides(corrupt, roster)
        both_seeds = before + after >= 2 * threshold - degree - 1
        cut = np.maximum(before, after) >= threshold - 1 - half
        assert np.all(cut | ~both_seeds), "the first includes the second"
        compromised += bool(np.any(cut & (marks == 0)))
        marks, before, after = sides(dropped, parties)
        failed += bool(np.any(1 - marks + degree - before - after < threshold))
    for times, bound in (
        (compromised, compromise_probability(parties, neighbourhood, corrupt)),
        (failed, failure_probability(parties, neighbourhood, dropped)),
    ):
        found, error = times / runs, 3 / np.sqrt(runs)
        assert 0.01 < found < bound + error, "the test is about events that happen"


@pytest.mark.parametrize(("k", "t", "corrupt"), [(20, 16, 12), (40, 30, 20), (40, 26, 7)])
def test_the_bound_is_the_tail_for_each_side_of_each_party(k, t, corrupt):
    roster = math.ceil(200 * t / (k + 1))
    side = hypergeom.sf(t - 2 - k // 2, roster - 1, corrupt, k // 2)
    found = compromise_probability(200, Neighbourhood(k, t), corrupt)
    assert 0 < found == pytest.approx(min(1, 2 * roster * side))


def test_bounds_of_the_complete_graph_are_certainties():
    assert compromise_probability(9, Neighbourhood(8, 6), 2) == 0
    assert compromise_probability(9, Neighbourhood(8, 6), 3) == 1
    assert failure_probability(9, Neighbourhood(8, 6), 3) == 0
    assert failure_probability(9, Neighbourhood(8, 6), 4) == 1


# ---- circles -------------------------------------------------------------------------------------


@st.composite
def rosters(draw):
    places = draw(st.sets(st.integers(0, 40), min_size=1, max_size=25))
    half = draw(st.integers(1, 5))
    neighbourhood = Neighbourhood(2 * half, draw(st.integers(half + 1, 2 * half + 1)))
    return (
        np.array(sorted(places), np.uint32),
        neighbourhood,
        draw(st.binary(min_size=32, max_size=32)),
    )


@settings(deadline=None)
@given(rosters(), st.data())
def test_neighbours_are_mutual_and_as_many_as_wanted(roster, data):
    places, neighbourhood, seed = roster
    circle = Circle(places, neighbourhood, seed)
    around = {place: circle.around(place).tolist() for place in places.tolist()}
    for place, members in around.items():
        assert place in members and members == sorted(set(members))
        assert len(members) == min(neighbourhood.degree + 1, len(places))
        assert all(place in around[member] for member in members)
    left = data.draw(st.sets(st.sampled_from(places.tolist())))
    of = data.draw(st.sets(st.sampled_from(places.tolist())))
    short = circle.short(*(np.array(sorted(some), np.uint32) for some in (of, left)))
    wanted = neighbourhood.threshold
    assert short.tolist() == [p for p in sorted(of) if len(left & set(around[p])) < wanted]


def test_a_circle_follows_from_its_seed_and_is_a_uniform_choice():
    places, neighbourhood = np.arange(9, dtype=np.uint32), Neighbourhood(2, 2)
    draw = [Circle(places, neighbourhood, i.to_bytes(32, "big")) for i in range(3000)]
    again = Circle(places, neighbourhood, (7).to_bytes(32, "big"))
    assert again.around(3).tolist() == draw[7].around(3).tolist()
    counts = np.bincount(np.concatenate([circle.around(0)[1:] for circle in draw]), minlength=9)
    assert counts[0] == 0 and counts.sum() == 6000
    assert ((counts[1:] - 750) ** 2 / 750).sum() < 30  # 7 degrees, p = 1e-4
