"""Choices: winners equal those of the same integers in the clear, and sites refuse crafted sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpc.lookups import log_gamma
from protocols.choices import Choices, Score
from protocols.errors import QueryRefusedError
from protocols.federation import ANALYST, DEALER
from protocols.opening import OpenStudy
from protocols.policy import Policy
from protocols.queries import Describe
from protocols.queries.choice_lookups import choice_lookups
from protocols.queries.choice_precision import log_bound, score_bound
from protocols.queries.choose import Choose, portions, score_error
from protocols.site.data import SiteData
from protocols.variables import Family, Rows, Variable
from tests.protocols.small import (
    STATES,
    committed,
    count,
    data_of,
    packets,
    refusal,
    seeded,
    study_of,
)

DATA = data_of(a="xy", b="z", c="w")
STUDY = study_of(DATA)


def score(family, within="", sign=1):
    """Return the score of a child and its parents, each a letter."""
    return Score(Family(family[0], tuple(family[1:])), tuple(within), sign)


def gain(family):
    """Return K2's candidate: the gain of the last parent."""
    return (score(family), score(family[:-1], family[-1], sign=-1))


# ---- the oracle ----------------------------------------------------------------------------------


def integer_score(data, asked, function_of, missing, places=slice(None)):
    """Score a family in the clear, on the integers that the parties look up."""
    codes = {name: c[places] for site in data.values() for name, c in site.codes.items()}
    variables = {name: v for site in data.values() for name, v in site.variables.items()}
    members = (*asked.family.members, *asked.within)
    complete = np.ones(len(next(iter(codes.values()))), bool)
    for name in () if missing else members:
        complete &= codes[name] < len(variables[name].states)
    states = [
        variables[name].codes if missing else len(variables[name].states)
        for name in asked.family.members
    ]
    table = np.zeros(states, np.int64)
    np.add.at(table, tuple(codes[name][complete] for name in asked.family.members), 1)
    r, columns = states[0], table.sum(axis=0).ravel()
    of_columns = function_of(r)(columns) - function_of(r)(np.zeros(1, np.int64))
    return asked.sign * int(function_of(1)(table.ravel()).sum() - of_columns.sum())


def oracle(data, study, choices, places=slice(None)):
    """Return the winners: of each set, the first of the candidates with the highest value."""
    needed = choice_lookups(study, choices)
    records, bits = needed.tables.records, needed.precision.fraction_bits

    def value(candidate):
        return sum(
            integer_score(data, s, lambda r: log_gamma(r, records, bits), choices.missing, places)
            for s in candidate
        )

    values = [[value(candidate) for candidate in candidates] for candidates in choices.sets]
    spans = [max(of_set) - min(of_set) for of_set in values]
    assert max(spans) <= needed.tables.span << bits
    return tuple(of_set.index(max(of_set)) for of_set in values)


def chosen(federation, choices):
    """Ask for the winners; those that the sites learn are the same."""
    winners = federation.session.ask(Choose.of(federation.session.role.joined, choices))
    federation.session.ask(Describe(federation.sites))  # the sites have ended the query before
    assert {role.joined.won for role in federation.roles.values()} == {winners}
    return winners


# ---- winners -------------------------------------------------------------------------------------


@st.composite
def worlds(draw):
    """Draw sites with few columns, some equal, constant or with missing values."""
    sites, records = draw(st.integers(1, 5)), draw(st.integers(1, 200))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    drawn: dict[str, tuple[Variable, np.ndarray]] = {}
    for name in "uvwxyz":
        states, gaps = draw(st.integers(2, 4)), draw(st.booleans())
        codes = generator.integers(0, states + gaps, records)
        kind = draw(st.sampled_from(("random", "constant", "copy")))
        variable = Variable(name, tuple(map(str, range(states))), gaps)
        if kind == "constant":
            codes[:] = draw(st.integers(0, states - 1))
        elif kind == "copy" and drawn:
            other, codes = draw(st.sampled_from(list(drawn.values())))
            variable = replace(other, name=name)
        drawn[name] = variable, codes.astype(np.uint8)
    data = {}
    for place in range(sites):
        names = "uvwxyz"[place::sites]
        data[f"site {place}"] = SiteData(
            {name: drawn[name][0] for name in names}, {name: drawn[name][1] for name in names}
        )
    return data


@st.composite
def choices(draw):
    """Draw sets of candidates of up to three scores with signs."""

    def one():
        names = draw(st.permutations("uvwxyz"))
        members, within = draw(st.integers(1, 3)), draw(st.integers(0, 2))
        sign = draw(st.sampled_from((1, -1)))
        return score(names[:members], names[members : members + within], sign)

    def step():
        child, *others = draw(st.permutations("uvwxyz"))
        before = "".join([child, *others[: draw(st.integers(0, 1))]])
        return ((), *(gain(before + other) for other in others[1:]))

    def free():
        return tuple(
            tuple(one() for _ in range(draw(st.integers(0, 3))))
            for _ in range(draw(st.integers(2, 4)))
        )

    sets = tuple(draw(st.sampled_from((step, free)))() for _ in range(draw(st.integers(1, 3))))
    return Choices(sets, draw(st.booleans()))


@given(worlds(), choices())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_winners_are_those_of_the_same_integers_in_the_clear(data, asked):
    study = study_of(data, memory=1 << 24)
    federation, _ = committed(data, study, policy=Policy(fewest_records=1))
    query = Choose.of(federation.session.role.joined, asked)
    assert query.choices == asked
    assert chosen(federation, asked) == oracle(data, study, asked)
