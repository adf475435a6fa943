"""The law, the parameters and the bounds of noise; nothing here is seeded where OpenDP draws."""

import json
import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.noise_law import (
    add_copy,
    diluted_law,
    fit,
    gaussian_law,
    geometric_law,
    point,
    polya_law,
    quantile,
)
from tests.randomness import SeededRandomness
from vertibayes_mpc.noise import (
    DilutedGeometric,
    DiscreteGaussian,
    DiscreteLaplace,
    PolyaShare,
    no_noise,
)
from vertibayes_mpc.noise.copies import _scale, measurement
from vertibayes_mpc.noise.polya import bernoulli, bernoulli_exp, logarithmic, poisson
from vertibayes_mpc.randomness import SystemRandomness

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "noise.json").read_text())
CHANCE = 1e-6  # of a sampler's test to fail: OpenDP cannot be seeded


def diluted(**changes):
    given_ = {"eps": 0.5, "delta": 1e-5, "gamma": 1.0, "n": 100}
    return DilutedGeometric(**(given_ | changes))


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("eps", "Delta"), [(0.5, 1), (1.0, 3), (3.0, 1)])
def test_one_copy_has_the_law_of_definition_2(eps, Delta):
    draws = DiscreteLaplace(eps=eps, Delta=Delta)(10_000)
    assert draws.dtype == np.int64 and draws.shape == (10_000,)
    assert fit(draws, geometric_law(eps / Delta)) > CHANCE


def test_the_test_of_laws_rejects_another_eps():
    assert fit(DiscreteLaplace(eps=0.5)(10_000), geometric_law(0.6)) < 1e-9


@pytest.mark.parametrize(("rho", "Delta"), [(0.5, 1), (0.02, 1), (0.1, 3), (3.0, 1)])
def test_gaussian_noise_has_the_exact_mass_function(rho, Delta):
    noise = DiscreteGaussian(rho=rho, Delta=Delta)
    assert noise.scale == pytest.approx(Delta / math.sqrt(2 * rho))
    draws = noise(10_000)
    assert draws.dtype == np.int64 and draws.shape == (10_000,)
    assert fit(draws, gaussian_law(Delta / math.sqrt(2 * rho))) > CHANCE


def test_the_test_of_laws_rejects_another_scale_and_rounded_gaussian_noise():
    draws = DiscreteGaussian(rho=0.5)(10_000)
    assert fit(draws, gaussian_law(1.2)) < 1e-9
    rounded = np.rint(np.random.default_rng(1).normal(0, 0.5, 10_000)).astype(int)
    assert fit(rounded, gaussian_law(0.5)) < 1e-9, "rounded Gaussian noise has another law"


def test_opendps_own_account_of_rho():
    for rho, Delta in ((0.1, 1), (0.003, 3), (2.0, 7)):
        noise = DiscreteGaussian(rho=rho, Delta=Delta)
        loss = measurement("gaussian", noise.scale).map(float(Delta))
        assert rho * (1 - 1e-12) < loss <= rho * (1 + 1e-12)


@given(st.floats(1e-15, 7.9), st.integers(1, 1000))
def test_the_scale_of_gaussian_noise_is_never_below_the_one_promised(rho, Delta):
    scale = Fraction(DiscreteGaussian(rho=rho, Delta=Delta).scale)
    assert scale**2 * 2 * Fraction(rho) >= Delta**2
    assert scale**2 * 2 * Fraction(rho) <= Delta**2 * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 3.0])
