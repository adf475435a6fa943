"""Sums: what sites refuse and why, what they remember, and analysts who tell them different things.

The models that are learned of sums are tested in tests/vertibayes/test_hdpnb.py.
"""

import math
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import refusal_at
from tests.schemes import SMALL
from tests.vertibayes.hdpnb_worlds import SCHEMA, WAYS, federation_of, parties, watch
from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_mpc.errors import ProtocolError, UnknownFaultyPartyError
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.engine import answer, consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Sums
from vertibayes_protocols.queries.sums.aggregations import parameters_of, plan_of
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Declaration
from vertibayes_protocols.site.statistics import Counts, LocalData, Moments, Numeric, measure
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Variable

NOISY = Privacy(eps=30.0, gamma=0.5)


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Parameters, "least_bits", 0)


both_ways = pytest.mark.parametrize("via", WAYS)


def query_of(federation, via="masked", privacy=None, **given):
    terms = Terms(given.pop("schema", SCHEMA), 20, given.pop("most_records", 9), privacy, **given)
    return Sums.of(federation.analyst, terms, Members(terms, federation.roles, via))


def ask(federation, query):
    with federation.session() as session:
        return session.ask(query)


def changed(query, **changes):
    """Return a query of which a statistic, a term or another field is changed."""
    terms, schema = query.terms, query.terms.schema
    parts = {name: getattr(schema, name) for name in ("variables", "numerics", "statistics")}
    if not changes.keys().isdisjoint(parts):
        parts |= {name: changes.pop(name) for name in parts if name in changes}
        changes["schema"] = Declaration(**parts)
    agreed = {name: changes.pop(name) for name in vars(terms) if name in changes}
    return replace(query, terms=replace(terms, **agreed), **changes)


# ---- what a site refuses -------------------------------------------------------------------------

EVERY = ("p00", "p01", "p02", "p03")
THREES = np.full(5, 3, np.uint32)
Y, A, B, Q = *SCHEMA.variables.values(), Variable("q", ("s0",))
COUNTS, Z = SCHEMA.statistics[0], Numeric("z", 1.0, 1.0)


def named(*variables):
    return {variable.name: variable for variable in variables}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parties": ("p00", "p02", "p03")}, "not among the members that are asked"),
        ({"absent": ("p01",)}, "not among the members that are asked"),
        ({"blocks": (("p00", "p02"),), "estimates": THREES[:2] - 1}, "not among the members"),
        ({"blocks": ((*EVERY, "zz"),), "estimates": THREES, "parties": (*EVERY, "zz")},
         "no {} of zz is pinned here"),
        ({"most_records": 3}, "its data has more records than the 3 agreed"),
        ({"variables": named(Y, A, replace(B, states=("s0",)))},
         "'b' has the state 's1', not a declared one"),
        ({"variables": named(Y, A, B, Q)}, "it has no column 'q'"),
        ({"statistics": ()}, "no statistics are asked for"),
        ({"statistics": (), "privacy": NOISY}, "the noise is for counts, and no table is asked fo"),
        ({"numerics": {"z": Z}}, "it has no column 'z'"),
    ],
)  # fmt: skip
@both_ways
def test_a_query_that_does_not_fit_is_refused(via, changes, reason):
    federation = federation_of(parties(4))
    query = query_of(federation, via, dropouts=0.25)
    site = federation.roles["p01"]
    consider(site, query)
    what = {"masked": "signing key", "additive": "public key"}[via]
    assert reason.format(what) in refusal_at(site, changed(query, **changes))
    assert site.memory.last_sum(query.analyst) == -1, "and nothing is noted"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"absent": ("p00", "p02")}, "2 members are absent, at most 1 are agreed"),
        ({"absent": ("p00", "zz")}, "2 members are absent, at most 1 are agreed"),
        ({"absent": ("p00", "p00")}, "a member appears twice among the absent"),
        ({"blocks": ((*EVERY, "p00"),), "estimates": THREES}, "from 2 to 20, each once"),
        ({"blocks": (("p01",),), "estimates": THREES[:1] - 2}, "from 2 to 20, each once"),
        ({"most_parties": 3}, "4 members: there must be from 2 to 3"),
        ({"estimates": np.array([4, 5, 4, 4], np.uint32)}, "an estimate of the number of members"),
        ({"estimates": np.full(3, 4, np.uint32)}, "an estimate of the number of members"),
        ({"via": "paillier"}, "via 'paillier': it must be additive or masked"),
        ({"number": 2**62 + 1}, r"it must be from 0 to 2\*\*62"),
        ({"analyst": b""}, "must have the public key of its analyst"),
        ({"number": -1}, r"it must be from 0 to 2\*\*62"),
        ({"dishonest": 0.5, "dropouts": 0.6}, "shares of at least 0 that add up"),
        ({"dropouts": math.nan}, "Invalid literal"),
        ({"dropouts": 0.75, "absent": ("p00", "p02", "p03")}, "fewer than two members are present"),
        ({"variables": named(Y, A, Q)}, "variable not found: 'b'"),
        ({"variables": {"y": Y, "a": A, "b": Q}}, "the column 'b' is named 'q'"),
        ({"numerics": {"b": Numeric("b", 0, 1)}}, "'b' is declared with states and with bounds"),
        ({"statistics": (Counts((Family("y"), Family("a", ("a",)))),)},
         "a table has a variable twice"),
        ({"statistics": (COUNTS, Moments(("z",), "y"))}, "'z' is not a declared column"),
        ({"statistics": (COUNTS, Moments((), "q", True))}, "variable not found: 'q'"),
        ({"statistics": (COUNTS, Moments((), "y", True))}, "moments of no column"),
    ],
)  # fmt: skip
@both_ways
def test_a_query_that_cannot_be_is_not_constructed(via, changes, reason):
    query = query_of(federation_of(parties(4)), via, dropouts=0.25)
    with pytest.raises(ValueError, match=reason):
        changed(query, **changes)


