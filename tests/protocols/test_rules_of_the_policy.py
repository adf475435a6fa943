"""No sequence of queries exceeds a rule of a site's policy, whatever is asked in which order.

Of each rule, what was answered is added up from what was asked and from the results: from nothing
that the site remembers. Each test has a control: sites that ignore the rule exceed it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.golden import queries
from tests.protocols.golden.breaks import Break
from tests.protocols.golden.data import RECORDS, SCHEMA
from tests.protocols.golden.looks import look
from tests.protocols.golden.queries import QUERIES
from tests.protocols.golden.record import opened, worlds
from tests.protocols.golden.runs import approved, begin
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError
from vertibayes_protocols.policy import ALLOW_ALL, Policy
from vertibayes_protocols.release import Rule as ReleaseRule
from vertibayes_protocols.variables import Rows


class Answer(NamedTuple):
    """A query that was answered: its name, its content, its result, and the site's records."""

    name: str
    content: dict
    result: object
    records: frozenset


class Rule(NamedTuple):
    """A rule: values that a policy may have, queries, and what of the answers exceeds a value.

    check: the method of `Policy` that a control leaves out; without one, the control's sites have
    the policy `free` in place of the rule.
    """

    scene: str
    limits: tuple
    asked: tuple
    exceeds: Callable
    check: str = ""
    free: object = None
    policy: dict = {}  # noqa: RUF012


def content_of(answer):
    return {**QUERIES[answer.name].content, **answer.content}


def records_of(session, query):
    """Return which records a study's query counts, as a site knows them."""
    if not hasattr(query, "rows"):
        return frozenset()
    chosen = session.roles["a"].joined.selection(query.rows).indices
    return frozenset(range(RECORDS) if chosen is None else chosen.tolist())


def session_of(world, scene, policy):
    """Begin a session; its parties follow a policy once a study is open."""
    session = opened(world, scene)
    for role in session.roles.values():
        role.policy = policy
    return session


def answers_of(world, scene, policy, asked):
    """Ask queries one after the other; return the answers."""
    session, found = session_of(world, scene, policy), []
    for name, content in asked:
        query = QUERIES[name].query(session.analyst, **content)
        try:
            result = session.ask(query)
        except QueryRefusedError:
            continue
        except RecordsDifferError:
            session, result = session_of(world, scene, policy), None
        found.append(Answer(name, content, result, records_of(session, query)))
    return found


# ---- what answers add up to ----------------------------------------------------------------------


def tables_of(answer):
    """Return the tables of an answer: of a release, or of scores."""
    return answer.result if isinstance(answer.result, list) else [answer.result]


def shows_another(shown, answers):
    asked = [content_of(a).get("schema", SCHEMA) for a in answers]
    return any(set(schema.variables) - set(shown) for schema in asked)


def is_wider(most, answers):
    return any(len(names) > most for a in answers for names in content_of(a)["asked"])


def has_more_cells(most, answers):
    return any(sum(t.size for t in tables_of(a)) > most for a in answers)


def releases_more(measure, most, answers):
    return sum(measure(table) for a in answers for table in tables_of(a)) > most


def costs_more(part, most, answers):
    return sum(part(content_of(a)) for a in answers) > most * (1 + 1e-9)


def eps_of(content):
    noise = content.get("privacy") or content.get("rule")
    return (
        noise.eps if isinstance(noise, Privacy) else getattr(noise, "epsilon", content.get("eps"))
    )


def scores_more(most, answers):
    return sum(len(a.result) for a in answers) > most


def has_more_sets(most, answers):
    return len({a.records for a in answers}) > most


def singles_out_fewer(fewest, answers):
    """Whether the answered sets, and their complements, single out fewer records."""
    atoms = {}
    for record in range(RECORDS):
        inside = tuple(record in a.records for a in answers)
        if any(inside):
            atoms[inside] = atoms.get(inside, 0) + 1
    return any(count < fewest for count in atoms.values())


def was_answered(allowed, answers):
    return not allowed and bool(answers)


def is_too_trusting(least, answers):
    """Whether an answer allows a smaller share of dishonest members than the policy expects."""
    shares = [content_of(a) for a in answers]
    rules = [content["rule"].dishonest for content in shares if "rule" in content]
    return (
        min([*rules, *(c.get("dishonest", 0) for c in shares if "rule" not in c)], default=1)
        < least
    )