def test_the_variance_of_gaussian_noise_is_at_most_that_of_the_continuous_one(scale):
    noise, law = DiscreteGaussian(rho=1 / (2 * scale**2)), gaussian_law(scale)
    variance = float(law @ np.arange(-(len(law) // 2), len(law) // 2 + 1) ** 2)
    assert variance <= noise.variance * (1 + 1e-9)
    assert variance > noise.variance * (0.99 if scale >= 1 else 0)


def test_a_diluted_copy_has_the_law_of_definition_3():
    noise = diluted(delta=0.01, n=10, randomness=SeededRandomness())
    none, law = diluted_law(0.5, noise.beta, 1)
    law = none * point(0.5) + (1 - none) * law
    draws = noise(20_000)
    assert fit(draws, law) > CHANCE
    assert fit(draws, geometric_law(0.5)) < 1e-9


def test_the_coins_are_the_injected_ones():
    noise = diluted(randomness=SeededRandomness(b"coins"))
    again = diluted(randomness=SeededRandomness(b"coins"))
    heads = noise._heads(5000)
    assert np.array_equal(heads, again._heads(5000))
    assert abs(heads.mean() - noise.beta) < 5 * math.sqrt(noise.beta / 5000)
    quiet = diluted(delta=0.999, n=10**6, randomness=SeededRandomness())
    assert not quiet(1000).any()


def test_coins_of_probability_1_are_all_heads():
    class AllOnes:
        def bytes(self, count):
            return b"\xff" * count

    assert diluted(n=11, randomness=AllOnes()).beta == 1
    assert diluted(n=11, randomness=AllOnes())._heads(3).all()
    assert not diluted(n=12, randomness=AllOnes())._heads(3).any()


@pytest.mark.parametrize(("rate", "n"), [(0.5, 1), (0.5, 4), (0.05, 3), (2.0, 2)])
def test_a_share_has_the_law_of_polya_numbers(rate, n):
    draws = PolyaShare(eps=rate, n=n, randomness=SeededRandomness(b"%d" % n))(6000)
    assert fit(draws, polya_law(rate, 1 / n)) > 1e-3


def test_the_shares_of_all_parties_are_one_copy():
    shares = [PolyaShare(eps=0.5, n=5, randomness=SeededRandomness(b"%d" % i)) for i in range(5)]
    total = sum(share(6000) for share in shares)
    assert fit(total, geometric_law(0.5)) > 1e-3
    assert fit(total - shares[0](6000), geometric_law(0.5)) < 1e-9
    assert fit(sum(share(6000) for share in shares[1:]), geometric_law(0.5)) < 1e-9


def test_the_laws_of_the_tests_agree_with_each_other():
    assert np.allclose(add_copy(point(0.5), 0.5), geometric_law(0.5), rtol=1e-9, atol=1e-40)
    assert np.allclose(polya_law(0.5, 1), geometric_law(0.5), rtol=1e-9, atol=1e-18)
    convolved = np.convolve(polya_law(0.5, 0.25), polya_law(0.5, 0.75), mode="same")
    assert np.allclose(convolved, geometric_law(0.5), rtol=1e-9, atol=1e-18)


# ---- exact samplers ------------------------------------------------------------------------------


def share_of(sample, times=6000):
    return sum(sample() for _ in range(times)) / times


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 3), (1, 1), (5, 2)])
def test_coins_of_exponential_probability(a, b):
    source = SeededRandomness(b"%d/%d" % (a, b))
    found = share_of(lambda: bernoulli_exp(a, b, source))
    assert abs(found - math.exp(-a / b)) < 0.025
    if a <= b:
        assert abs(share_of(lambda: bernoulli(a, b, source)) - a / b) < 0.025


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 2), Fraction(1), Fraction(3)])
def test_logarithmic_numbers(rate):
    source = SeededRandomness(b"log")
    draws = np.array([logarithmic(rate, source) for _ in range(4000)])
    k = np.arange(1, math.ceil(100 / rate))
    law = np.exp(-float(rate) * k) / k
    law = np.concatenate([np.zeros(len(k) + 1), law / law.sum()])
    assert draws.min() >= 1
    assert fit(draws, law) > 1e-3


@pytest.mark.parametrize("mean", ["0", "0.3", "7"])
def test_poisson_numbers(mean):
    source = SeededRandomness(b"poisson")
    draws = np.array([poisson(Decimal(mean), source) for _ in range(4000)])
    k = np.arange(60)
    m = float(mean)
    law = np.array([math.exp(-m) * m**i / math.factorial(i) for i in k])
    assert fit(draws, np.concatenate([np.zeros(59), law])) > 1e-3 if m else not draws.any()