@pytest.mark.parametrize(
    ("policy", "privacy", "reason"),
    [
        ({"variables": ("y", "a")}, None, "it does not show b"),
        ({"exact_sums": False}, None, "its policy does not set exact_sums"),
        ({"exact_sums": False}, NOISY, None),
        ({"most_variables": 1}, None, "a table of 2 variables, at most 1"),
        ({"most_cells": 20}, None, "tables of 21 cells, at most 20"),
        ({"most_epsilon": 29}, NOISY, "the release costs epsilon 30: 29 is left of most_epsilon"),
        ({"most_epsilon": 90}, Privacy(eps=30.0, accounting="count"), None),
        ({"most_epsilon": 89}, Privacy(eps=30.0, accounting="count"), "costs epsilon 90: 89"),
        ({"most_delta": 1e-5}, Privacy(eps=30.0, noise="diluted", delta=2e-5), "costs delta 2e-05"),
        ({"most_delta": 1e-5}, NOISY, None),
    ],
)
def test_what_a_policy_does_not_allow_is_refused(policy, privacy, reason):
    federation = federation_of(parties(4), policy=replace(ALLOW_ALL, **policy))
    query, site = query_of(federation, privacy=privacy), federation.roles["p01"]
    if reason is None:
        assert consider(site, query).query is query
    else:
        assert reason in refusal_at(site, query)


def test_columns_of_numbers_are_hidden_by_a_policy_too():
    world, query = numbers_of(policy=replace(ALLOW_ALL, variables=("y", "z")))
    assert "it does not show w" in refusal_at(world.roles["p0"], query)


def test_blocks_that_few_could_surround_are_refused():
    federation = federation_of(parties(4))
    with pytest.raises(ValueError, match="a block of the members has fewer than 20"):
        replace(query_of(federation, "additive"), blocks=(EVERY[:2], EVERY[2:]))


def test_the_least_block_grows_with_who_may_collude_and_be_absent():
    federation = federation_of(parties(40))
    names = tuple(sorted(federation.roles))
    terms = Terms(SCHEMA, 40, 9, None, dishonest=0.5, dropouts=0.45)
    query = Sums.of(federation.analyst, terms, Members(terms, names, "additive"))
    blocks = names[:20], names[20:]
    assert consider(federation.roles["p01"], replace(query, blocks=blocks)).plan.blocks == blocks
    terms = replace(terms, most_parties=60)
    query = Sums.of(federation.analyst, terms, Members(terms, names, "additive"))
    with pytest.raises(ValueError, match="has fewer than 29"):
        replace(query, blocks=blocks)


