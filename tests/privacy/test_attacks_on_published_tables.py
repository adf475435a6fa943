"""What the answers to queries for noisy tables tell, for which no budget is spent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.columns.publish import Publish, RecordNoise
from vertibayes_protocols.queries.columns.split import Split
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


def answer(site, counts):
    """Return why a site refuses tables of classes with these counts; nothing if it agrees."""
    query = Publish.of(Split.of(SCHEMA, HELD, counts), RecordNoise(0.1))
    try:
        consider(site, query)
    except QueryRefusedError as refused:
        return refused.reason
    return ""


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
