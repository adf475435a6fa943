"""What the answers to queries for noisy tables tell, for which no budget is spent."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.publish import PUBLISH, Publish, RecordNoise, count_tables
from vertibayes_protocols.queries.scoring import Split
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

STATES = ("no", "yes")
NAMES = ("a", "b", "y")
SCHEMA = Schema(Variable("y", STATES), {n: Variable(n, STATES) for n in "ab"})
DRAWN = np.random.default_rng(1).integers(0, 2, (3, 40)).astype(np.uint8)
CODES = dict(zip(NAMES, DRAWN, strict=True))
HELD = {"p": ("a",), "q": ("b",)}
POLICY = Policy(most_epsilon=10.0, free_tables=True)


def sites(policy=POLICY):
    data = {
        site: SiteData({n: Variable(n, STATES) for n in (*held, "y")},
                       {n: CODES[n] for n in (*held, "y")})
        for site, held in HELD.items()
    }  # fmt: skip
    return federate(data, policy=policy)


def answer(site, counts, first=0, last=-1):
    """Return why a site refuses tables of classes with these counts; nothing if it agrees."""
    query = Publish.of(Split(SCHEMA, HELD, counts), RecordNoise(0.1))
    try:
        PUBLISH.side_of(SiteRole).consider(site, replace(query, first=first, last=last))
    except QueryRefusedError as refused:
        return refused.reason
    return ""


def is_guessed(site, first):
    """Whether two records side by side have a class each: what counting them would tell."""
    pair = site.batches[0].rows(np.arange(first, first + 2))
    try:
        count_tables(Split(SCHEMA, HELD, (1, 1)), site.party, pair)
    except ValueError:  # other counts of classes
        return False
    return True


def test_the_class_of_a_record_is_not_guessed_from_refusals():
    with sites() as world:
        site = world.roles["p"]
        differ = [a != b for a, b in pairwise(CODES["y"])]
        assert [is_guessed(site, i) for i in range(39)] == differ, "of all, and nothing is spent"
        answers = {answer(site, (1, 1), i, i + 2) for i in range(39)}
        assert answers == {"tables are published of all records, not of some"}
        assert answer(site, np.bincount(CODES["y"]).tolist()) == ""


@pytest.mark.parametrize("hidden", ["y", "a"])
def test_refusals_tell_nothing_of_a_column_that_is_not_shown(hidden):
    true = np.bincount(CODES["y"])
    false = true + np.array((-1, 1))
    with sites() as world:
        site = world.roles["p"]
        assert answer(site, true.tolist()) == ""
        assert "other counts of classes" in answer(site, false.tolist()), "of a shown column"
    with sites(replace(POLICY, variables=tuple({*"ay"} - {hidden}))) as world:
        site = world.roles["p"]
        reasons = {answer(site, counts.tolist()) for counts in (true, false)}
        assert reasons == {f"it does not show {hidden}"}
