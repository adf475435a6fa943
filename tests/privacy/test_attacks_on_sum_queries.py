"""Analysts who write terms, members and numbers of sums to their liking, and what stops them.

Each attack is run against a site without the check first, and reads the data there.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import count, data_of, plain, study_of
from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_mpc.errors import FaultyPartyError, MalformedMessageError
from vertibayes_mpc.membership.pair_keys import Roll
from vertibayes_mpc.rounds import Expect
from vertibayes_protocols import wire
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.engine import answer, consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import RecordFederation, federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Commit, Sums
from vertibayes_protocols.queries.sums.aggregations import parameters_of
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.query import Query
from vertibayes_protocols.schema import Declaration, Schema
from vertibayes_protocols.session import QUERY_CELLS
from vertibayes_protocols.site.statistics import Counts, LocalData, Moments
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Variable

SCHEMA = Schema(Variable("y", ("no", "yes")), {"a": Variable("a", ("u", "v", "w"))})
EXACT = Policy(exact_sums=True, free_tables=True)
both_ways = pytest.mark.parametrize("via", ["additive", "masked"])


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Parameters, "least_bits", 0)


def records(count, seed):
    draw = np.random.default_rng(seed)
    codes = {n: draw.integers(0, len(v.states), count) for n, v in SCHEMA.variables.items()}
    return LocalData(SCHEMA.variables, codes)


def federation(parties, policy=EXACT, each=12):
    held = {f"p{i:02}": records(each, i) for i in range(parties)}
    return RecordFederation(held, policy=policy, modulus=SMALL, randomness=SeededRandomness())


def query(world, via="masked", privacy=None, members=None, **shares):
    terms = Terms(SCHEMA, 100, 50, privacy, **shares)
    return Sums.of(world.analyst, terms, Members(terms, members or world.roles, via))


def refusal(site, asked):
    with pytest.raises(QueryRefusedError) as caught:
        consider(site, asked)
    return caught.value.reason


def counts_of(world, party):
    return SCHEMA.measure(world.roles[party].batches[0])


# ---- other queries -------------------------------------------------------------------------------


def test_an_analyst_asks_one_site_for_exact_tables_which_cost_no_budget():
    data, no_budget = data_of(60, a="xy"), Policy(most_epsilon=0.0, free_tables=True)
    for policy in (no_budget, replace(no_budget, free_tables=False)):
        with federate(data, policy=policy) as world:
            if policy.free_tables:
                study = world.session.ask(Commit.of(study_of(data))).study
                assert np.array_equal(count(world, study, "xy")[0], plain(data, "x", "y"))
                continue
            with pytest.raises(QueryRefusedError, match="answers approved studies alone"):
                world.session.ask(Commit.of(study_of(data)))


# ---- terms ---------------------------------------------------------------------------------------


@both_ways
def test_an_analyst_who_declares_all_members_honest_takes_the_noise_of_its_accomplices(via):
    """Three of four sites work with the analyst, and the fourth counts on their noise."""
    world = federation(4, Policy(most_epsilon=5.0, free_tables=True))
    site, noise = world.roles["p00"], Privacy(eps=1.0)
    thin = query(world, via, noise)
    assert consider(site, thin).query is thin
    (own,) = thin.terms.accounting.noises([thin.estimate("p00")])
    assert own.copies <= 0.5, "of the one copy that eps = 1 is the promise of"

    site.policy = replace(site.policy, dishonest=0.5)
    assert "share of 0 of the members to work with the analyst" in refusal(site, thin)
    fair = query(world, via, replace(noise, gamma=0.5), dishonest=0.5)
    assert consider(site, fair).query is fair
    honest = fair.terms.accounting.noises([fair.estimate(p) for p in ("p00", "p01")])
    assert math.fsum(each.copies for each in honest) >= 1


@both_ways
def test_an_exact_sum_over_one_honest_member_is_its_counts(via):
    world = federation(2)
    with world.session() as session:
        released = session.ask(query(world, via))
    assert np.array_equal(released.sums - counts_of(world, "p01"), counts_of(world, "p00"))
    site = world.roles["p00"]
    site.policy = replace(EXACT, dishonest=0.4)
    assert "share of 0 of the members" in refusal(site, query(world, via))
    site.policy = replace(EXACT, dishonest=0.5)
    assert "fewer than two members who do not work" in refusal(
        site, query(world, via, dishonest=0.5)
    )


def test_blocks_of_accomplices_around_a_site_are_larger_than_the_analyst_may_choose():
    """Blocks of twenty, of which every second one could be the analyst's."""
    world = federation(80, each=1)
    names = sorted(world.roles)
    blocks = tuple(tuple(names[i : i + 20]) for i in range(0, 80, 20))
    asked = replace(query(world, "additive"), blocks=blocks)
    site = world.roles["p00"]
    assert consider(site, asked).query is asked, "these terms let nobody work with the analyst"
    site.policy = replace(EXACT, dishonest=0.5)
    assert "share of 0 of the members" in refusal(site, asked)
    with pytest.raises(ValueError, match="a block of the members has fewer than 26"):
        replace(asked, terms=replace(asked.terms, dishonest=0.5))


