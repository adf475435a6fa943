"""Audits of noise: what 12,000 to a million releases show of eps is not above the promise.

Each audit is made of half of the noise too, or with a share missing, where it must find more than
eps. Half of the noise is drawn with numpy, from the same law. The measured bounds exceed eps with a
chance of 1e-4 at most; OpenDP's draws cannot be seeded.
"""

import math
from functools import reduce

import numpy as np
import pytest

from tests.noise_law import diluted_law, fit, gaussian_law, geometric_law, polya_law
from tests.privacy.audit import audited_eps
from vertibayes_mpc.noise import DilutedGeometric, DiscreteGaussian, DiscreteLaplace, PolyaShare
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.accounting import Accounting, Privacy
from vertibayes_protocols.budget import rho_of
from vertibayes_protocols.queries.releases.plan import ReleaseNoise
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Family, Variable

pytestmark = pytest.mark.laws

RUNS, MANY = 100_000, 1_000_000
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


def test_discrete_laplace_noise_keeps_its_eps_and_half_of_it_does_not():
    noise = DiscreteLaplace(eps=1.0, Delta=2)
    assert 0.7 < audited_eps(released(noise, change=2), RUNS) <= 1.0, "the audit comes near to eps"
    half = of_law(geometric_law(1.0), 1)
    assert audited_eps(released(half, change=2), RUNS) > 1.0


def test_gaussian_noise_keeps_its_eps_at_its_delta_and_half_of_it_does_not():
    noise = DiscreteGaussian(rho=rho_of(1.0, DELTA))
    assert audited_eps(released(noise), RUNS, DELTA) <= 1.0
    half = of_law(gaussian_law(noise.scale / 2), 2)
    assert audited_eps(released(half), 10 * RUNS, DELTA) > 1.0


PARTIES = 4


def shares_of(parties):
    """Return the sum of the shares that so many of four parties draw, of a copy of eps = 1."""
    shares = [PolyaShare(eps=1.0, n=PARTIES) for _ in range(parties)]
    return lambda runs: sum(share(runs) for share in shares)


def test_polya_shares_of_all_honest_parties_keep_eps():
    assert 0.7 < audited_eps(released(shares_of(PARTIES)), RUNS) <= 1.0


def test_where_one_share_is_missing_or_half_the_noise_eps_is_exceeded():
    assert audited_eps(released(shares_of(PARTIES - 1)), RUNS) > 1.0
    assert audited_eps(released(of_law(polya_law(1.0, 0.5), 3)), RUNS) > 1.0


