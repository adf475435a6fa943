"""Frequency oracles: probabilities, estimates, variances, intervals, and what they refuse.

Seeded statistical tests; each would fail with probability below 1e-4 with another seed. The longer
version is `benchmarks/oracles.py`.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.randomness import SeededRandomness
from vertibayes_mpc.oracles import (
    ORACLES,
    DirectEncoding,
    OptimalUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    Tally,
    ThresholdHistogram,
    best_oracle,
)
from vertibayes_mpc.oracles.draws import Draws

pytestmark = pytest.mark.laws

PURE = [name for name in ORACLES if name != "she"]
USERS, BLOCK = 50_000, 5_000  # an estimate of each block, so that a run measures ten variances
ERRORS = 15_000  # squared errors that are averaged: a standard deviation of 1.2 %
LN3 = math.log(3)


def build(name, eps, domain):
    return ORACLES[name](eps=eps, domain=domain)


# ---- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("oracle", "p", "q"),
    [
        (DirectEncoding(eps=LN3, domain=3), 3 / 5, 1 / 5),
        (SymmetricUnary(eps=2 * LN3, domain=9), 3 / 4, 1 / 4),
        (OptimalUnary(eps=LN3, domain=9), 1 / 2, 1 / 4),
        (ThresholdHistogram(eps=2 * math.log(2), domain=9, theta=0.5), 1 - 2**-1.5, 2**-1.5),
        (ThresholdHistogram(eps=LN3, domain=9, theta=0), 1 - 1 / math.sqrt(12), 1 / 2),
        (SubsetSelection(eps=LN3, domain=8), 1 / 2, 3 / 14),
    ],
)
def test_probabilities_are_those_of_the_papers(oracle, p, q):
    assert math.isclose(oracle.p, p, rel_tol=1e-12)
    assert math.isclose(oracle.q, q, rel_tol=1e-12)


def worst_ratio(oracle):
    """Return the largest ratio of the probabilities of a report for two values, exactly."""
    p, q = oracle.exact
    if isinstance(oracle, DirectEncoding):
        return p / q
    if isinstance(oracle, SubsetSelection):
        return p * (oracle.domain - oracle.size) / ((1 - p) * oracle.size)
    return p * (1 - q) / (q * (1 - p))


def exponential_below(eps):
    with localcontext(Context(prec=150)):
        return Fraction(Decimal(eps).exp() * (1 - Decimal(10) ** -140))


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize("domain", [2, 3, 100, 65_537])
@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0, 3.0, 10.0, 50.0])
def test_no_report_is_likelier_by_more_than_the_promised_factor(name, eps, domain):
    ratio, allowed = worst_ratio(build(name, eps, domain)), exponential_below(eps)
    assert ratio <= allowed
    if name != "the" and eps <= 10:
        assert ratio >= allowed * (1 - Fraction(1, 10**6)), "no budget is left unused"


@pytest.mark.parametrize("theta", [0.0, 0.25, 0.5, 0.7, 1.0])
def test_thresholds_keep_the_promise_wherever_they_lie(theta):
    for eps in (0.01, 1.0, 8.0):
        oracle = ThresholdHistogram(eps=eps, domain=9, theta=theta)
        assert worst_ratio(oracle) <= exponential_below(eps)


def test_the_default_threshold_has_the_least_variance():
    for eps, optimum in ((0.1, 0.51), (0.5, 0.56), (1, 0.62), (2, 0.71), (4, 0.82)):
        oracle = ThresholdHistogram(eps=eps, domain=9)
        assert round(oracle.threshold, 2) == optimum
        for theta in (oracle.threshold - 0.01, oracle.threshold + 0.01):
            assert oracle.variance(1) < ThresholdHistogram(eps=eps, domain=9, theta=theta).variance(
                1
            )
    assert ThresholdHistogram(eps=1.0, domain=9, theta=0.25).threshold == 0.25


def test_a_huge_eps_is_that_of_draws_of_64_bits():
    for name in PURE:
        assert build(name, 1e6, 50).q > 0 and build(name, 1e6, 50).exact[0] < 1


# ---- draws ---------------------------------------------------------------------------------------


class GivenDraws(Draws):
    """Draws from bytes that the test sets."""

    def __init__(self, *numbers):
        self.given = b"".join(numbers)

    def _bytes(self, count):
        drawn, self.given = self.given[:count], self.given[count:]
        return bytearray(drawn)


def word(number):
    return number.to_bytes(8, "little")


def test_a_coin_compares_64_bits():
    threshold = (77 << 56) + 5
    rests = [word(rest << 8) for rest in (4, 5, 6)]
    coins = GivenDraws(bytes([76, 77, 78, 77, 77]), *rests).coins(threshold, 5)
    assert coins.tolist() == [True, True, False, False, False]


def test_direct_encoding_gives_each_other_value_as_many_draws():
    oracle = DirectEncoding(eps=1.0, domain=4)
    each = int(oracle.exact[1] * 2**64)
    borders = [0, each - 1, each, 3 * each - 1, 3 * each, 2**64 - 1]
    draws = GivenDraws(*map(word, borders))
    assert oracle._perturb(np.full(6, 1), draws).tolist() == [0, 0, 2, 3, 1, 1]


def test_uniform_integers_reject_the_incomplete_rest():
    last = 2**64 // 10 * 10
    assert GivenDraws(word(last - 1), word(last), word(13)).below(10, 2).tolist() == [9, 3]


def test_each_call_has_a_key_of_its_own():
    oracle = OptimalUnary(eps=1.0, domain=100)
    values = np.arange(100)
    assert (oracle.perturb(values) != oracle.perturb(values)).any()
    seeded = [oracle.perturb(values, SeededRandomness(b"one")) for _ in range(2)]
    assert (seeded[0] == seeded[1]).all()


def bits_of(oracle, reports):
    return np.unpackbits(reports, axis=1, count=oracle.domain)


def law_of_subsets(oracle, value):
    """Return the probability of each set of `size` values, in the order of `combinations`."""
    sets = list(combinations(range(oracle.domain), oracle.size))
    inside = np.array([value in chosen for chosen in sets])
    return np.where(inside, oracle.p / inside.sum(), (1 - oracle.p) / (~inside).sum())


def sets_drawn(oracle, value):
    reports = oracle.perturb(np.full(USERS, value), SeededRandomness(b"sets"))
    codes = bits_of(oracle, reports) @ (1 << np.arange(oracle.domain))
    sets = combinations(range(oracle.domain), oracle.size)
    return np.array([(codes == sum(1 << v for v in chosen)).sum() for chosen in sets])


@pytest.mark.parametrize("value", [0, 3, 6])
def test_subsets_of_equal_rank_are_equally_likely(value):
    oracle = SubsetSelection(eps=0.5, domain=7)
    drawn = sets_drawn(oracle, value)
    assert oracle.size == 3 and drawn.sum() == USERS
    assert chisquare(drawn, USERS * law_of_subsets(oracle, value)).pvalue > 1e-5
    assert chisquare(drawn, USERS * law_of_subsets(oracle, 1)).pvalue < 1e-9, "of another value"


def law_of_bits(oracle, value):
    """Return the probability of each of the 2^d reports."""
    codes = np.arange(1 << oracle.domain)[:, None] >> np.arange(oracle.domain) & 1
    ones = np.where(np.arange(oracle.domain) == value, oracle.p, oracle.q)
    return np.where(codes, ones, 1 - ones).prod(axis=1)


@pytest.mark.parametrize("name", ["sue", "oue", "the"])
def test_bits_are_independent(name):
    oracle = build(name, 1.0, 5)
    reports = oracle.perturb(np.full(USERS, 2), SeededRandomness(b"bits"))
    codes = bits_of(oracle, reports) @ (1 << np.arange(5))
    drawn = np.bincount(codes, minlength=32)
    assert chisquare(drawn, USERS * law_of_bits(oracle, 2)).pvalue > 1e-5
    assert chisquare(drawn, USERS * law_of_bits(oracle, 1)).pvalue < 1e-9, "of another value"


# ---- support and estimates -----------------------------------------------------------------------


def test_estimates_by_hand():
    direct = DirectEncoding(eps=LN3, domain=3)
    assert direct.estimate([5, 3, 2], 10) == pytest.approx([7.5, 2.5, 0])
    assert SummationHistogram(eps=1.0, domain=2).estimate([2048, -512], 3).tolist() == [2, -0.5]


def test_variances_by_hand():
    direct = DirectEncoding(eps=LN3, domain=3)  # q (1-q) / (p-q)^2 = 1, (1-p-q) / (p-q) = 1/2
    assert direct.variance(10) == pytest.approx(10)
    assert direct.variance(10, [0, 4]) == pytest.approx([10, 12])
    assert OptimalUnary(eps=LN3, domain=9).variance(2, 1.0) == pytest.approx(2 * 3 + 1)
    assert SummationHistogram(eps=2.0, domain=3).variance(5, [1.0, 5.0]) == pytest.approx(
        [10, 10], rel=1e-5
    )


def test_support_counts_values_bits_and_sums():
    assert DirectEncoding(eps=1.0, domain=4).support(np.array([3, 0, 3], np.uint32)).tolist() == [
        1, 0, 0, 2
    ]  # fmt: skip
    nine = np.array([[0b10000001, 0b10000000], [0b10000000, 0]], np.uint8)
    assert OptimalUnary(eps=1.0, domain=9).support(nine).tolist() == [2, 0, 0, 0, 0, 0, 0, 1, 1]
    assert SummationHistogram(eps=1.0, domain=2).support(np.array([[1, -5], [2, 2]])).tolist() == [
        3, -3
    ]  # fmt: skip


@pytest.mark.parametrize("name", ORACLES)
def test_one_person_and_nobody_report(name):
    oracle = build(name, 1.0, 9)
    alone = oracle.perturb(3)
    assert alone.shape == (1, *oracle.report_shape) and alone.dtype == oracle.report_dtype
    assert alone.nbytes == oracle.report_bytes
    assert oracle.support(alone).shape == (9,)
    assert oracle.support(oracle.perturb([])).tolist() == [0] * 9


def skewed(domain):
    """Return values of a block of people: a fifth have value 0, the others are spread evenly."""
    return np.r_[np.zeros(BLOCK // 5, int), np.arange(BLOCK * 4 // 5) % domain]


def errors_of(oracle, block):
    """Return errors of estimates, in standard deviations: an array (estimates, domain)."""
    runs = -(-ERRORS * BLOCK // (oracle.domain * USERS))
    counts = np.bincount(block, minlength=oracle.domain)
    deviation = np.sqrt(oracle.variance(len(block), counts))
    values, found = np.tile(block, USERS // len(block)), []
    for run in range(runs):
        reports = oracle.perturb(values, SeededRandomness(b"errors %d" % run))
        for start in range(0, len(values), len(block)):
            support = oracle.support(reports[start : start + len(block)])
            found.append((oracle.estimate(support, len(block)) - counts) / deviation)
    return np.array(found)


@pytest.mark.parametrize(("domain", "eps"), [(8, 0.5), (8, 2.0), (100, 1.0)])
@pytest.mark.parametrize("name", PURE)
def test_estimates_are_unbiased_with_the_stated_variance(name, domain, eps):
    errors = errors_of(build(name, eps, domain), skewed(domain))
    assert errors.size >= ERRORS
    means = errors.sum(axis=0) / math.sqrt(len(errors))
    assert abs(means).max() < 5.5
    assert abs((errors**2).mean() - 1) < 0.05


def test_sums_are_unbiased_with_the_stated_variance():
    """OpenDP draws ten microseconds per cell: 50,000 people, in blocks of twenty."""
    oracle = SummationHistogram(eps=1.0, domain=8)
    values = np.arange(20) % 8
    counts = np.bincount(values, minlength=8)
    reports = oracle.perturb(np.tile(values, USERS // 20)).reshape(-1, 20, 8)
    estimates = np.array([oracle.estimate(oracle.support(block), 20) for block in reports])
    errors = (estimates - counts) / math.sqrt(oracle.variance(20))
    assert errors.size == 20_000
    assert abs(errors.sum(axis=0) / math.sqrt(len(errors))).max() < 5.5
    assert abs((errors**2).mean() - 1) < 0.05


def test_the_variance_of_50_000_people_is_the_stated_one():
    oracle = OptimalUnary(eps=1.0, domain=100)
    values = np.arange(USERS) % 100
    counts = np.bincount(values)
    squares = [
        (oracle.estimate(oracle.support(oracle.perturb(values, randomness)), USERS) - counts) ** 2
        for randomness in (SeededRandomness(b"all %d" % i) for i in range(ERRORS // 100))
    ]
    assert abs(np.mean(squares) / oracle.variance(USERS, counts[0]) - 1) < 0.05


def test_the_test_of_variances_notices_a_tenth_of_eps():
    class Claimed(OptimalUnary):
        def variance(self, n, counts=0.0):
            return OptimalUnary(eps=1.1, domain=100).variance(n, counts)

    errors = errors_of(Claimed(eps=1.0, domain=100), skewed(100))
    assert abs((errors**2).mean() - 1) > 0.1


# ---- tallies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORACLES)
def test_merged_tallies_equal_one_stream(name):
    oracle = build(name, 1.0, 20)
    reports = oracle.perturb(np.arange(400) % 20)
    whole, first, second = Tally(oracle), Tally(oracle), Tally(build(name, 1.0, 20))
    whole.update(reports)
    for tally, part in ((first, reports[:7]), (second, reports[7:90]), (second, reports[90:])):
        tally.update(part)
    first.merge(second)
    assert first.n == whole.n == 400 and second.n == 393
    assert (first.support == whole.support).all()
    assert (first.estimate() == whole.estimate()).all()
    assert (whole.estimate() == oracle.estimate(oracle.support(reports), 400)).all()


@pytest.mark.parametrize("name", PURE)
def test_intervals_contain_the_count_as_often_as_stated(name):
    oracle, block = build(name, 1.0, 100), skewed(100)
    counts, hits = np.bincount(block), {0.8: [], 0.95: []}
    for run in range(16):
        reports = oracle.perturb(np.tile(block, 10), SeededRandomness(b"cover %d" % run))
        for part in np.split(reports, 10):
            tally = Tally(oracle)
            tally.update(part)
            for level in hits:
                low, high = tally.interval(level)
                hits[level].append((low <= counts) & (counts <= high))
    for level, covered in hits.items():
        deviation = math.sqrt(level * (1 - level) / np.size(covered))
        assert abs(np.mean(covered) - level) < 4.5 * deviation


def test_an_interval_by_hand():
    tally = Tally(SummationHistogram(eps=4.0, domain=2))
    tally.update(np.array([[5 * 1024, -2048]] * 40))
    low, high = tally.interval(0.95)
    reach = 1.959964 * math.sqrt(tally.oracle.variance(40))
    assert low == pytest.approx([40, 0]) and high[1] == 0, "a count is between 0 and n"
    assert reach == pytest.approx(8.77, abs=0.01)
    half = Tally(SummationHistogram(eps=4.0, domain=2))
    half.update(np.array([[512, 512]] * 40))
    assert half.interval(0.95)[0] == pytest.approx([20 - reach] * 2, rel=1e-6)
    assert half.interval(0.95)[1] == pytest.approx([20 + reach] * 2, rel=1e-6)


def test_a_tally_without_reports_knows_nothing_wrong():
    low, high = Tally(OptimalUnary(eps=1.0, domain=3)).interval()
    assert low.tolist() == high.tolist() == [0, 0, 0]


def test_tallies_refuse_other_oracles_and_levels():
    tally = Tally(OptimalUnary(eps=1.0, domain=3))
    for other in (OptimalUnary(eps=2.0, domain=3), SymmetricUnary(eps=1.0, domain=3)):
        with pytest.raises(ValueError, match="must have one oracle"):
            tally.merge(Tally(other))
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            tally.interval(level)


# ---- the best oracle -----------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("domain", [2, 3, 5, 8, 30, 100, 3000])
def test_the_best_oracle_has_the_least_variance(eps, domain):
    best = best_oracle(eps, domain)
    variances = {name: build(name, eps, domain).variance(1) for name in PURE}
    assert best.eps == eps and best.domain == domain
    assert variances[best.name] <= min(variances.values()) * (1 + 1e-9)
    assert variances["ss"] <= min(variances.values()) * (1 + 1e-9), "as the module says"


def test_direct_encoding_is_preferred_to_subsets_of_one_value():
    assert SubsetSelection(eps=2.0, domain=4).size == 1
    assert best_oracle(2.0, 4).name == "de" and best_oracle(0.5, 100).name == "ss"


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORACLES)
def test_parameters_out_of_range_are_refused(name):
    for eps in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="eps must be a finite number above 0"):
            build(name, eps, 4)
    with pytest.raises(ValueError, match=r"eps must be (larger|from)"):
        build(name, 1e-30, 4)
    for domain in (1, 0, -3, 2**24 + 1):
        with pytest.raises(ValueError, match="domain must be from 2 to 16777216 values"):
            build(name, 1.0, domain)
    for domain in (2.0, True, "8"):
        with pytest.raises(TypeError, match="domain must be an integer"):
            build(name, 1.0, domain)


def test_a_threshold_outside_the_cells_is_refused():
    for theta in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="theta must be from 0 to 1"):
            ThresholdHistogram(eps=1.0, domain=4, theta=theta)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    "values", [[0, 41], [-1], [1.0], [True], [[1]], ["1"], np.array([2**63 + 41], np.uint64)]
)
def test_values_outside_the_domain_are_refused_and_not_shown(name, values):
    with pytest.raises(ValueError, match="values must be") as refusal:
        build(name, 1.0, 9).perturb(values)
    assert "41" not in str(refusal.value)


@pytest.mark.parametrize("name", ORACLES)
def test_reports_of_another_shape_or_type_are_refused(name):
    oracle = build(name, 1.0, 20)
    good = oracle.perturb(np.arange(4))
    wide = np.stack([good, good], axis=-1)
    strangers = [good.astype(float), wide, wide[:, :0], good[0], good.astype(object), None, "x", []]
    for reports in strangers:
        with pytest.raises(ValueError, match=f"reports must have dtype {good.dtype} and shape"):
            oracle.support(reports)


def spoilt(name):
    """Return reports of which the third cannot be drawn."""
    reports = build(name, 1.0, 20).perturb(np.arange(5), SeededRandomness(b"spoilt"))
    largest = SummationHistogram(eps=1.0, domain=20).largest
    if name == "de":
        reports[2] = 20
    elif name == "ss":
        reports[2] = [255, 0, 0]  # eight values instead of five
    elif name == "she":
        reports[2, 7] = np.iinfo(np.int64).min if largest else 0
    else:
        reports[2, 2] |= 1  # a bit beyond the domain
    return reports


@pytest.mark.parametrize("name", ORACLES)
def test_reports_that_cannot_be_drawn_are_refused_with_their_place(name):
    tally = Tally(build(name, 1.0, 20))
    tally.update(spoilt(name)[:2])
    before = tally.support.copy()
    with pytest.raises(ValueError, match=f"1 of 5 reports are not reports of {name}.* at place 2"):
        tally.update(spoilt(name))
    assert tally.n == 2 and (tally.support == before).all(), "no report of the batch is added"


def test_sums_accept_the_largest_noise_and_nothing_above():
    oracle = SummationHistogram(eps=1.0, domain=2)
    edges = np.array([[oracle.largest + 1024, -oracle.largest]])
    assert oracle.support(edges).tolist() == edges[0].tolist()
    for beyond in (edges + np.array([1, 0]), edges - np.array([0, 1])):
        with pytest.raises(ValueError, match="at place 0"):
            oracle.support(beyond)