def test_a_site_that_has_pinned_no_key_of_the_analyst_refuses():
    federation = federation_of(parties(4))
    federation.roles["p01"].analyst_key = b""
    assert "no public key of analyst" in refusal_at(federation.roles["p01"], query_of(federation))


def test_gamma_of_the_members_is_one_at_least():
    federation = federation_of(parties(4))
    query = changed(query_of(federation, privacy=NOISY), privacy=replace(NOISY, gamma=0.2))
    assert "gamma n = 0.2 * 4" in refusal_at(federation.roles["p01"], query)


def test_masked_sums_over_too_few_are_not_begun():
    federation = federation_of(parties(2))
    query = query_of(federation, dropouts=0.5)
    assert "too few are left" in refusal_at(federation.roles["p01"], query)
    with pytest.raises(ValueError, match="too few are left"):
        ask(federation, query)


@both_ways
def test_where_one_site_refuses_nobody_spends_anything(via):
    federation = federation_of(parties(4))
    federation.roles["p02"].policy = replace(ALLOW_ALL, most_epsilon=1.0)
    with pytest.raises(QueryRefusedError, match="p02 refuses: the release costs epsilon 30: 1 is"):
        ask(federation, query_of(federation, via, NOISY))
    assert {site.memory.spent for site in federation.roles.values()} == {Cost()}
    assert not any(site.ledger.facts for site in federation.roles.values())


# ---- what a site remembers -----------------------------------------------------------------------


@both_ways
def test_budget_and_numbers_outlive_the_process(via, tmp_path):
    federation = federation_of(parties(4), policy=replace(ALLOW_ALL, most_epsilon=70.0))
    site = federation.roles["p01"]
    with closing(SiteMemory(tmp_path / "memory")) as site.memory:
        first = query_of(federation, via, NOISY)
        ask(federation, first)
        ask(federation, query_of(federation, via, NOISY))
        reason = "the release costs epsilon 30: 10 is left of most_epsilon = 70"
        assert reason in refusal_at(site, query_of(federation, via, NOISY))
    with closing(SiteMemory(tmp_path / "memory")) as site.memory:
        assert reason in refusal_at(site, query_of(federation, via, NOISY))
        small = query_of(federation, via, Privacy(eps=9.0))
        for number in (first.number, first.number + 1, site.memory.last_sum(first.analyst)):
            found = refusal_at(site, replace(small, number=number))
            assert f"sum number {number} does not come after" in found
        assert consider(site, small).query is small


@both_ways
def test_the_budget_is_spent_before_the_first_byte_and_a_number_once(via, tmp_path):
    federation = federation_of(parties(4))
    site, query = federation.roles["p01"], query_of(federation, via, NOISY)
    with closing(SiteMemory(tmp_path / "memory")) as site.memory:
        agreed = consider(site, query)
        next(answer(site, agreed))  # the process dies here
    with closing(SiteMemory(tmp_path / "memory")) as again:
        assert again.spent.eps == 30.0 and again.last_sum(query.analyst) == query.number
        site.memory = again
        with pytest.raises(ValueError, match="must be above"):
            next(answer(site, agreed))


# ---- what is summed ------------------------------------------------------------------------------


@both_ways
def test_a_site_with_some_of_the_states_in_another_order_is_recoded(via):
    own = {"y": ("s2", "s0"), "b": ("s1",), "a": ("s3", "s1", "s0", "s2")}
    codes = {"y": [0, 1, 1, 2], "b": [0, 1, 0, 0], "a": [0, 1, 2, 3]}  # b, then y, is missing once
    odd = LocalData({n: Variable(n, s) for n, s in own.items()},
                    {n: np.array(c) for n, c in codes.items()})  # fmt: skip
    same = LocalData(SCHEMA.variables, {"y": np.array([2, 0, 0, 3]), "b": np.array([1, 2, 1, 1]),
                                        "a": np.array([3, 1, 0, 2])})  # fmt: skip
    federation = federation_of(parties(2) | {"odd": odd})
    wanted = sum(SCHEMA.measure(data) for data in (*parties(2).values(), same))
    assert np.array_equal(ask(federation, query_of(federation, via)).sums, wanted)


