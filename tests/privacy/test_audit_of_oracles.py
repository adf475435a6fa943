"""An empirical audit of every frequency oracle: the measured eps stays below the promised one.

The audit's confidence is 0.9999. Each test has a control in which half the noise fails the audit.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from tests.privacy.audit import audited_eps
from tests.randomness import SeededRandomness
from vertibayes_mpc.oracles import ORACLES

pytestmark = pytest.mark.laws

EPS, DOMAIN, RUNS = 0.7, 6, 100_000
PURE = [name for name in ORACLES if name != "she"]


def reports_of(oracle, seed):
    """Return the mechanism of one report, for the neighbours 0 and 1: its values or its bits."""

    def mechanism(neighbour, runs):
        randomness = SeededRandomness(b"%s %d" % (seed, neighbour))
        reports = oracle.perturb(np.full(runs, neighbour), randomness)
        return (
            np.unpackbits(reports, axis=1, count=DOMAIN) if reports.dtype == np.uint8 else reports
        )

    return mechanism


@pytest.mark.parametrize("name", PURE)
def test_the_measured_eps_of_a_report_is_at_most_the_promised_one(name):
    oracle = ORACLES[name](eps=EPS, domain=DOMAIN)
    assert 0.8 * EPS < audited_eps(reports_of(oracle, b"kept"), RUNS) <= EPS


@pytest.mark.parametrize("name", PURE)
def test_half_the_noise_fails_the_audit(name):
    oracle = ORACLES[name](eps=2 * EPS, domain=DOMAIN)
    assert audited_eps(reports_of(oracle, b"broken"), RUNS) > EPS


def test_the_noise_of_a_sum_keeps_the_promise_and_half_of_it_does_not():
    """OpenDP draws ten microseconds per cell: the control takes fewer runs."""
    kept, broken = (ORACLES["she"](eps=eps, domain=2) for eps in (EPS, 2 * EPS))
    assert 0.8 * EPS < audited_eps(reports_of(kept, b""), RUNS) <= EPS
    assert audited_eps(reports_of(broken, b""), RUNS // 4) > EPS


# ---- the audit itself ----------------------------------------------------------------------------


def added(noise):
    return lambda neighbour, runs: neighbour + noise(runs)


@pytest.mark.parametrize("eps", [0.5, 1.0, 4.0])
def test_the_audit_comes_close_to_the_eps_of_laplace_noise(eps):
    generator = np.random.default_rng(1)
    measured = audited_eps(added(lambda runs: generator.laplace(scale=1 / eps, size=runs)), RUNS)
    assert 0.9 * eps < measured <= eps


def test_the_audit_of_gaussian_noise_subtracts_delta():
    """At eps = 1 and scale 1.5, delta is Phi(1/2s - eps s) - e^eps Phi(-1/2s - eps s)."""
    scale, generator = 1.5, np.random.default_rng(2)
    centre = 1 / (2 * scale)
    delta = norm.cdf(centre - scale) - math.e * norm.cdf(-centre - scale)
    mechanism = added(lambda runs: generator.normal(scale=scale, size=runs))
    assert 0.6 < audited_eps(mechanism, RUNS, delta=delta) <= 1
    assert audited_eps(mechanism, RUNS) > 1.2, "pure privacy would need a larger eps"


def test_the_audit_sees_an_event_of_two_coordinates():
    """Both bits are fair for both neighbours, and only their sum modulo 2 differs."""
    generator = np.random.default_rng(3)

    def mechanism(neighbour, runs):
        first, same = generator.random((2, runs)) < [[0.5], [0.7]]
        return np.stack([first, first ^ same ^ bool(neighbour)], axis=1)

    measured = audited_eps(mechanism, RUNS)
    assert 0.9 * math.log(7 / 3) < measured <= math.log(7 / 3)


def test_equal_inputs_have_no_measured_eps():
    generator = np.random.default_rng(4)
    assert audited_eps(lambda neighbour, runs: generator.normal(size=(runs, 3)), RUNS // 4) < 0.01


def test_the_audit_states_its_confidence():
    """Of 200 audits with a confidence of 0.9, some 20 at most are above the true eps."""
    generator = np.random.default_rng(5)

    def mechanism(neighbour, runs):
        return generator.random(runs) < (0.25, 0.75)[neighbour]

    above = [audited_eps(mechanism, 1000, confidence=0.9) > math.log(3) for _ in range(200)]
    assert 0 < sum(above) < 40


def test_the_audit_refuses_outputs_that_are_not_numbers():
    for output in (np.nan, np.inf):
        with pytest.raises(AssertionError, match="finite"):
            audited_eps(lambda neighbour, runs, output=output: np.full(runs, output), 100)
    with pytest.raises(AssertionError, match="one output per run"):
        audited_eps(lambda neighbour, runs: np.zeros(runs + 1), 100)
