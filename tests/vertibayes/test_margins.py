"""Margins of a race: each event of their proof, and simulations where the bounds are near."""

from math import exp, log, log1p

import numpy as np
import pytest

from vertibayes.choosing.margins import (
    EVENTS,
    FAILURE,
    SCALES,
    Gain,
    _most_mean,
    _most_penalty,
    certainty,
    gain_of,
)
from vertibayes.table_scores import k2_scores, log_likelihoods

SURE = 15.0


def gain(**given):
    whole = {"records": 1000, "mean": 0.1, "deviation": 0.5, "states": 3, "before": 4, "after": 12}
    return Gain(**(whole | given))


def gain_by_scores(table, score):
    """The gain over all records: axes of child, parents before, further parents."""
    with_it, without = score([table, table.sum(axis=2)])
    return with_it - without


@pytest.mark.parametrize("free", [1, 2, 6, 50, 1000])
def test_the_entropy_bound_has_the_probability_of_agrawals(free):
    s = gain(states=2)._most_entropy(free, SURE) * 1000
    assert free - s + free * log(s / free) <= -SURE  # of the Chernoff bound, (s / d)^d e^(d - s)
    assert s <= 1.2 * (free + SURE + free**0.5 * 6)


def test_the_entropy_of_samples_is_below_its_bound():
    generator, p = np.random.default_rng(1), np.array([0.001, 0.009, 0.09, 0.9])
    q = generator.multinomial(500, p, 20_000) / 500
    entropy = np.where(q > 0, q * np.log(np.maximum(q, 1e-9) / p), 0.0).sum(axis=1)
    shown = gain(records=500, states=4)
    assert (entropy > shown._most_entropy(1, log(20))).mean() < 0.05
    assert (entropy > shown._most_entropy(1, 0.0)).mean() > 0.05


@pytest.mark.parametrize("u", SCALES)
def test_means_of_exponentials_are_at_most_one(u):
    generator, lowest = np.random.default_rng(2), 12.0
    slope, square = u / lowest, (-log1p(-u) - u) / lowest**2
    for scale in (0.1, 1, 10):
        p, x = generator.dirichlet(np.ones(6)), generator.normal(0, scale, 6) ** 3
        x = np.maximum(x, -lowest / 2)
        x -= (p * x).sum()
        if x.min() >= -lowest:
            assert (p * np.exp(slope * x - square * x**2)).sum() <= 1 + 1e-12


@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_the_mean_is_where_an_event_of_some_scale_ends(spread):
    lowest, share = 15.0, 2e-4
    most = _most_mean(lowest, spread, share)
    ends = [
        (-log1p(-u) - u) / lowest**2 * (spread**2 + most**2) + share - u / lowest * most
        for u in SCALES
    ]
    assert min(ends) == pytest.approx(0, abs=1e-12)
    assert _most_mean(lowest, spread, 1.0) == lowest  # so few records bound nothing


def test_logarithms_of_frequencies_are_near_in_terms_of_entropy():
    n = 1e6
    w = np.geomspace(1 / n, n, 10_000)
    assert (np.log(w) ** 2 <= (2 + log(n)) * (w - 1 - np.log(w)) + 1e-9).all()


def test_k2_scores_lie_within_the_penalty_below_the_log_likelihood():
    generator = np.random.default_rng(3)
    for states, configurations in ((2, 1), (3, 4), (5, 9)):
        p = generator.dirichlet(np.full(states * configurations, 0.3))
        table = generator.multinomial(2000, p).reshape(states, configurations)
        k2, likelihood = k2_scores([table])[0], log_likelihoods([table])[0]
        assert likelihood - _most_penalty(2000, configurations, states) <= k2 <= likelihood
    even = np.full((2, 1), 0)
    even[0] = 2000  # the bound is reached: one state alone, C(N + r - 1, r - 1) = N + 1
    assert k2_scores([even])[0] == pytest.approx(-_most_penalty(2000, 1, 2))


def test_the_events_of_all_calls_fail_together_with_less_than_the_stated_probability():
    sizes = [1, 700, 30_000, *[5] * 10_000]
    failure = sum(EVENTS * n * exp(-certainty(n, k)) for k, n in enumerate(sizes, start=1))
    assert 0.99 * FAILURE < failure < FAILURE == 1e-6


def test_a_gain_is_that_of_log_likelihoods():
    table = np.random.default_rng(4).integers(0, 40, (3, 4, 2))
    table[0, 1] = 0
    shown = gain_of(table)
    assert shown.mean * table.sum() == pytest.approx(gain_by_scores(table, log_likelihoods))
    assert shown[3:] == (3, 4, 8) and shown.records == table.sum()


def test_the_bounds_have_all_their_parts():
    """Computed by hand from the text: each part of the margin counts."""
    low, high = gain().bounds(100_000, SURE, "likelihood")
    few, many = (8 + 240**0.5 + 15) / 1000, (24 + 720**0.5 + 15) / 1000
    spread = 0.5 + (2 + log(100_000)) ** 0.5 * (few**0.5 + many**0.5)
    off = _most_mean(log(300_000), spread, 0.015)
    assert low == pytest.approx(100_000 * (0.1 - off - many))
    assert high == pytest.approx(100_000 * (0.1 + off + few))
    assert gain().bounds(100_000, SURE, "k2") == pytest.approx(
        (low - _most_penalty(100_000, 12, 3), high + _most_penalty(100_000, 4, 3))
    )


POPULATIONS = {
    "independent": np.outer([0.7, 0.3], [0.5, 0.5]),
    "a weak gain": np.array([[0.37, 0.33], [0.13, 0.17]]),
    "a rare state that the parent determines": np.array([[0.998, 0.0], [0.0, 0.002]]),
    "rare states of both": np.array([[0.9985, 0.0005], [0.0005, 0.0005]]),
    "a copy": np.diag([0.5, 0.5]),
    "many configurations": np.outer([0.5, 0.5], np.full(40, 1 / 40)),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("score", ["k2", "likelihood"])
def test_gains_over_all_records_lie_within_the_bounds_of_samples(name, score):
    """At a probability of failure of 0.05 a sample, 1,000 samples of 2,000 records of 20,000."""
    generator, records = np.random.default_rng(5), 20_000
    shares = POPULATIONS[name]
    counts = np.floor(shares.ravel() * records).astype(int)
    counts[0] += records - counts.sum()
    table = counts.reshape(shares.shape[0], 1, -1)
    exact = gain_by_scores(table, k2_scores if score == "k2" else log_likelihoods)
    missed = 0
    for cells in generator.multivariate_hypergeometric(counts, 2000, 1000):
        low, high = gain_of(cells.reshape(table.shape)).bounds(records, log(EVENTS / 0.05), score)
        missed += not low <= exact <= high
    assert missed <= 50