# ---- members -------------------------------------------------------------------------------------


def test_the_dealer_whose_key_is_pinned_is_no_member():
    """It holds no records: the sum over a site and the dealer is the site's counts."""
    world = federation(1)
    world.join("p01", records(0, 1))
    asked = query(world, "additive")
    with world.session() as session:
        assert np.array_equal(session.ask(asked).sums, counts_of(world, "p00"))
    world.roles["p00"].dealer = "p01"
    assert "the dealer holds no records" in refusal(world.roles["p00"], query(world, "additive"))


@both_ways
def test_exact_sums_that_differ_in_one_member_reveal_its_counts(via):
    """A known limit: the sites in both sums cannot know that the third was not in the second."""
    world = federation(3)
    with world.session() as session:
        whole = session.ask(query(world, via)).sums
        rest = session.ask(query(world, via, members=("p00", "p01"))).sums
    assert np.array_equal(whole - rest, counts_of(world, "p02"))
    world.roles["p00"].policy = Policy()
    assert "its policy does not set exact_sums" in refusal(world.roles["p00"], query(world, via))


def test_so_many_cannot_be_called_away_that_one_is_left():
    world = federation(3)
    site = world.roles["p00"]
    assert "too few" in refusal(site, query(world, "masked", dropouts=0.7))
    asked = query(world, "additive", dropouts=0.7)
    program = answer(site, consider(site, asked))
    next(program)
    name = parameters_of(asked.summation(), SMALL).label
    with pytest.raises(FaultyPartyError, match="more than a third of a block absent"):
        program.send({"analyst": Roll(name, asked.number, ("p01", "p02"))})


# ---- columns that are not shown ------------------------------------------------------------------


def test_refusals_name_no_state_of_a_column_that_is_not_shown():
    world = federation(2)
    site = world.roles["p00"]
    schema = replace(SCHEMA, features={"a": Variable("a", ("other",))})
    other = replace(query(world), terms=Terms(schema, 100, 50))
    assert "'a' has the state 'u'" in refusal(site, other), "of a column that is shown"
    site.policy = replace(EXACT, variables=("y",))
    assert refusal(site, other) == "it does not show a"
    assert refusal(site, query(world)) == "it does not show a"


def test_refusals_tell_how_many_records_a_site_has():
    """A known limit, in six questions, none of which is run: noise does not protect the number."""
    world = federation(2, Policy(most_epsilon=5.0, free_tables=True), each=37)
    site, asked = world.roles["p00"], query(world, privacy=Privacy(eps=1.0))
    low, high = 1, 64
    while low < high:
        most = (low + high) // 2
        try:
            consider(site, replace(asked, terms=replace(asked.terms, most_records=most)))
            high = most
        except QueryRefusedError:
            low = most + 1
    assert low == 37
    assert site.memory.spent == Cost()


# ---- numbers -------------------------------------------------------------------------------------