def is_mixed(alone, answers):
    """Whether some answers have noise, and others have none."""
    given_ = [{"eps": 1, **content_of(a)} if a.name == "report" else content_of(a) for a in answers]
    has_noise = {
        content["rule"].is_noisy if "rule" in content else bool(eps_of(content))
        for content in given_
    }
    return alone and len(has_noise) > 1


def is_by_masks(ways, answers):
    """Whether a study by masked tables was committed without being allowed."""
    return "masked-tables" not in ways and bool(answers)


def is_more(most, answers):
    return len(answers) > most


# ---- the rules -----------------------------------------------------------------------------------

SMALL = replace(SCHEMA, features={"a": SCHEMA.features["a"]})
STATISTICS = (
    ("sums", {}), ("sums", {"schema": SMALL}), ("updates", {"schema": SMALL}), ("updates", {}),
    ("report", {"schema": SMALL}), ("report", {}),
    ("consensus", {}), ("consensus", {"schema": SMALL}),
)  # fmt: skip
TABLES = tuple(
    (name, {"asked": asked})
    for asked in (("w",), ("xz", "w"), ("zxy",))
    for name in ("tables", "release")
)
SETS = tuple(
    (name, {"rows": rows})
    for name in ("tables", "choose", "score table")
    for rows in (Rows(), Rows(1, 0, 20), Rows(2, 0, 30), Rows(1, 20, 40))
)
RELEASED = (
    ("release", {"asked": ("w",)}),
    ("release", {}),
    ("score table", {}),
    ("score table, cut", {}),
)
SHARED = (
    *(("sums", {"privacy": Privacy(eps=eps, gamma=0.5)}) for eps in (0.1, 0.4)),
    ("updates", {"privacy": Privacy(eps=0.2, noise="laplace")}),
    ("report", {"eps": 0.2}),
)
DILUTED = tuple(
    ("sums", {"privacy": Privacy(eps=0.1, noise="diluted", delta=delta)}) for delta in (1e-4, 2e-4)
)
NOISY = (
    ("publish", {"eps": 0.2}),
    ("publish", {"eps": 0.3}),
    ("release", {"rule": ReleaseRule("laplace", epsilon=0.2)}),
    ("score table", {"rule": ReleaseRule("laplace", epsilon=0.3)}),
)
HONEST = tuple(
    ("release, laplace", {"rule": ReleaseRule("laplace", dishonest=share)}) for share in (0.0, 0.4)
)
EXACT_SUMS = (*STATISTICS[:2], *STATISTICS[6:])
MEETS = (("meet with lists", {}),)

SCORED = (
    ("predict", {}),
    ("predict", {"rows": Rows(3, 0, 7)}),
    ("scores", {"last": 5}),
    ("predict some records", {}),
)
TRUSTING = tuple(("sums", {"dishonest": share}) for share in (0.0, 0.3))
OF_NUMBERS = STATISTICS[6:]
MIXED = (*NOISY, *TABLES[:2], *SCORED[:3])
MIXED_SUMS = (*STATISTICS[:2], *STATISTICS[6:7], *SHARED)
costs_eps = partial(costs_more, eps_of)
costs_delta = partial(costs_more, lambda content: content["privacy"].delta)
has_more_tables = partial(releases_more, lambda table: 1)
releases_more_cells = partial(releases_more, np.size)
BASIC = {"most_delta": 1e-15}  # eps adds up: the other bound has a larger one
WIDE = {"most_epsilon": 20.0}

