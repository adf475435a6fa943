"""Each party plans a query under its own memory and time before it agrees to it."""

from __future__ import annotations

import random
import re
import tracemalloc
from dataclasses import replace
from time import process_time
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.party_memory import measured
from tests.protocols.test_masked_costs import drawn
from vertibayes.splitting import split_columns
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import KeyPair, SystemRandomness
from vertibayes_mpc.rounds import Expect
from vertibayes_protocols import wire
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Choose, Commit, Release, Tables
from vertibayes_protocols.queries.tables.masked_costs import MaskedCosts
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.query import At, Query
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.session import QUERY_CELLS
from vertibayes_protocols.settings import settings_of
from vertibayes_protocols.variables import Family, Rows

MIB = 1 << 20
OBJECTS = 2 * MIB  # of the interpreter, for any query
SITES = 3


def opened(states, records, *, sites=SITES, choices=False):
    """Return a federation, and its study over columns of these numbers of states."""
    federation = federate(split_columns(drawn(states, records), sites), memory_budget=1 << 36)
    dealer, parties = federation.dealer, federation.sites
    study = open_study(federation.session, parties, dealer, choices=choices, memory=1 << 34)
    return federation, study


def families(study, number, width, seed=0):
    """Return different families of random members."""
    source, names = random.Random(seed), list(study.study.variables)
    drawn_ones = (source.sample(names, width) for _ in range(10 * number))
    return [Family(c, tuple(p)) for c, *p in dict.fromkeys(map(tuple, drawn_ones))][:number]


def tables(study, asked):
    return ask_tables(study.joined, asked, False, Rows())[0]


def choices(study, asked):
    """Return a query whose sets compare each family with its child alone."""
    sets = [((Score(Family(f.child), (), 1),), (Score(f, (), 1),)) for f in asked]
    return Choose.of(study.joined, Choices(tuple(sets)))


def release(study, asked):
    return Release.of(study.joined, FamilyTables(tuple(asked), False, Rule("cut", fewest=3)))


def roles(federation, **limits):
    """Return a site and the dealer, with policies of these limits."""
    site = federation.roles["site-1"]
    policy = replace(site.policy, **limits)
    site.policy, keys = policy, KeyPair.generate(SystemRandomness())
    return site, DealerRole("dealer", keys, {}, policy, joined=site.joined)


def refusal(role, query):
    """Return why a party refuses a query."""
    with pytest.raises(QueryRefusedError) as error:
        consider(role, query)
    assert error.value.site == role.party
    return error.value.reason


# ---- plans are bounds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "states", "records", "number", "width", "sites"),
    [
        (tables, [3, 2, 6, 40, 5, 4, 2, 3], 4000, 20, 3, 3),
        (tables, [8, 8, 8, 8], 3000, 3, 3, 3),
        (choices, [2] * 8, 3000, 8, 5, 3),
        (choices, [6] * 6, 3000, 8, 3, 3),
        (choices, [4, 6, 7, 8, 9], 256, 8, 4, 2),
        (choices, [5] * 5, 100, 2, 5, 5),
        (release, [4] * 8, 3000, 6, 4, 3),
        (release, [9] * 5, 3000, 3, 4, 2),
    ],
)
def test_no_party_takes_more_memory_than_it_has_planned(ask, states, records, number, width, sites):
    federation, study = opened(states, records, sites=sites, choices=ask is not tables)
    query = ask(study, families(study, number, width))
    with federation, measured(federation) as taken:
        federation.session.ask(query)
        federation.roles["site-1"].joined.sums.clear()  # as before the query
        plan = query.plan(At.of(federation.roles["site-1"]))
    planned = plan.needed.planned if ask is choices else plan.planned
    assert max(party.most for party in taken.values()) <= planned.memory


@pytest.mark.laws
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([tables, choices, release]),
    st.lists(st.integers(2, 9), min_size=4, max_size=9),
    st.integers(20, 6000),
    st.integers(1, 15),
    st.integers(2, 4),
    st.integers(1, 5),
)
def test_plans_of_random_queries_are_bounds(ask, states, records, number, width, sites):
    federation, study = opened(states, records, sites=min(sites, len(states)), choices=True)
    query = ask(study, families(study, number, width))
    with federation, measured(federation) as taken:
        federation.session.ask(query)
        federation.roles["site-1"].joined.sums.clear()  # as before the query
        plan = query.plan(At.of(federation.roles["site-1"]))
    planned = plan.needed.planned if ask is choices else plan.planned
    most = max(party.most for party in taken.values())
    assert most <= planned.memory + OBJECTS


