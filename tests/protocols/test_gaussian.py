"""Gaussian noise is certified: no delta of a release is above its bound, by laws summed up."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr

from tests.noise_law import gaussian_law
from vertibayes_protocols import gaussian
from vertibayes_protocols.budget import rho_of
from vertibayes_protocols.gaussian import delta_of, excess, rho_of_shares, scale_of


def law_of_shares(scale, shares):
    """Return the law of a sum of shares, on a window of integers."""
    law = one = gaussian_law(scale)
    for _ in range(shares - 1):
        law = np.convolve(law, one)
    return law


def curve(law, tables, eps):
    """Return the exact delta of as many tables, of each of which a record changes one cell by 1."""
    after = np.append(law[1:], 0.0), law
    one, other = np.ones(1), np.ones(1)
    for _ in range(tables):
        one, other = np.outer(one, law).ravel(), np.outer(other, after[0]).ravel()
    return float(np.maximum(one - math.exp(eps) * other, 0).sum())


# ---- delta ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("scale", [0.3, 0.8, 1.5, 4.0])
def test_delta_of_one_table_is_exact(scale, eps):
    exact = curve(gaussian_law(scale), 1, eps)
    assert exact <= delta_of(eps, scale, 1) <= exact * (1 + 1e-2 * (scale < 1) + 1e-6) + 1e-12


@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("tables", "shares", "scale"), [
    (2, 1, 0.6), (2, 1, 1.2), (2, 1, 3.0), (3, 1, 1.0), (1, 2, 0.5), (1, 2, 0.8), (1, 3, 1.5),
    (1, 8, 0.9), (2, 2, 0.7), (2, 3, 1.2), (3, 2, 0.8),
])  # fmt: skip
def test_delta_of_tables_and_shares_is_an_upper_bound_and_near(tables, shares, scale, eps):
    exact = curve(law_of_shares(scale, shares), tables, eps)
    bound = delta_of(eps, scale, tables, shares)
    assert bound >= exact - 1e-12  # the rounding of the sum of products
    if scale >= 1.2:
        assert bound <= exact * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize("eps", [-1e-3, 0.0, 1.0, 60.0, 800.0])
def test_delta_is_a_bound_at_the_edges_too(eps):
    exact = curve(gaussian_law(2.0), 1, min(eps, 700.0))
    assert delta_of(eps, 2.0, 1) >= exact - 1e-15


def test_wide_sums_are_bounded_block_by_block(monkeypatch):
    for eps, scale, tables in ((0.01, 300.0, 1), (0.3, 60.0, 9), (1e-4, 300.0, 4)):
        exact = delta_of(eps, scale, tables)
        monkeypatch.setattr(gaussian, "TERMS", 1 << 8)
        assert exact < delta_of(eps, scale, tables) < 1.5 * exact
        monkeypatch.undo()


# ---- shares --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.5, 0.6, 0.8, 1.0])
@pytest.mark.parametrize("shares", [2, 3, 7, 20])
def test_a_sum_of_shares_has_at_each_integer_nearly_the_mass_of_one_gaussian(scale, shares):
    law = law_of_shares(scale, shares)
    reach = math.ceil(6 * scale * math.sqrt(shares))
    inside = slice(len(law) // 2 - reach, len(law) // 2 + reach + 1)
    one = gaussian_law(scale * math.sqrt(shares))
    middle = slice(len(one) // 2 - reach, len(one) // 2 + reach + 1)
    apart = np.abs(np.log(law[inside] / one[middle])).max()
    assert apart <= excess(shares, scale) + 1e-12


def test_a_sum_of_small_shares_is_less_private_than_one_gaussian_of_its_variance():
    """So the bound must be charged: without it, delta would be too low."""
    exact, eps = curve(law_of_shares(0.5, 2), 1, 3.0), 3.0
    assert delta_of(eps, 0.5 * math.sqrt(2), 1) < exact <= delta_of(eps, 0.5, 1, 2)


@pytest.mark.parametrize("tables", [1, 3])
def test_delta_of_shares_is_that_of_one_gaussian_after_all_tables_are_charged(tables):
    """P' <= e^a P and Q' >= e^-a Q, so P' - e^eps Q' <= e^a (P - e^(eps - 2 a) Q)."""
    a, alone = tables * excess(3, 0.8), 0.8 * math.sqrt(3)
    assert excess(3, 0.8) == pytest.approx(10 * (math.exp(-6.31655) + math.exp(-8.42206)), rel=1e-4)
    of_one = delta_of(1.0 - 2 * a, alone, tables)
    assert delta_of(1.0, 0.8, tables, 3) == pytest.approx(math.exp(a) * of_one, rel=1e-9)


def test_the_scale_of_shares_is_raised_where_they_would_be_too_small():
    alone = scale_of(8.0, 1e-6, 1)
    shares = [scale_of(8.0, 1e-6, 1, n) * math.sqrt(n) for n in (2, 5, 20)]
    assert all(one < other for one, other in pairwise([alone, *shares]))
    assert min(scale_of(8.0, 1e-6, 1, n) for n in (2, 5, 20)) >= 0.5
    many = [scale_of(1.0, 1e-6, 37, n) * math.sqrt(n) for n in (1, 2, 5, 20)]
    assert max(many) < min(many) * (1 + 1e-5), "and nowhere else"


# ---- the scale -----------------------------------------------------------------------------------


def continuous(scale):
    """Return delta of eps = 1 for continuous noise: Balle and Wang, Theorem 5."""
    with_, without = (log_ndtr(s / (2 * scale) - scale) for s in (1, -1))
    return math.exp(with_) - math.exp(1 + without)


def test_the_scale_is_smaller_than_by_zcdp_and_not_too_small():
    """Continuous noise would need 4.2247; discrete noise of this scale has more than delta."""
    scale = scale_of(1.0, 1e-6, 1)
    assert scale == pytest.approx(4.2308, abs=1e-4)
    assert curve(gaussian_law(scale), 1, 1.0) <= 1e-6 < curve(gaussian_law(scale * 0.999), 1, 1.0)
    of_continuous = brentq(lambda s: continuous(s) - 1e-6, 3, 5)
    assert of_continuous == pytest.approx(4.2247, abs=1e-3)
    assert curve(gaussian_law(of_continuous), 1, 1.0) > 1.01e-6
    assert math.sqrt(1 / (2 * rho_of(1.0, 1e-6))) == pytest.approx(5.35, abs=1e-3)


@pytest.mark.parametrize("tables", [1, 2, 37, 1000])
@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-12, 1e-200])
@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0, 8.0])
def test_no_scale_is_above_that_of_zcdp(eps, delta, tables):
    scale = scale_of(eps, delta, tables)
    assert delta_of(eps, scale, tables, tail=delta * 1e-9) <= delta
    assert scale < math.sqrt(tables / (2 * rho_of(eps, delta)))
    assert rho_of_shares(scale, tables) == pytest.approx(tables / (2 * scale**2))


@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("tables", [1, 2, 37])
@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0, 8.0])
def test_another_value_of_a_record_costs_twice_eps_at_the_same_delta(eps, tables, shares):
    """It changes two cells of each table."""
    for delta in (1e-4, 1e-6, 1e-12):
        scale = scale_of(eps, delta, tables, shares)
        assert delta_of(2 * eps, scale, 2 * tables, shares, tail=delta * 1e-9) <= delta


def test_where_no_scale_is_certified_the_search_ends():
    assert scale_of(1e-13, 1e-30, 1) > 2**40
    assert scale_of(1.0, 5e-324, 1) > 2**40


# ---- rho -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shares", "scale"), [(1, 0.4), (1, 2.0), (2, 0.5), (4, 0.6), (9, 0.7)])
def test_rho_bounds_the_renyi_divergences(shares, scale):
    law = law_of_shares(scale, shares)
    inside = law > 1e-250
    log, shifted = np.log(law[inside]), np.log(np.roll(law, 1)[inside])
    log, shifted = log[1:], shifted[1:]
    for alpha in (1.01, 1.5, 2.0, 5.0):
        exponents = alpha * log + (1 - alpha) * shifted
        divergence = np.logaddexp.reduce(exponents) / (alpha - 1)
        assert divergence <= alpha * rho_of_shares(scale, 1, shares) + 1e-9
