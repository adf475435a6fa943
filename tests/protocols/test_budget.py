"""What releases cost together, what is left of a budget, and that ledger and memory agree on it."""

import json
import math
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.protocols.small import noisy
from tests.protocols.test_publish import QUERY, SPLIT, sites
from tests.protocols.test_sums import ask, query_of
from tests.vertibayes.hdpnb_worlds import federation_of, parties
from vertibayes.report.ledger.budgets import budgets_of
from vertibayes_protocols.accounting import TAIL, Privacy
from vertibayes_protocols.budget import SLACK, Cost, eps_of, rho_of
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import ALLOW_ALL, Policy
from vertibayes_protocols.queries import Publish
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.storage.memory import SiteMemory

DELTA = 1e-5
AT = DELTA * (1 - SLACK)  # what zCDP has of it

# ---- by hand -------------------------------------------------------------------------------------


def test_costs_add_up_by_hand():
    one, gaussian = Cost.of(0.5, 1e-7), Cost(1.0, 1e-5, 0.02, 1e-9)
    assert one == (0.5, 1e-7, 0.125, 1e-7)
    assert one.plus(gaussian) == pytest.approx((1.5, 1.01e-5, 0.145, 1.01e-7))
    assert one.times(4) == pytest.approx((2.0, 4e-7, 0.5, 4e-7))
    assert Cost().plus(one) == one and one.times(0) == Cost()


def test_rho_and_eps_by_hand():
    """Bun and Steinke, proposition 1.3: .1 + 2 sqrt(.1 * 11.513)."""
    assert eps_of(0.1, 1e-5) == pytest.approx(0.1 + 2 * math.sqrt(1.1512925))
    assert rho_of(0.1 + 2 * math.sqrt(1.1512925465), 1e-5) == pytest.approx(0.1)
    assert eps_of(0.0, 0.0) == 0 and eps_of(1e-9, 0.0) == math.inf == eps_of(0.0, -1e-9)
    assert rho_of(1.0, 0.0) == 0 and rho_of(math.inf, 1e-5) == math.inf


@given(st.floats(1e-6, 50), st.floats(1e-30, 0.5))
def test_eps_and_rho_are_inverse(eps, delta):
    assert eps_of(rho_of(eps, delta), delta) == pytest.approx(eps, rel=1e-9)


def test_basic_composition_is_better_for_few_releases_and_zcdp_for_many():
    few, many = Cost.of(0.1).times(3), Cost.of(0.01).times(1000)
    assert few.eps_at(DELTA) == pytest.approx(0.3) == few.proved(DELTA)[0]
    assert few.proved(DELTA)[1] == 0, "basic composition has no delta here"
    of_many = 0.05 + 2 * math.sqrt(0.05 * math.log(1 / 0.9e-5))
    assert many.eps == pytest.approx(10) and of_many < 1.6
    assert many.proved(DELTA) == (pytest.approx(of_many), DELTA)
    assert many.proved(0.0) == (many.eps, 0.0), "zCDP needs a delta"


def test_slack_beyond_its_share_of_delta_leaves_basic_composition_alone():
    most = Cost.of(0.001, SLACK * DELTA / 1000)
    assert most.times(1000).eps_at(DELTA) < 0.3
    assert most.times(1001).eps_at(DELTA) == pytest.approx(1.001)
    assert most.times(20_000).eps_at(DELTA) == math.inf, "and delta is overspent"
    assert most.times(20_000).proved(DELTA) == pytest.approx((20.0, 2e-5))


# ---- what is left --------------------------------------------------------------------------------

costs = st.one_of(
    st.builds(Cost.of, st.floats(0, 3), st.sampled_from([0.0, 1e-19, 1e-12])),
    st.floats(0.01, 3).map(lambda eps: Cost(eps, DELTA + TAIL, rho_of(eps, DELTA), TAIL)),
)
limits = st.tuples(st.floats(0.01, 20), st.sampled_from([0.0, 1e-10, DELTA, 0.01]))


@given(st.lists(costs, max_size=30), limits)
def test_a_release_of_what_is_left_is_permitted_and_a_little_more_refused(spent, limit):
    before = reduce(Cost.plus, spent, Cost())
    left = before.left(*limit)
    policy = Policy(most_epsilon=limit[0], most_delta=limit[1])
    if left:
        assert policy.check_budget(before, Cost.of(left * (1 - 1e-9))) is None
    with pytest.raises(ValueError, match=r"costs (epsilon|delta) .* is left of most_"):
        policy.check_budget(before, Cost.of(left * 1.001 + 1e-3))