def test_many_small_products_take_more_than_their_columns():
    """A control: plans of version 0.1.0 have three copies of each column, and no more."""
    federation, study = opened([2] * 10, 40)
    query = tables(study, families(study, 15, 6))
    with federation, measured(federation) as taken:
        federation.session.ask(query)
        plan = query.plan(At.of(federation.roles["site-1"]))
    costs = MaskedCosts(study.study, 40, missing=False)
    columns = [costs.columns_of(group.prefix) for group in plan.multiplied]
    extended, rows = (sum(each) for each in list(zip(*columns, strict=True))[:2])
    words = 40 * (3 * extended + 2 * costs.indicators) + rows * costs.indicators * costs.parties
    assert all(2 * words < party.most <= plan.planned.memory for party in taken.values())


# ---- refusals ------------------------------------------------------------------------------------

FIGURES = (
    r"the query takes up to [\d,]{10,} bytes of memory at a party, .* most_memory = 268,435,456"
)
SLOW = r"the query takes about [\d,]+ s of work of all parties, .* most_minutes = 0.001"


@pytest.mark.parametrize("ask", [tables, release, pytest.param(choices, marks=pytest.mark.laws)])
def test_a_site_and_the_dealer_refuse_a_query_that_takes_too_much(ask):
    """500 tables of eight columns: a message of 0.1 MB, and 5 GB at the parties together."""
    federation, study = opened([2] * 24, 40 if ask is tables else 2000, choices=True)
    query = ask(study, families(study, 500, 8))
    assert len(wire.encode(query)) < 150_000
    for role in roles(federation, most_memory=256 * MIB, most_variables=16):
        tracemalloc.start()
        began = process_time()
        assert re.match(FIGURES, refusal(role, query))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert process_time() - began < 5 and peak < 100 * MIB  # a second, without tracemalloc
    for role in roles(federation, most_memory=1 << 60, most_minutes=0.001):
        assert re.match(SLOW, refusal(role, query))


def test_the_analyst_does_not_ask_what_takes_too_long():
    federation, study = opened([4] * 6, 2000)
    role = federation.session.role
    role.policy = replace(role.policy, most_minutes=1e-6)
    with federation, pytest.raises(QueryRefusedError, match="analyst refuses: the query takes ab"):
        next(study.reveal(families(study, 5, 3), missing=False, rows=Rows()))
    assert not role.ledger.tables


def test_a_table_that_is_asked_for_twice_is_refused():
    """300,000 times one table made two queries into a ledger of 43 MB."""
    federation, study = opened([2] * 4, 100)
    (family,) = families(study, 1, 3)
    once = tables(study, [family])
    twice = replace(once, prefixes=once.prefixes * 2, lasts=once.lasts * 2)
    for role in roles(federation):
        assert "two groups have the same prefix" in refusal(role, twice)
    with pytest.raises(ValueError, match="a variable appears twice in a group"):
        replace(once, lasts=(np.repeat(once.lasts[0], 2),))


def test_a_set_that_is_asked_for_twice_is_refused():
    federation, study = opened([2] * 4, 100, choices=True)
    (family,) = families(study, 1, 3)
    for role in roles(federation):
        assert "two sets have the same candidates" in refusal(role, choices(study, [family] * 2))


def hostile(number):
    """Return a query of the largest number of groups that its size allows."""
    place, nothing = np.zeros(1, np.uint32), np.zeros(0, np.uint32)
    shapes = (place,) * number, (nothing,) * number
    return Tables(("a",), b"study", 1, ("v0",), *shapes, False, Rows())


def test_a_query_of_millions_of_cells_is_refused_before_it_is_read_or_planned():
    with patch("vertibayes_protocols.queries.tables.tables.MOST_GROUPS", 60_000):
        body = wire.encode(hostile(60_000))
    began = process_time()
    with pytest.raises(MalformedMessageError, match="more than 200,000 values"):
        wire.decode(body, "analyst", Expect(Query, QUERY_CELLS))
    assert process_time() - began < 4  # 0.4 s on an idle machine
    with pytest.raises(ValueError, match="24,000 groups of tables; at most 20,000"):
        hostile(24_000)


def test_a_study_whose_masked_columns_take_too_much_is_refused():
    federation, study = opened([200] * 3, 100, choices=True)
    stored = MaskedCosts(study.study, 100, missing=True).stored_bytes
    assert stored == federation.roles["site-1"].holder.commitments.masked_bytes
    query = Commit.of(study.study)
    for role in roles(federation, most_stored=stored - 1, most_memory=1 << 62):
        role.public_keys = dict.fromkeys(study.study.parties, b"")
        assert f"take {stored:,} bytes at each site, and its policy" in refusal(role, query)


def test_the_policy_of_a_file_sets_both_limits():
    names = {setting.name for setting in settings_of(Policy)}
    assert {"most_memory", "most_minutes", "most_stored"} <= names
    with pytest.raises(ValueError, match="`most_minutes` must be above 0, got 0"):
        Policy(most_minutes=0)