def test_poisson_ends_on_the_last_draw_there_is():
    class AllOnes:
        def bytes(self, count):
            return b"\xff" * count

    assert 20 < poisson(Decimal(1), AllOnes()) < 40


# ---- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["diluted"], ids=lambda v: f"n must be .* got {v['n']}")
def test_known_parameters(vector):
    names = ("eps", "Delta", "delta", "gamma", "n")
    noise = DilutedGeometric(**{name: vector[name] for name in names})
    wanted = {name: float(vector[name]) for name in ("alpha", "beta", "copies", "deviation")}
    assert math.isclose(noise.alpha, wanted["alpha"], rel_tol=1e-12)
    assert math.isclose(noise.beta, wanted["beta"], rel_tol=1e-12) and noise.beta <= 1
    if noise.beta < 1:
        assert noise.beta >= wanted["beta"], "rounded down"
    assert math.isclose(noise.n * noise.copies, wanted["copies"], rel_tol=1e-12)
    assert math.isclose(math.sqrt(noise.n * noise.variance), wanted["deviation"], rel_tol=1e-9)


@pytest.mark.parametrize("vector", VECTORS["polya"], ids=lambda v: f"n must be .* got {v['n']}")
def test_known_shares(vector):
    source = SeededRandomness(vector["seed"].encode())
    noise = PolyaShare(eps=vector["eps"], Delta=vector["Delta"], n=vector["n"], randomness=source)
    assert noise(len(vector["share"])).tolist() == vector["share"]
    events = -2 * math.log(-math.expm1(-vector["eps"] / vector["Delta"])) / vector["n"]
    assert math.isclose(noise.events, events, rel_tol=1e-12)


def test_the_paper_adds_eleven_copies_and_polya_shares_one():
    ours, paper = PolyaShare(eps=0.5, n=100), diluted()
    assert 100 * ours.copies == 1
    assert round(100 * paper.copies, 1) == 11.5
    assert round(math.sqrt(100 * ours.variance), 1) == 2.8
    assert round(math.sqrt(100 * paper.variance), 1) == 9.5


@given(st.floats(1e-9, 500), st.integers(1, 1000))
def test_opendps_scale_is_never_below_the_one_promised(eps, Delta):
    if eps / Delta > 1e-12:
        scale = _scale(Fraction(eps) / Delta)
        assert Fraction(scale) * Fraction(eps) >= Delta
        assert scale <= Delta / eps * (1 + 1e-15)


def test_opendps_own_account_of_eps():
    for eps, Delta in ((0.1, 1), (0.5, 3), (1.0, 7)):
        loss = measurement("laplace", _scale(Fraction(eps) / Delta)).map(Delta)
        assert eps * (1 - 1e-12) < loss <= eps * (1 + 1e-12)


def test_the_consent_that_opendp_asks_for_is_given_back():
    mod = import_module("opendp.mod")
    mod.disable_features("contrib")
    measurement.cache_clear()
    DiscreteLaplace(eps=0.7)(1)
    assert "contrib" not in mod.GLOBAL_FEATURES
    mod.enable_features("contrib")
    measurement.cache_clear()
    DiscreteLaplace(eps=0.7)(1)
    assert "contrib" in mod.GLOBAL_FEATURES
    mod.disable_features("contrib")


# ---- bounds --------------------------------------------------------------------------------------

MECHANISMS = [
    (DiscreteLaplace(eps=0.5), 1, geometric_law(0.5)),
    (DiscreteLaplace(eps=0.5), 3, add_copy(add_copy(geometric_law(0.5), 0.5), 0.5)),
    (PolyaShare(eps=0.5, n=8), 8, geometric_law(0.5)),
    (PolyaShare(eps=0.5, n=8), 4, polya_law(0.5, 0.5)),
]


