"""What noise promises, computed exactly; and the attacks on noise that promises it in vain.

The long version of the first tests, over all n and gamma, is `benchmarks/theorem_1.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.noise_law import (
    delta_at,
    diluted_law,
    fit,
    geometric_law,
    largest_ratio,
    point,
    polya_law,
)
from tests.randomness import SeededRandomness
from vertibayes_mpc.noise import DilutedGeometric, DiscreteLaplace, PolyaShare

EPS, DELTA = 0.5, 1e-5


def honest_of(n, gamma):
    return math.ceil(gamma * n - 1e-9)


# ---- Theorem 1, exactly --------------------------------------------------------------------------


@pytest.mark.parametrize("Delta", [1, 3])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [10, 100, 10_000])
def test_the_honest_parties_noise_is_private(n, gamma, Delta):
    noise = DilutedGeometric(eps=EPS, Delta=Delta, delta=DELTA, gamma=gamma, n=n)
    none, law = diluted_law(EPS / Delta, noise.beta, honest_of(n, gamma))
    assert none <= DELTA
    assert largest_ratio(law, Delta) <= math.exp(EPS) * (1 + 1e-9)
    whole = none * point(EPS / Delta) + (1 - none) * law
    assert delta_at(whole, EPS, Delta) <= DELTA


def test_the_test_of_theorem_1_rejects_an_eighth_of_beta():
    noise = DilutedGeometric(eps=EPS, delta=DELTA, gamma=0.5, n=100)
    none, law = diluted_law(EPS, noise.beta / 8, 50)
    assert none > DELTA
    assert delta_at(none * point(EPS) + (1 - none) * law, EPS, 1) > 10 * DELTA


def test_the_test_of_theorem_1_rejects_more_liars_than_gamma_says():
    noise = DilutedGeometric(eps=EPS, delta=DELTA, gamma=1.0, n=100)
    none, law = diluted_law(EPS, noise.beta, 10)
    assert none > DELTA
    assert delta_at(none * point(EPS) + (1 - none) * law, EPS, 1) > 10 * DELTA


def test_half_of_beta_is_enough_against_who_knows_the_sum_alone():
    """The theorem pays for an adversary who knows the coins; to another the copies blur the 0."""
    noise = DilutedGeometric(eps=EPS, delta=DELTA, gamma=0.5, n=100)
    none, law = diluted_law(EPS, noise.beta / 2, 50)
    assert none > DELTA, "who knows the coins, knows that nothing was added"
    assert largest_ratio(none * point(EPS) + (1 - none) * law, 1) < math.exp(EPS)


def test_the_test_of_theorem_1_rejects_a_sensitivity_that_is_too_small():
    none, law = diluted_law(EPS, 1.0, 1)
    assert none == 0 and largest_ratio(law, 2) > math.exp(EPS) * 1.1


def test_what_is_drawn_has_the_law_that_was_computed():
    """20 honest parties of 40: drawn, not computed."""
    noise = DilutedGeometric(
        eps=EPS, delta=0.05, gamma=0.5, n=40, randomness=SeededRandomness(b"honest")
    )
    none, law = diluted_law(EPS, noise.beta, 20)
    total = sum(noise(4000) for _ in range(20))
    assert fit(total, none * point(EPS) + (1 - none) * law) > 1e-6
    assert fit(total, geometric_law(EPS)) < 1e-9


def test_parties_seldom_add_no_noise_at_all():
    noise = DilutedGeometric(
        eps=EPS, delta=0.05, gamma=1.0, n=10, randomness=SeededRandomness(b"coins")
    )
    silent = ~np.any([noise._heads(20_000) for _ in range(10)], axis=0)
    wanted = (1 - noise.beta) ** 10
    assert wanted <= 0.05 and abs(silent.mean() - wanted) < 5 * math.sqrt(wanted / 20_000)


# ---- Polya shares --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 10])
def test_shares_of_all_who_are_trusted_are_private(n):
    law = polya_law(EPS, 1 / n)
    total = law
    for _ in range(n - 1):
        total = np.convolve(total, law, mode="same")
    inside = slice(len(total) // 2 - 60, len(total) // 2 + 61)
    ratios = total[inside] / np.roll(total, 1)[inside]
    assert ratios.max() <= math.exp(EPS) * (1 + 1e-9)


def test_shares_without_one_of_them_are_not():
    for n in (2, 10):
        law = polya_law(EPS, (n - 1) / n)
        assert law.max() / law[len(law) // 2 + 1] > math.exp(EPS) * 1.05
        assert delta_at(law, EPS, 1) > 0.01


def test_shares_for_the_honest_part_of_the_parties_are_private():
    """gamma = 1/2: shares of 1/5 from 10 parties; the five honest ones add a whole copy."""
    shares = [PolyaShare(eps=EPS, n=5, randomness=SeededRandomness(b"%d" % i)) for i in range(5)]
    assert fit(sum(share(4000) for share in shares), geometric_law(EPS)) > 1e-3
    assert math.isclose(10 * shares[0].copies, 2)


# ---- floating point, attacked --------------------------------------------------------------------


def is_reachable(output, count):
    """Whether `count` plus some float is `output`: else it certifies that the count is another."""
    nearest = output - count
    tries = (nearest, math.nextafter(nearest, math.inf), math.nextafter(nearest, -math.inf))
    return any(count + noise == output for noise in tries)


def test_numpys_laplace_gives_a_count_away():
    """Mironov (2012): the floats that 0 + noise takes are not those that 1 + noise takes."""
    outputs = np.random.default_rng(1).laplace(scale=1.0, size=20_000).tolist()
    certified = [not is_reachable(output, 1.0) for output in outputs]
    assert np.mean(certified) > 0.4
    assert all(is_reachable(1.0 + noise, 1.0) for noise in outputs), "no certificate is false"


@pytest.mark.parametrize("noise", [DiscreteLaplace(eps=1.0), PolyaShare(eps=1.0, n=1)])
def test_our_noise_gives_no_count_away(noise):
    """Both counts have all integers as outputs, and each as often, but for a factor of e."""
    outputs = noise(4000)
    assert all(is_reachable(float(output), 1.0) for output in outputs)
    law = geometric_law(1.0)
    assert fit(outputs, law) > 1e-6 and largest_ratio(law, 1) <= math.e * (1 + 1e-12)