@given(st.lists(costs, max_size=30), costs, limits)
def test_what_is_permitted_is_proved_to_be_within_the_budget(spent, more, limit):
    before = reduce(Cost.plus, spent, Cost())
    assume(before.permits(more, *limit))
    eps, delta = before.plus(more).proved(limit[1])
    assert eps <= limit[0] * (1 + 1e-8) and delta <= limit[1] * (1 + 1e-8)


def test_many_small_releases_fit_into_a_budget_that_basic_composition_would_have_spent():
    policy, spent, releases = Policy(most_epsilon=1.0, most_delta=DELTA), Cost(), 0
    small = Cost.of(0.01)
    while spent.permits(small, policy.most_epsilon, policy.most_delta):
        spent, releases = spent.plus(small), releases + 1
    assert releases == math.floor(rho_of(1.0, AT) / (0.01**2 / 2)) > 400 > 1 / 0.01


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_cost_that_is_not_a_finite_number_is_refused_under_any_limit(place, number):
    odd = Cost(*(number if i == place else 0.1 for i in range(4)))
    for policy in (Policy(), Policy(most_epsilon=math.inf, most_delta=DELTA)):
        for spent, cost in ((odd, Cost.of(0.1)), (Cost.of(0.1), odd)):
            if math.isinf(number) and place > 1:  # basic composition holds whatever rho is
                continue
            with pytest.raises(ValueError, match="costs"):
                policy.check_budget(spent, cost)


def test_without_limits_everything_finite_is_permitted():
    policy = Policy(most_epsilon=math.inf, most_delta=math.inf)
    policy.check_budget(Cost.of(1e6, 1.0), Cost.of(1e200, 1.0))
    with pytest.raises(ValueError, match="costs epsilon nan"):
        policy.check_budget(Cost(), Cost.of(math.nan))
    assert Cost.of(3.0).left(math.inf, DELTA) == math.inf


def test_the_refusal_names_what_does_not_suffice():
    policy = Policy(most_epsilon=1.0, most_delta=DELTA)
    with pytest.raises(ValueError, match=r"costs delta 1e-05: 9e-06 is left of most_delta"):
        policy.check_budget(Cost.of(0.1, 1e-6), Cost.of(0.2, 1e-5))
    with pytest.raises(ValueError, match=r"costs epsilon 0.95: 0.9 is left of most_eps"):
        policy.check_budget(Cost.of(0.1), Cost.of(0.95, 1e-5))


# ---- what releases cost --------------------------------------------------------------------------


def test_a_gaussian_release_costs_what_it_says():
    federation = federation_of(parties(4))
    privacy = Privacy(eps=0.5, noise="gaussian", delta=DELTA)
    query = query_of(federation, privacy=privacy)
    accounting = query.terms.accounting
    rho = rho_of(0.5, DELTA)
    assert accounting.cost(4) == (0.5, pytest.approx(DELTA + TAIL), rho, TAIL)
    copy = accounting.copy()
    assert 3 / (2 * copy.scale**2) == pytest.approx(rho), "three values, each changed by 1"
    released = ask(federation, query)
    assert released.promise.cost == federation.roles["p00"].memory.spent == accounting.cost(4)


def test_gaussian_releases_are_refused_where_zcdp_ends():
    policy = replace(ALLOW_ALL, most_epsilon=1.0, most_delta=DELTA)
    federation = federation_of(parties(3), policy=policy)
    privacy = Privacy(eps=0.25, noise="gaussian", delta=DELTA)
    releases = math.floor(rho_of(1.0, AT) / rho_of(0.25, DELTA))
    assert releases == 15, "basic composition permits one, as delta is spent"
    for _ in range(releases):
        ask(federation, query_of(federation, privacy=privacy))
    with pytest.raises(QueryRefusedError, match=r"costs epsilon 0\.25: 0\.0.* is left"):
        ask(federation, query_of(federation, privacy=privacy))


# ---- ledgers and memories ------------------------------------------------------------------------


def noted(site):
    """Return the last that a site's ledger says of its budget."""
    texts = [fact.what for fact in site.ledger.facts if "releases with noise so far" in fact.what]
    return texts[-1]


def said(spent, policy):
    eps, delta = spent.proved(policy.most_delta)
    return f"all releases with noise so far cost epsilon {eps:.4g} and delta {delta:.2g}"