@pytest.mark.parametrize("tail", [0.5, 2**-10, 2**-40])
@pytest.mark.parametrize(("noise", "parties", "law"), MECHANISMS)
def test_a_bound_holds_and_is_not_far_off(noise, parties, law, tail):
    bound, least = noise.bound(parties, tail), quantile(law, tail)
    assert least <= bound <= 1.4 * least + 4 / float(noise.rate)


@pytest.mark.parametrize("tail", [2**-10, 2**-40])
def test_a_bound_of_diluted_noise_holds_and_is_not_far_off(tail):
    noise = diluted()
    none, law = diluted_law(0.5, noise.beta, 100)
    least = quantile(none * point(0.5) + (1 - none) * law, tail)
    assert least <= noise.bound(100, tail) <= 1.4 * least


@pytest.mark.parametrize("tail", [2**-10, 2**-40])
@pytest.mark.parametrize("parties", [1, 4])
def test_a_bound_of_gaussian_noise_holds_and_is_not_far_off(parties, tail):
    noise, law = DiscreteGaussian(rho=0.02), gaussian_law(5.0)
    total = reduce(np.convolve, [law] * parties)
    least = quantile(total, tail)
    assert least <= noise.bound(parties, tail) <= 1.25 * least + 2
    assert quantile(reduce(np.convolve, [law] * 16), 2**-40) > noise.bound(1, 2**-40)


def test_the_test_of_bounds_rejects_one_party_s_for_many():
    noise = diluted()
    _, law = diluted_law(0.5, noise.beta, 100)
    assert noise.bound(1, 2**-40) < quantile(law, 2**-40)


@settings(max_examples=30)
@given(st.floats(0.002, 400), st.integers(1, 100), st.integers(1, 5000), st.floats(1e-30, 0.99))
def test_bounds_grow_with_the_parties(eps, Delta, parties, tail):
    for noise in (DiscreteLaplace(eps=eps, Delta=Delta), PolyaShare(eps=eps, Delta=Delta, n=9)):
        assert 1 <= noise.bound(parties, tail) <= noise.bound(parties + 1, tail)


def test_bounds_at_the_ends_of_the_scales():
    for eps, Delta in ((512.0, 1), (1.0, 2**40)):
        for noise in (DiscreteLaplace(eps=eps, Delta=Delta), diluted(eps=eps, Delta=Delta)):
            bound = noise.bound(1000, 2**-60)
            assert 1 <= bound < 2**53 and noise.variance > 0 and noise(10).max() <= bound


# ---- shapes and errors ---------------------------------------------------------------------------

EACH = [
    DiscreteLaplace(eps=0.5),
    DiscreteGaussian(rho=0.5),
    diluted(),
    PolyaShare(eps=0.5, n=3),
    no_noise,
]


@pytest.mark.parametrize("noise", EACH)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_noise_is_a_vector_of_integers(noise, count):
    drawn = noise(count)
    assert drawn.shape == (count,) and drawn.dtype == np.int64


@pytest.mark.parametrize("noise", EACH)
def test_noise_for_fewer_than_no_counts_is_refused(noise):
    with pytest.raises(ValueError, match=r"-1|negative"):
        noise(-1)


