"""Audits of noise: what 100,000 releases and more show of eps is not above the promise.

Each audit runs with half of the noise too, or with a share of it missing, where it must fail. The
measured bounds exceed eps with a chance of 1e-4 at most; OpenDP's draws cannot be seeded.
"""

import numpy as np
import pytest

from mpc.noise import DilutedGeometric, DiscreteGaussian, DiscreteLaplace, PolyaShare
from mpc.randomness import SystemRandomness
from protocols.accounting import Accounting, Privacy
from protocols.budget import eps_of, rho_of
from protocols.schema import Schema
from protocols.site.statistics import LocalData, Numeric
from protocols.variables import Variable
from tests.noise_law import diluted_law, polya_law
from tests.privacy.audit import audited_eps

RUNS = 100_000
DELTA = 1e-2


def released(noise, count=0, change=1):
    """Return a mechanism: a count, which a neighbour changes, with noise."""

    def mechanism(neighbour, runs):
        return count + neighbour * change + noise(runs)

    return mechanism


def of_law(law, seed):
    """Return noise that is drawn from its law on a window of integers."""
    generator, places = np.random.default_rng(seed), np.arange(len(law)) - len(law) // 2

    def draw(runs):
        return generator.choice(places, runs, p=law / law.sum())

    return draw


# ---- one value -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("eps", "Delta"), [(1.0, 1), (0.5, 4)])
def test_discrete_laplace_noise_keeps_its_eps_and_half_of_it_does_not(eps, Delta):
    found = audited_eps(released(DiscreteLaplace(eps=eps, Delta=Delta), change=Delta), RUNS)
    assert 0.7 * eps < found <= eps, "the audit comes near to eps"
    half = DiscreteLaplace(eps=2 * eps, Delta=Delta)
    assert audited_eps(released(half, change=Delta), RUNS) > eps


def test_gaussian_noise_keeps_its_eps_at_its_delta_and_half_of_it_does_not():
    rho = rho_of(1.0, DELTA)
    assert eps_of(rho, DELTA) == pytest.approx(1.0)
    whole, half = DiscreteGaussian(rho=rho), DiscreteGaussian(rho=4 * rho)
    assert audited_eps(released(whole), RUNS, DELTA) <= 1.0
    assert audited_eps(released(half), RUNS, DELTA) > 1.0
    assert audited_eps(released(whole), RUNS) > audited_eps(released(whole), RUNS, DELTA)


PARTIES = 4


def all_shares(eps, parties):
    """Return the sum of the shares that so many of four parties draw."""
    shares = [PolyaShare(eps=eps, n=PARTIES, randomness=SystemRandomness()) for _ in range(parties)]
    return lambda runs: sum(share(runs) for share in shares)


def test_polya_shares_of_all_honest_parties_keep_eps():
    found = audited_eps(released(all_shares(1.0, PARTIES)), RUNS)
    assert 0.7 < found <= 1.0


def test_without_one_share_there_is_no_such_promise():
    assert audited_eps(released(all_shares(1.0, PARTIES - 1)), RUNS) > 1.0
    half = of_law(polya_law(1.0, 0.5), 3)
    assert audited_eps(released(half), RUNS) > audited_eps(released(of_law(polya_law(1.0, 1), 4)),
                                                           RUNS)  # fmt: skip


def test_diluted_noise_keeps_eps_except_with_its_delta():
    eps, n = 1.0, 3
    parties = [DilutedGeometric(eps=eps, delta=DELTA, gamma=1.0, n=n) for _ in range(n)]
    found = released(lambda runs: sum(noise(runs) for noise in parties))
    assert audited_eps(found, RUNS, DELTA) <= eps

    none, law = diluted_law(2 * eps, parties[0].beta, n)
    law = (1 - none) * law
    law[len(law) // 2] += none
    assert audited_eps(released(of_law(law, 5)), 4 * RUNS, DELTA) > eps, "half the noise"


# ---- whole releases ------------------------------------------------------------------------------

Z = Numeric("z", 0.0, 1.0)
SCHEMA = Schema(
    Variable("y", ("no", "yes")), {"a": Variable("a", ("u", "v")), "z": Z}, centred=True
)
ONE = LocalData(
    SCHEMA.variables, {"y": np.array([1]), "a": np.array([0])}, {"z": Z}, {"z": np.array([1.0])}
)
WHOLE = 40_000  # releases of ten values each


def release(noise, eps, members=1, **privacy):
    """Return the mechanism that adds the noise of all members to two tables and a number."""
    accounting = Accounting(SCHEMA, Privacy(eps=eps, noise=noise, **privacy))
    record = SCHEMA.measure(ONE)
    assert np.count_nonzero(record) == accounting.tables == 4

    def mechanism(neighbour, runs):
        values = np.tile(neighbour * record, (runs, 1))
        for place, change in enumerate(record):
            if change:  # the other values are noise alone for both neighbours
                for _ in range(members):
                    one = accounting.noise(members, SystemRandomness(), int(change))
                    values[:, place] += one(runs)
        return values[:, record != 0]

    return mechanism, accounting


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_whole_releases_keep_their_eps_and_half_of_the_noise_does_not(noise):
    delta = DELTA if noise == "gaussian" else 0.0
    given = {"delta": DELTA} if noise == "gaussian" else {}
    whole, accounting = release(noise, 2.0, **given)
    assert accounting.eps == pytest.approx(2.0)
    assert audited_eps(whole, WHOLE, delta) <= 2.0
    twice = 2.0 if noise == "laplace" else eps_of(4 * rho_of(2.0, DELTA), DELTA) / 2
    half, _ = release(noise, 2.0 * twice, **given)
    assert audited_eps(half, WHOLE, delta) > 2.0


def test_a_drawn_release_has_noise_of_the_size_that_was_audited():
    """`noise_of_all` draws each value as the audits of whole releases do."""
    accounting = Accounting(SCHEMA, Privacy(eps=2.0, noise="laplace"))
    draw, cells = accounting.noise_of_all(1, SystemRandomness()), 10
    drawn = np.array([draw(cells) for _ in range(1500)], float)
    sizes = np.repeat([p.Delta for p in accounting.parts], [p.cells for p in accounting.parts])
    sds = [np.sqrt(accounting.copy(int(size)).variance) for size in sizes]
    ratios = drawn.std(axis=0) / sds
    assert (np.abs(ratios - 1) < 0.25).all(), "half or twice the noise would be noticed"
