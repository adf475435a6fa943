"""Estimates of the number of parties: right within a factor of two; noise diluted by them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_mpc.membership import Estimates, tolerable_dropouts
from vertibayes_mpc.noise import DilutedGeometric


def names(count):
    return [f"p{i}" for i in range(count)]


def holds(values):
    n = len(values)
    return all(n < 2 * u <= 2 * n for u in values.values())


def walk(estimates, steps, seed):
    """Join and leave at random; return in how many steps the invariant was violated."""
    generator, violations, fresh = np.random.default_rng(seed), 0, 0
    for _ in range(steps):
        members = list(estimates.values)
        if generator.random() < 0.5 or len(members) < 2:
            estimates.join(f"new{fresh}")
            fresh += 1
        else:
            estimates.leave(members[generator.integers(len(members))])
        violations += not holds(estimates.values)
    return violations


class MaximumOfTheRemaining(Estimates):
    """A reading of the print: nothing is done unless two of those who remain share the maximum."""

    def leave(self, party):
        left, n = self.values.pop(party), len(self.values)
        largest = max(self.values.values())
        both = [member for member, u in self.values.items() if u == largest]
        if len(both) > 1:
            self.values |= {both[1]: left, both[0]: n // 2 + 1}


class MaximumOfAll(Estimates):
    """The other reading: the maximum is taken while the leaver is still there."""

    def leave(self, party):
        left, n = self.values[party], len(self.values) - 1
        largest = max(self.values.values())
        both = [member for member, u in self.values.items() if u == largest]
        if len(both) > 1:
            self.values |= {both[1]: left, both[0]: n // 2 + 1}
        del self.values[party]


@pytest.mark.parametrize("start", [0, 1, 7, 50])
def test_estimates_stay_right_within_a_factor_of_two(start):
    assert walk(Estimates(names(start)), 7_500, seed=start) == 0


@pytest.mark.parametrize("reading", [MaximumOfTheRemaining, MaximumOfAll])
def test_the_readings_of_the_print_do_not(reading):
    assert walk(reading(names(50)), 7_500, seed=50) > 1_000


@given(st.integers(0, 12), st.lists(st.integers(-1, 30), max_size=60))
def test_estimates_are_always_those_of_a_new_start(start, steps):
    # Stronger than the bounds: as a multiset they are what Algorithm 1 sets at first.
    estimates = Estimates(names(start))
    for i, step in enumerate(steps):
        before = dict(estimates.values)
        members = sorted(before)
        if step < 0 or not members:
            changes = estimates.join(f"new{i}")
            assert f"new{i}" in changes
        else:
            changes = estimates.leave(members[step % len(members)])
        assert len(changes) <= 2
        assert estimates.values == {
            party: changes.get(party, before.get(party)) for party in estimates.values
        }
        assert holds(estimates.values)
        fresh = Estimates(names(len(estimates.values)))
        assert sorted(estimates.values.values()) == sorted(fresh.values.values())


def test_estimates_at_first_are_as_printed():
    assert list(Estimates(names(6)).values.values()) == [4, 4, 5, 5, 6, 6]
    assert list(Estimates(names(5)).values.values()) == [3, 4, 4, 5, 5]
    assert list(Estimates([]).values.values()) == []


def test_strangers_and_doubles_are_refused():
    estimates = Estimates("ab")
    for wrong, reason in (
        (lambda: estimates.join("a"), "a is a member already"),
        (lambda: estimates.leave("c"), "c is not a member"),
        (lambda: Estimates("aa"), "appears twice"),
    ):
        with pytest.raises(ValueError, match=reason):
            wrong()


# ---- dilution ------------------------------------------------------------------------------------


def dilution(estimate, gamma, delta):
    return min(math.log(1 / delta) / (gamma * estimate), 1.0)


def test_a_party_dilutes_its_noise_by_its_estimate():
    noise = DilutedGeometric(eps=1.0, delta=1e-5, gamma=0.8, n=30)
    assert noise.beta == pytest.approx(dilution(30, 0.8, 1e-5), rel=1e-12)


def silence(members, noisy, gamma, delta):
    """Return the probability that none of the least noisy parties adds noise."""
    estimates = sorted(Estimates(names(members)).values.values(), reverse=True)
    return math.prod(1 - dilution(u, gamma, delta) for u in estimates[:noisy])


@pytest.mark.parametrize("members", [2, 9, 40, 333])
@pytest.mark.parametrize("gamma", [0.3, 0.8, 1.0])
def test_some_honest_party_adds_noise_except_with_probability_delta(members, gamma):
    dishonest = members // 9
    if dishonest + math.ceil(gamma * members) > members:
        dishonest = 0
    gone = tolerable_dropouts(members, dishonest, gamma)
    noisy = members - dishonest - gone
    assert silence(members, noisy, gamma, 1e-5) <= 1e-5


def test_drop_outs_that_are_not_counted_break_the_guarantee():
    assert silence(100, 100 - tolerable_dropouts(100, 0, 0.6), 0.6, 1e-5) <= 1e-5
    assert silence(100, 60, 1.0, 1e-5) > 1e-4


@given(st.integers(1, 300), st.floats(0.05, 1), st.floats(1e-9, 0.5))
def test_the_copies_of_noise_are_at_most_twice_those_wanted(members, gamma, delta):
    wanted = math.log(1 / delta) / gamma
    copies = [dilution(u, gamma, delta) for u in Estimates(names(members)).values.values()]
    assert sum(copies) <= 2 * wanted
    if max(copies) < 1:
        assert sum(copies) >= wanted * (1 - 1e-12)


def test_too_many_dishonest_are_refused():
    assert tolerable_dropouts(10, 2, 0.5) == 3
    assert tolerable_dropouts(100, 93, 0.07) == 0, "0.07 * 100 is above 7 in floating point"
    with pytest.raises(ValueError, match="gamma must be above 0 and at most 1, got 0"):
        tolerable_dropouts(10, 0, 0)
    with pytest.raises(ValueError, match="6 of 10 dishonest"):
        tolerable_dropouts(10, 6, 0.5)