def answered(site, asked):
    """Return the first ciphertext that a site sends in a sum, as an integer."""
    program = answer(site, consider(site, asked))
    next(program)
    name = parameters_of(asked.summation(), SMALL).label
    step = program.send({"analyst": Roll(name, asked.number, ())})
    return int.from_bytes(step.outbox["analyst"].packets[0], "big")


def twice(monkeypatch):
    """Ask a site the same sum twice, between which it has lost its memory."""
    world = federation(3, Policy(most_epsilon=5.0, free_tables=True))
    asked, site = query(world, "additive", Privacy(eps=1.0)), world.roles["p00"]
    first = answered(site, asked)
    later = site.memory.began + 2 * 3_600_000_000
    monkeypatch.setattr("vertibayes_protocols.clock.time_ns", lambda: 1000 * later)
    site.memory = SiteMemory(randomness=SeededRandomness())
    return first, answered(site, asked)


def test_a_site_that_has_lost_its_memory_uses_no_key_again(monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(QueryRefusedError, match="keys are used"):
        twice(patch)
    monkeypatch.setattr("vertibayes_protocols.record_checks.CLOCKS", 1 << 62)
    first, second = twice(monkeypatch)
    opened = first * pow(second, -1, SMALL**2) % SMALL**2
    assert opened % SMALL == 1, "the key is gone: the rest is the difference of its noise"


def test_no_number_shuts_out_all_later_sums():
    world = federation(2)
    site, asked = world.roles["p00"], query(world)
    ahead = replace(asked, number=asked.number + 2 * 3_600_000_000)
    assert "is a time in the future" in refusal(site, ahead)
    later = replace(asked, number=asked.number + 60_000_000)
    assert consider(site, later).query is later


# ---- queries that no site should fail on ---------------------------------------------------------


NONE = Declaration(SCHEMA.variables, {}, ())


@pytest.mark.parametrize(
    "terms",
    [
        {"schema": NONE},
        {"schema": NONE, "privacy": None},
        {"schema": Declaration({"y": Variable("y", ())}, {}, (Counts((Family("y"),)),))},
        {"privacy": Privacy(eps=1.0, delta=5e-324, noise="diluted")},
        {"privacy": Privacy(eps=1e-300)},
    ],
)
def test_terms_that_cannot_be_summed_are_refused_before_anything_is_noted(terms):
    world = federation(2, Policy(most_epsilon=5.0, exact_sums=True, free_tables=True))
    site, asked = world.roles["p00"], query(world, privacy=Privacy(eps=1.0))
    assert consider(site, asked).query is asked
    assert refusal(site, replace(asked, terms=replace(asked.terms, **terms)))
    assert site.memory.spent == Cost()


def test_no_moments_of_no_column_are_declared():
    with pytest.raises(ValueError, match="moments of no column"):
        replace(NONE, statistics=(Moments((), "y", centred=True),))


@pytest.mark.parametrize("share", ["eps", "delta", "gamma"])
def test_no_noise_has_a_share_that_is_no_number(share):
    with pytest.raises(ValueError, match=f"{share} = nan"):
        Privacy(**{"eps": 1.0, share: math.nan})


@pytest.mark.parametrize("estimates", [np.array([np.nan, 2.0]), np.array([-3, 2])])
def test_estimates_that_are_no_whole_numbers_are_not_read(estimates):
    asked = query(federation(2))
    body = wire.encode(replace(asked, estimates=estimates))
    with pytest.raises(MalformedMessageError, match="estimates is no valid value: an array of"):
        wire.decode(body, "analyst", Expect(Query, QUERY_CELLS))


def test_a_budget_that_is_no_number_allows_nothing():
    with pytest.raises(ValueError, match="costs epsilon"):
        Policy().check_budget(Cost.of(math.nan), Cost.of(0.1))
    assert Policy().check_budget(Cost.of(0.5), Cost.of(0.5)) is None
    with pytest.raises(ValueError, match="dishonest"):
        Policy(dishonest=1.0)