@pytest.mark.parametrize("noise", ["polya", "laplace", "gaussian", "diluted"])
def test_ledger_and_memory_say_after_each_release_what_all_cost_over_restarts(noise, tmp_path):
    policy = replace(ALLOW_ALL, most_epsilon=40.0, most_delta=1e-3)
    federation = federation_of(parties(4), policy=policy)
    expected = Cost()
    for eps in (0.9, 2.0, 0.5, 7.0, 0.3):
        with ExitStack() as stack:
            for party, site in federation.roles.items():
                site.memory = stack.enter_context(closing(SiteMemory(tmp_path / party)))
                assert site.memory.spent == expected, "as before the restart"
            query = query_of(federation, privacy=Privacy(eps=eps, noise=noise))
            released = ask(federation, query)
            expected = expected.plus(released.promise.cost)
            for site in federation.roles.values():
                assert site.memory.spent == expected
                assert noted(site) == said(expected, policy)


def test_the_ledger_says_what_left_without_noise_beside_epsilon():
    federation = federation_of(parties(3), policy=ALLOW_ALL)
    site = federation.roles["p01"]
    noisy = Privacy(eps=0.5, noise="laplace")
    ask(federation, query_of(federation, privacy=noisy))
    assert noted(site) == said(site.memory.spent, site.policy)  # the control: nothing else has left
    for sums in (1, 2):
        ask(federation, query_of(federation, privacy=None))
        other = f"; {sums} tables, sums or scores also left without noise, which epsilon does not"
        assert noted(site) == said(site.memory.spent, site.policy) + other + " bound"
    (row,) = [b for b in budgets_of(site.memory, site.policy) if "without noise" in b.what]
    assert row.used == 2 and row.cells[1:] == ("", "no limit")


def test_who_leaves_and_comes_back_has_the_budget_that_was_left():
    """A new memory would be a new budget: a party could be asked without end by leaving."""
    federation = federation_of(parties(3), policy=replace(ALLOW_ALL, most_epsilon=1.0))
    privacy = Privacy(eps=0.6, noise="laplace")
    ask(federation, query_of(federation, privacy=privacy))
    memory = federation.roles["p01"].memory
    federation.leave("p01")
    federation.join("p01", parties(3)["p01"])
    assert federation.roles["p01"].memory is memory and memory.spent.eps == pytest.approx(0.6)
    federation.leave("p00"), federation.leave("p02")
    federation.join("p04", parties(3)["p00"])
    with pytest.raises(QueryRefusedError, match=r"p01 refuses: .* 0\.6: 0\.4 is left") as refused:
        ask(federation, query_of(federation, privacy=privacy))
    assert refused.value.site == "p01", "and not p04, who is new"


def test_published_tables_are_charged_to_the_same_budget_as_sums(tmp_path):
    with sites(most_epsilon=40.0) as federation:
        site = federation.roles["site-1"]
        with closing(SiteMemory(tmp_path / "memory")) as site.memory:
            site.memory.apply(noisy(Cost(0.5, 1e-5, 0.01, 1e-12)))
            federation.session.ask(QUERY)
            federation.session.ask(Publish.of(SPLIT, RecordNoise(0.3)))
            spent = site.memory.spent
            assert noted(site) == said(spent, site.policy)
        assert spent == pytest.approx((1.1, 1e-5, 0.01 + 0.08 + 0.02, 1e-12))
        with closing(SiteMemory(tmp_path / "memory")) as again:
            assert again.spent == spent


def test_a_memory_without_zcdp_is_read_as_one_release_of_all_that_was_spent(tmp_path):
    path = tmp_path / "memory"
    with closing(SiteMemory(path)) as memory:
        memory.apply(noisy(Cost.of(0.5, 1e-9)))
        memory.apply(noisy(Cost.of(0.5, 1e-9)))
        true = memory.spent
    with np.load(path) as file:
        arrays = dict(file)
    notes = json.loads(arrays["notes"].tobytes())
    del notes["zcdp"]
    arrays["notes"] = np.frombuffer(json.dumps(notes).encode(), np.uint8)
    with path.open("wb") as out:
        np.savez(out, **arrays)
    with closing(SiteMemory(path)) as memory:
        assert memory.spent == (1.0, 2e-9, 0.5, 2e-9)
        assert all(kept >= spent for kept, spent in zip(memory.spent, true, strict=True))