RULES = {
    "variables": Rule("records", (("y", "a"), ("y",)), STATISTICS, shows_another, "check_shown"),
    "most_variables": Rule("study", (1, 2), TABLES, is_wider, "check_tables"),
    "most_cells": Rule("study", (2, 12), TABLES, has_more_cells, "check_tables"),
    "fewest_records": Rule("study", (5, 12), SETS, singles_out_fewer, free=1),
    "most_row_sets": Rule("study", (1, 2), SETS, has_more_sets, free=50),
    "most_released_tables": Rule("study", (1, 3), RELEASED, has_more_tables, "check_released"),
    "most_released_cells": Rule("study", (10, 25), RELEASED, releases_more_cells, "check_released"),
    "exact_sums": Rule("records", (False,), EXACT_SUMS, was_answered, "check_exact"),
    "exact_neighbours": Rule("records", (False,), OF_NUMBERS, was_answered, "check_neighbours"),
    "most_epsilon": Rule("records", (0.3, 0.7), SHARED, costs_eps, "check_budget", policy=BASIC),
    "most_epsilon of a study": Rule(
        "study", (0.3, 0.7), NOISY, costs_eps, "check_budget", policy=BASIC
    ),
    "most_delta": Rule("records", (1e-4, 3e-4), DILUTED, costs_delta, "check_budget", policy=WIDE),
    "most_scores": Rule("study", (0, 30), SCORED, scores_more, free=10**6),
    "dishonest": Rule("records", (0.2, 0.5), TRUSTING, is_too_trusting, "check_dishonest"),
    "noise_alone": Rule("study", (True,), MIXED, is_mixed, "check_alone"),
    "noise_alone of sums": Rule("records", (True,), MIXED_SUMS, is_mixed, "check_alone"),
    "dishonest of a study": Rule("study", (0.2, 0.5), HONEST, is_too_trusting, "check_dishonest"),
    "free_tables": Rule("study", (False,), (*TABLES, *SCORED), was_answered, free=True),
    "count_by": Rule("columns", ((), ("paillier",)), (("commit", {}),), is_by_masks, "check_way"),
    "most_failed_meets": Rule("lists", (1, 2), MEETS, is_more, free=10**6),
}
"""The rules on which answers add up; the others follow below."""


def exceeded(name, value, asked, ignored=False):
    """Whether the answers to a sequence of queries exceed a rule."""
    rule, field = RULES[name], name.partition(" ")[0]
    given_ = rule.free if ignored and not rule.check else value
    policy = replace(ALLOW_ALL, **{**rule.policy, field: given_})
    with worlds(rule.scene) as world, ExitStack() as stack:
        if ignored and rule.check:
            stack.enter_context(patch.object(Policy, rule.check, lambda *_, **__: None))
        answers = answers_of(world, rule.scene, policy, asked)
    return rule.exceeds(value, answers)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_no_sequence_of_queries_exceeds_a_rule(rule, data):
    value = data.draw(st.sampled_from(RULES[rule].limits))
    asked = data.draw(st.lists(st.sampled_from(RULES[rule].asked), min_size=1, max_size=4))
    assert not exceeded(rule, value, asked)


@pytest.mark.parametrize("rule", RULES)
def test_sites_that_ignore_the_rule_exceed_it(rule):
    """The control of the test above, with all of its queries one after the other."""
    asked = RULES[rule].asked
    assert exceeded(rule, RULES[rule].limits[0], asked * (2 if len(asked) < 3 else 1), ignored=True)


# ---- runs of approved studies --------------------------------------------------------------------


def runs_of(ends, **policy):
    """Run a study once for each of `ends`; return how many began, released, and showed winners.

    ends: whether the run asks for its release too. A run that is refused is over.
    """
    allowed = {"free_tables": False, **policy}
    with worlds("study", policy=replace(ALLOW_ALL, **allowed)) as world:
        contract = approved(world, "study", "choose", runs=100)
        began = chose = released = 0
        for number, is_whole in enumerate(ends):
            session = opened(world, "")
            with session.session, suppress(QueryRefusedError):
                begin(session, "study", contract, b"study %d" % number)
                began += 1
                session.ask(queries.choose(session.analyst))
                chose += 1
                if is_whole:
                    session.ask(queries.release(session.analyst))
                    released += 1
    return began, chose, released


BITS = 2  # of the winner of two candidates, with whether it wins narrowly


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 3), st.lists(st.booleans(), min_size=1, max_size=4))
def test_no_more_runs_fail_than_the_policy_allows(most, ends):
    began, _, released = runs_of(ends, most_failed_runs=most)
    assert began - released <= most
    assert began == len(ends) or began - released == most


def test_sites_that_ignore_failed_runs_let_more_fail():
    """The control of the test above."""
    assert runs_of([False] * 3, most_failed_runs=10**6)[0] == 3


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 7), st.lists(st.booleans(), min_size=1, max_size=4))
def test_winners_have_no_more_bits_than_the_policy_allows(most, ends):
    _, chose, _ = runs_of(ends, most_choice_bits=most)
    assert BITS * chose <= most
    assert chose == len(ends) or BITS * (chose + 1) > most


def test_sites_that_ignore_the_bits_of_winners_show_more():
    """The control of the test above."""
    with patch.object(Policy, "check_chosen", lambda *_: None):
        assert BITS * runs_of([False] * 3, most_choice_bits=1)[1] > 1


# ---- contracts -----------------------------------------------------------------------------------