def test_no_noise_is_none():
    assert not no_noise(1000).any()


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"eps": 0.0}, ValueError, "eps must be .* got 0.0"),
        ({"eps": -1.0}, ValueError, "eps must be .* got -1.0"),
        ({"eps": math.inf}, ValueError, "eps must be .* got inf"),
        ({"eps": math.nan}, ValueError, "eps must be .* got nan"),
        ({"eps": 1e-13}, ValueError, "2\\*\\*40"),
        ({"eps": 513.0}, ValueError, "2\\*\\*-9"),
        ({"Delta": 0}, ValueError, "Delta must be .* got 0"),
        ({"Delta": 1.5}, TypeError, "Delta must be .* got 1.5"),
        ({"Delta": True}, TypeError, "Delta must be .* got True"),
        ({"delta": 0.0}, ValueError, "delta must be .* got 0.0"),
        ({"delta": 1.0}, ValueError, "delta must be .* got 1.0"),
        ({"delta": math.nan}, ValueError, "delta must be .* got nan"),
        ({"gamma": 0.0}, ValueError, "gamma must be .* got 0.0"),
        ({"gamma": 1.1}, ValueError, "gamma must be .* got 1.1"),
        ({"gamma": math.nan}, ValueError, "gamma must be .* got nan"),
        ({"gamma": 0.1, "n": 9}, ValueError, "gamma n"),
        ({"n": 0}, ValueError, "n must be .* got 0"),
        ({"n": 10.0}, TypeError, "n must be .* got 10.0"),
    ],
)
def test_a_parameter_out_of_range_is_named(changes, error, reason):
    with pytest.raises(error, match=reason):
        diluted(**changes)
    if set(changes) <= {"eps", "Delta"}:
        with pytest.raises(error, match=reason):
            DiscreteLaplace(**({"eps": 0.5} | changes))


@pytest.mark.parametrize("n", [0, -1])
def test_shares_of_no_parties_are_refused(n):
    with pytest.raises(ValueError, match=f"n must be .* got {n}"):
        PolyaShare(eps=0.5, n=n)


def test_one_honest_party_is_enough():
    assert diluted(gamma=1 / 49, n=49).beta == 1


@pytest.mark.parametrize(("parties", "tail"), [(0, 0.1), (1, 0.0), (1, 1.0), (1, math.nan)])
def test_a_bound_for_nobody_or_no_tail_is_refused(parties, tail):
    with pytest.raises(ValueError, match=r"parties must be at least 1, got 0|tail"):
        DiscreteLaplace(eps=0.5).bound(parties, tail)


def test_no_source_of_randomness_in_a_repr():
    assert "random" not in repr(diluted()).lower()


# ---- what the noise must not forget --------------------------------------------------------------


def test_diluted_copies_know_Delta():
    """beta is 1: each is a copy whose scale is Delta / eps."""
    noise = diluted(Delta=100, n=10)
    assert noise.beta == 1 and 0.8 < noise(4000).std() / noise.variance**0.5 < 1.2


@pytest.mark.parametrize("noise", [diluted(), PolyaShare(eps=0.5, n=2)], ids=["diluted", "polya"])
def test_randomness_is_the_operating_systems_unless_it_is_given(noise):
    assert type(noise.randomness) is SystemRandomness


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(eps=0.3), diluted(n=12), PolyaShare(eps=0.3, n=2)], ids=str
)
def test_neighbouring_counts_have_noise_of_their_own(noise):
    drawn = noise(4000).astype(float)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.12  # seven standard errors


@pytest.mark.parametrize("n", [12, 100, 777, 10_000])
def test_the_coin_is_never_below_beta(n):
    """Heads is for so many of the 2^64 draws; beta itself is rounded up."""
    noise = diluted(n=n)
    assert Fraction(noise.last_heads + 1, 2**64) >= Fraction(noise.beta)
    assert Decimal(noise.beta) >= Decimal(10).ln() * 5 / n


@pytest.mark.parametrize("noise", [diluted(), DiscreteLaplace(eps=0.5)], ids=["diluted", "laplace"])
def test_bounds_are_of_both_sides(noise):
    """ln 2 is in the excess: the bound at tail 2p is that of one side at p."""
    one_side = min(
        (5 * noise.log_moment(t) - math.log(1e-6)) / t for t in np.linspace(0.001, 0.499, 2000)
    )
    assert noise.bound(5, 2e-6) - one_side == pytest.approx(1, abs=2)
    assert noise.bound(5, 1e-6) > one_side + 1


def test_numpys_numbers_are_numbers():
    noise = PolyaShare(eps=np.float32(0.5), n=np.int64(3), Delta=np.int64(2))
    assert noise(np.int64(5)).shape == (5,) and noise.rate == Fraction(1, 4)