def numbers_of(via="masked", policy=ALLOW_ALL):
    """Three sites with two columns of numbers, and the query for their moments by y."""
    generator, y = np.random.default_rng(5), Variable("y", ("s0", "s1"))
    numerics = {"z": Numeric("z", 0, 10), "w": Numeric("w", -1, 1)}

    def part():
        numbers = {n: generator.uniform(c.low, c.high, 8) for n, c in numerics.items()}
        numbers["w"][3] = np.nan
        return LocalData({"y": y}, {"y": generator.integers(0, 2, 8)}, numerics, numbers)

    schema = Declaration({"y": y}, numerics, (Moments(("z", "w"), "y"),))
    world = federation_of({f"p{i}": part() for i in range(3)}, policy=policy)
    return world, query_of(world, via, schema=schema)


@both_ways
def test_moments_of_numbers_are_summed(via):
    world, query = numbers_of(via)
    statistics = query.terms.schema.statistics
    wanted = sum(measure(statistics, site.batches[0]) for site in world.roles.values())
    released = ask(world, query)
    assert np.array_equal(released.sums, wanted) and wanted.shape == (12,)
    assert "moments of z, w over 3 of 3 parties" in world.roles["p1"].ledger.facts[0].what


# ---- an analyst who tells sites different things -------------------------------------------------


def less_noise(query):
    """p02 is told that all are honest, and adds half of the noise that the others count on."""
    return changed(query, privacy=replace(NOISY, gamma=1.0))


def other_members(query):
    asked = ("p00", "p01", "p02", "p04")
    return replace(query, blocks=(asked,), parties=asked)


def other_records(query):
    y, a, b = COUNTS.families
    return changed(query, statistics=(Counts((y, b, a)),))


def names_of(federation, query):
    """What a sum's messages are named by: the roll and its answers, or all of a masked sum."""
    sum_ = query.summation()
    if query.via == "additive":
        return parameters_of(sum_, SMALL).label
    return plan_of(sum_, federation.analyst.signing_keys).label


def renamed(message, name, other):
    for field in ("label", "context"):
        if getattr(message, field, None) == name:
            return replace(message, **{field: other})
    return message


def equivocate(via, change):
    held = parties(5)
    federation = federation_of(held)
    federation.analyst.public_keys.pop("p04"), federation.analyst.signing_keys.pop("p04")
    del federation.roles["p04"]
    terms = Terms(SCHEMA, 20, 9, NOISY)
    query = Sums.of(federation.analyst, terms, Members(terms, federation.roles, via))
    more = federation_of(held).roles["p04"]
    for keys, key in ((federation.analyst.public_keys, more.keys),
                      (federation.analyst.signing_keys, more.signing)):  # fmt: skip
        keys["p04"] = key.public

    told = change(query)
    ours, theirs = names_of(federation, query), names_of(federation, told)

    def note(transport, sent):
        """Let p02 have the other query, and no name of a message tell it so."""
        if sent.receiver == "p02":
            return told if sent.message is query else renamed(sent.message, ours, theirs)
        return renamed(sent.message, theirs, ours) if sent.sender == "p02" else None

    watch(federation, note)
    return ask(federation, query)


@pytest.mark.parametrize("change", [less_noise, other_members, other_records])
def test_who_tells_sites_different_things_opens_nothing(change):
    with pytest.raises(UnknownFaultyPartyError, match="not 1 modulo N"):
        equivocate("additive", change)
    with pytest.raises(ProtocolError):
        equivocate("masked", change)


@pytest.mark.parametrize("change", [less_noise, other_records])
@both_ways
def test_without_the_digest_of_the_query_it_would_open(via, change, monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.queries.sums.sums.label", lambda *parts: bytes(32))
    assert len(equivocate(via, change).parties) == 4