def test_diluted_noise_keeps_eps_except_with_its_delta_and_a_sixth_of_it_does_not():
    n, delta = 3, 0.1
    parties = [DilutedGeometric(eps=1.0, delta=delta, gamma=1.0, n=n) for _ in range(n)]
    found = released(lambda runs: sum(noise(runs) for noise in parties))
    assert audited_eps(found, RUNS, delta) <= 1.0
    none, law = diluted_law(3.0, parties[0].beta / 2, n)  # a third of the scale, half the copies
    law = (1 - none) * law
    law[len(law) // 2] += none
    assert audited_eps(released(of_law(law, 5)), RUNS, delta) > 1.0


def law_of_diluted(rate, part):
    """Return the law of what three parties add, each a copy with `part` of its probability."""
    beta = DilutedGeometric(eps=1.0, delta=0.1, gamma=1.0, n=3).beta
    none, law = diluted_law(rate, beta * part, 3)
    return none * (np.arange(len(law)) == len(law) // 2) + (1 - none) * law


NORMAL = DiscreteGaussian(rho=rho_of(1.0, DELTA)).scale
LAWS = {  # of eps = 1 for one count; with too little noise; and delta
    "laplace": (geometric_law(1.0), geometric_law(2.0), 0.0),
    # zCDP adds more than eps needs: half of it would still keep twice eps.
    "gaussian": (gaussian_law(NORMAL), gaussian_law(NORMAL / 3), DELTA),
    "polya": (reduce(np.convolve, [polya_law(1.0, 1 / 4)] * 4), polya_law(1.0, 1 / 2), 0.0),
    "diluted": (law_of_diluted(1.0, 1.0), law_of_diluted(3.0, 0.5), 0.1),
}


@pytest.mark.parametrize("kind", LAWS)
def test_a_million_draws_keep_eps_for_a_record_and_twice_for_another_value_of_it(kind):
    """A value that is replaced changes two counts of a table."""
    whole, less, delta = LAWS[kind]
    for steps, changes in ((1, (1,)), (2, (1, -1))):
        kept, broken = (tables_released(of_law(law, 4), changes) for law in (whole, less))
        assert audited_eps(kept, MANY, steps * delta) <= steps
        assert audited_eps(broken, MANY, steps * delta) > steps


# ---- whole releases ------------------------------------------------------------------------------

Z = Numeric("z", 0.0, 1.0)
SCHEMA = Schema(
    Variable("y", ("no", "yes")), {"a": Variable("a", ("u", "v")), "z": Z}, centred=True
)
ONE = LocalData(
    SCHEMA.variables, {"y": np.array([1]), "a": np.array([0])}, {"z": Z}, {"z": np.array([1.0])}
)
RECORD = SCHEMA.measure(ONE)
CHANGED = RECORD != 0


def releases(draw):
    """Return the mechanism of two tables and a number, with a record more or without.

    The values that the record does not change are noise alone, and tell nothing: they are left out.
    """

    def mechanism(neighbour, runs):
        columns = [draw(int(change), runs) for change in RECORD[CHANGED]]
        return np.column_stack(columns) + neighbour * RECORD[CHANGED]

    return mechanism


def test_a_record_changes_one_value_of_each_part():
    assert np.abs(RECORD[CHANGED]).tolist() == [1, 1, 2**11, 2**22]


def test_whole_releases_with_laplace_noise_keep_eps_and_half_of_it_does_not():
    accounting, source = Accounting(SCHEMA, Privacy(eps=2.0, noise="laplace")), SystemRandomness()
    whole = releases(lambda change, runs: accounting.noise(1, source, change)(runs))
    assert audited_eps(whole, 2 * RUNS // 5) <= 2.0
    generator = np.random.default_rng(6)
    half = releases(
        lambda change, runs: generator.laplace(0, change / accounting.eps_of_a_count / 2, runs)
    )
    assert audited_eps(half, RUNS) > 2.0


def test_whole_releases_with_gaussian_noise_keep_eps_at_delta_and_half_of_it_does_not():
    privacy = Privacy(eps=2.0, noise="gaussian", delta=DELTA)
    accounting, source = Accounting(SCHEMA, privacy), SystemRandomness()
    whole = releases(lambda change, runs: accounting.noise(1, source, change)(runs))
    assert audited_eps(whole, 3 * RUNS // 20, DELTA) <= 2.0
    generator = np.random.default_rng(7)
    half = releases(
        lambda change, runs: np.rint(generator.normal(0, accounting.copy(change).scale / 2, runs))
    )
    assert audited_eps(half, 4 * RUNS, DELTA) > 2.0


def test_a_party_draws_a_release_of_the_size_that_was_audited():
    accounting = Accounting(SCHEMA, Privacy(eps=2.0, noise="laplace"))
    draw = accounting.noise_of_all(1, SystemRandomness())
    drawn = np.array([draw(len(RECORD)) for _ in range(1500)], float)
    sizes = np.repeat([p.Delta for p in accounting.parts], [p.cells for p in accounting.parts])
    sds = [np.sqrt(accounting.copy(int(size)).variance) for size in sizes]
    assert (np.abs(drawn.std(axis=0) / sds - 1) < 0.25).all(), "half or twice would be noticed"


# ---- a release of tables -------------------------------------------------------------------------


def release_noise(kind, epsilon=1.0, dishonest=0.0):
    """Return the noise of a release of two tables by three sites."""
    families = (Family("a"), Family("b", ("a",)))
    rule = Rule(kind, epsilon=epsilon, delta=DELTA, dishonest=dishonest)
    return ReleaseNoise(FamilyTables(families, False, rule), 3)


ADDED = 1, 1  # what a record changes in its cells of two tables
REPLACED = 1, -1, 1, -1  # what another value of it changes


def tables_released(draw, changes=ADDED):
    """Return a mechanism: the cells of two tables that a neighbour changes."""
    width = len(changes)
    return lambda other, runs: np.multiply(other, changes) + draw(width * runs).reshape(-1, width)


def law_of_a_site(noise, part=1.0):
    """Return the law of what a site adds, of which the honest ones add `part`."""
    one = noise.of_a_site()
    if isinstance(one, PolyaShare):
        return polya_law(one.eps / one.Delta, part / one.n)
    return gaussian_law(math.sqrt(part) * one.scale)


def law_of_honest(noise, part=1.0):
    """Return the law of what all honest sites add: the others work with the analyst."""
    one = law_of_a_site(noise, part)
    return reduce(np.convolve, [one] * noise.honest)


def test_released_tables_keep_their_eps_with_the_laplace_noise_of_all_sites_and_half_does_not():
    def noise_of(epsilon):
        share = release_noise("laplace", epsilon).of_a_site()
        return lambda count: share(count) + share(count) + share(count)

    assert 0.3 < audited_eps(tables_released(noise_of(1.0)), 12_000) <= 1.0
    assert audited_eps(tables_released(noise_of(2.0)), 12_000) > 1.0


# Of three sites, all are honest, two, or one; then as many shares make a copy.
ALL, TWO, ONE = 0.0, 0.4, 1.0


@pytest.mark.parametrize("dishonest", [ALL, TWO, ONE])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_million_releases_of_the_honest_sites_keep_eps_for_a_record_and_twice_for_a_value(
    kind, dishonest
):
    noise, delta = release_noise(kind, dishonest=dishonest), DELTA if kind == "gaussian" else 0.0
    assert noise.honest == {ALL: 3, TWO: 2, ONE: 1}[dishonest]
    whole, less = law_of_honest(noise), law_of_honest(noise, 1 / 4)
    for changes, eps in ((ADDED, 1.0), (REPLACED, 2.0)):
        kept, broken = (tables_released(of_law(law, 9), changes) for law in (whole, less))
        assert audited_eps(kept, MANY, delta) <= eps
        assert audited_eps(broken, MANY, delta) > eps, "the control: half the deviation"


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_one_accomplice_breaks_the_promise_of_shares_of_all_sites(kind):
    """With `dishonest` 0, as was the default: two of three sites add less than a copy."""
    noise, delta = release_noise(kind, dishonest=ALL), DELTA if kind == "gaussian" else 0.0
    two = reduce(np.convolve, [law_of_a_site(noise)] * 2)
    assert audited_eps(tables_released(of_law(two, 9)), MANY, delta) > 1.0


@pytest.mark.parametrize("dishonest", [ALL, TWO, ONE])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_honest_sites_draw_has_the_law_that_was_audited(kind, dishonest):
    noise = release_noise(kind, dishonest=dishonest)
    drawn = sum(noise.of_a_site()(RUNS // 5) for _ in range(noise.honest))
    assert fit(drawn, law_of_honest(noise)) > 1e-6
    assert fit(drawn, law_of_honest(noise, 0.9)) < 1e-6