FLOORS = {  # values of a policy, and whether a contract exceeds one
    "rules": ((("cut", "exact"), ("laplace", "gaussian")), lambda v, rule, _: rule.kind not in v),
    "least_fewest": (
        (2, 10),
        lambda v, rule, _: not rule.is_noisy and (rule.kind == "exact" or rule.fewest < v),
    ),
    "most_epsilon_of_a_study": (
        (0.3, 1.0),
        lambda v, rule, runs: rule.is_noisy and rule.epsilon * runs > v * (1 + 1e-9),
    ),
    "most_runs": ((1, 3), lambda v, _, runs: runs > v),
}
CONTRACTS = st.tuples(
    st.builds(
        ReleaseRule,
        st.sampled_from(("exact", "cut", "rounded", "laplace", "gaussian")),
        fewest=st.sampled_from((2, 5, 10)),
        epsilon=st.sampled_from((0.1, 0.5)),
    ),
    st.integers(1, 4),
)


def begins(contract, **policy):
    """Whether sites begin a run of a study that their owners have approved before this policy."""
    rule, runs = contract
    with worlds("study", policy=replace(ALLOW_ALL, free_tables=False, **policy)) as world:
        approval = approved(world, "study", "release", rule=rule, runs=runs)
        try:
            opened(world, "").ask(queries.begin(None, approval))
        except QueryRefusedError:
            return False
    return True


@pytest.mark.parametrize("name", FLOORS)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_study_beyond_a_floor_does_not_begin_whoever_approved_it(name, data):
    values, exceeds = FLOORS[name]
    value, contract = data.draw(st.sampled_from(values)), data.draw(CONTRACTS)
    assert begins(contract, **{name: value}) != exceeds(value, *contract)


@pytest.mark.parametrize("name", FLOORS)
def test_sites_that_ignore_a_floor_begin(name):
    """The control of the test above."""
    value = FLOORS[name][0][-1]
    contract = ReleaseRule("exact" if name in ("rules", "least_fewest") else "laplace"), 4
    assert not begins(contract, **{name: value})
    with patch.object(Policy, "beyond", lambda *_: ()):
        assert begins(contract, **{name: value})


# ---- what is planned of one query ----------------------------------------------------------------

PLANNED = ("tables", "choose", "release", "release, cut", "predict", "score table")
STORED = ("commit", "align at level 2")
BYTES = re.compile(r"takes? (?:up to )?([\d,]+) bytes")


def says(session, name, **policy):
    """Return which parties refuse a query under a policy, and the bytes that they name."""
    answers = look(session, QUERIES[name], Break(policy))
    found = {party: BYTES.search(words) for party, words in answers.items() if words}
    return {
        party: int(match[1].replace(",", "")) if match else -1 for party, match in found.items()
    }


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        *(("most_memory", name) for name in (*PLANNED, *STORED)),
        *(("most_stored", n) for n in STORED),
    ],
)
def test_a_query_is_answered_from_the_bytes_that_its_refusal_names(rule, name):
    with worlds(QUERIES[name].scene) as world:
        session = opened(world, QUERIES[name].scene)
        refused = says(session, name, **{rule: 1})
        (size,) = set(refused.values())
        assert size > 1 and says(session, name, **{rule: size - 1}) == refused
        assert not says(session, name, **{rule: size})
        check = {"most_memory": "check_planned", "most_stored": "check_stored"}[rule]
        with patch.object(Policy, check, lambda *_: None):  # the control
            assert not says(session, name, **{rule: 1})


@pytest.mark.parametrize("name", PLANNED)
def test_all_parties_estimate_the_same_minutes(name):
    """From one estimate on all answer, and below it all refuse."""
    with worlds("study") as world:
        session = opened(world, "study")
        everybody = set(look(session, QUERIES[name]))
        low, high = 1e-9, 60.0
        while high > 1.001 * low:
            middle = (low * high) ** 0.5
            refused = set(says(session, name, most_minutes=middle))
            assert refused in (set(), everybody)
            low, high = (middle, high) if refused else (low, middle)
        assert 1e-9 < low < 1
        with patch.object(Policy, "check_planned", lambda *_: None):  # the control
            assert not says(session, name, most_minutes=low)


def test_each_rule_of_the_policy_has_a_test_here():
    runs = {"most_failed_runs", "most_choice_bits"}
    planned = {"most_memory", "most_minutes", "most_stored"}
    tested = {name.partition(" ")[0] for name in RULES} | runs | planned | {*FLOORS}
    assert tested == {rule.name for rule in fields(Policy)} - {"most_sessions"}  # of no query
