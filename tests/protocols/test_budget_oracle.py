"""What releases cost is never less than dp_accounting (Google) proves, which sums up losses.

Its figure is a bound too, pessimistic by its grid, for releases whose eps are fixed beforehand.
"""

import math

import pytest

from vertibayes_protocols.budget import Cost
from vertibayes_protocols.gaussian import delta_of, rho_of_shares, scale_of

pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
GRID = 1e-3  # of losses
DELTA = 1e-6


def of_eps(eps, delta=0.0):
    """Return the losses of a release of which no more is known than eps and delta."""
    known = pld.common.DifferentialPrivacyParameters(eps, delta)
    return pld.from_privacy_parameters(known, value_discretization_interval=GRID)


def of_gaussian(scale, tables):
    """Return the losses of tables with whole copies of noise of this scale."""
    one = pld.from_discrete_gaussian_mechanism(scale, value_discretization_interval=GRID)
    return one.self_compose(tables)


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-9])
@pytest.mark.parametrize(("eps", "releases"), [
    (0.05, 1), (0.05, 20), (0.05, 200), (0.3, 3), (0.3, 30), (1.0, 2), (1.0, 10),
])  # fmt: skip
def test_releases_of_one_eps_cost_at_least_what_the_oracle_says(eps, releases, delta):
    theirs = of_eps(eps).self_compose(releases).get_epsilon_for_delta(delta)
    ours = Cost.of(eps).times(releases).eps_at(delta)
    assert theirs <= ours + releases * GRID
    assert ours < 2 * theirs, "and not far more"


def test_twenty_small_releases_cost_a_quarter_more_than_the_oracle_says():
    """Basic composition is the better of our bounds here, and the oracle's is .78."""
    theirs = of_eps(0.05).self_compose(20).get_epsilon_for_delta(1e-5)
    assert Cost.of(0.05).times(20).eps_at(1e-5) == pytest.approx(1.0)
    assert theirs == pytest.approx(0.777, abs=0.02)


@pytest.mark.parametrize(("releases", "eps", "tables"), [(1, 1.0, 1), (4, 0.5, 2), (16, 0.25, 3)])
def test_gaussian_releases_cost_at_least_what_the_oracle_says(releases, eps, tables):
    scale = scale_of(eps, DELTA, tables)
    cost = Cost(eps, DELTA, rho_of_shares(scale, tables)).times(releases)
    theirs = of_gaussian(scale, releases * tables)
    for delta in (releases * DELTA, 10 * releases * DELTA):
        assert theirs.get_epsilon_for_delta(delta) <= cost.eps_at(delta) * (1 + GRID)


def test_mixed_releases_cost_at_least_what_the_oracle_says():
    scale, delta = scale_of(0.5, DELTA, 2), 1e-5
    cost = Cost(0.5, DELTA, rho_of_shares(scale, 2)).plus(Cost.of(0.1, 1e-9).times(8))
    theirs = of_gaussian(scale, 2).compose(of_eps(0.1, 1e-9).self_compose(8))
    assert theirs.get_epsilon_for_delta(delta) <= cost.eps_at(delta)


@pytest.mark.parametrize(("eps", "delta", "tables"), [
    (1.0, 1e-6, 1), (1.0, 1e-6, 2), (0.5, 1e-5, 7), (2.0, 1e-9, 37), (5.0, 1e-6, 3),
])  # fmt: skip
def test_the_certified_delta_of_gaussian_noise_is_that_of_the_oracle(eps, delta, tables):
    """The oracle rounds losses up on its grid: its delta is a little above the exact one."""
    scale = scale_of(eps, delta, tables)
    theirs = of_gaussian(scale, tables).get_delta_for_epsilon(eps)
    grid = 1 + 30 * tables * GRID  # a loss that is so much larger, in each table
    assert delta_of(eps, scale, tables) <= delta
    assert delta / grid <= theirs <= delta * grid
    too_small = of_gaussian(0.95 * scale, tables).get_delta_for_epsilon(eps)
    assert too_small > delta, "the control"
    assert math.isfinite(scale)
