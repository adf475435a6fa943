"""Alignment at level 2: what is learned over the people of all lists is what their join gives."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.protocols.hidden import Lists, random_lists
from tests.spreads import assert_learned_alike, families_of
from vertibayes.choosing import TableChooser
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family, Rows


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6))
def test_tables_over_unknown_people_are_those_of_the_join(seed):
    lists = random_lists(seed)
    families = families_of([*lists.variables])
    with lists.federate() as federation:
        counter = lists.counter(federation)
        for missing in (False, True):
            tables = counter.tables(families, missing=missing)
            assert all(map(np.array_equal, tables, lists.plain.tables(families, missing=missing)))
        half = counter.records // 2
        assume(half >= 10)  # a site refuses fewer, chosen or left out
        halves = Rows(1, 0, half), Rows(1, half)
        parts = [counter.tables(families[:3], rows=rows) for rows in halves]
        whole = lists.plain.tables(families[:3])
        assert all(map(np.array_equal, [a + b for a, b in zip(*parts, strict=True)], whole))


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["available", "em"]))
def test_structures_and_cpts_over_unknown_people_are_those_of_the_join(seed, missing):
    lists = random_lists(seed, people=150)
    with lists.federate() as federation:
        counter = lists.counter(federation)
        for algorithm in ("k2", "hybrid"):
            options = Options(algorithm=algorithm, missing=missing)
            learned, pooled = (learn(source, options) for source in (counter, lists.plain))
            assert_learned_alike(learned, pooled)


def test_choices_over_unknown_people_have_the_winners_of_the_join():
    lists = random_lists(3, sites=3, variables=4)
    names = [*lists.variables]
    sets = tuple(
        tuple((Score(Family(a, parents)),) for parents in [(), *((b,) for b in names if b != a)])
        for a in names
    )
    choices = Choices(sets, False, score="k2")
    with lists.federate() as federation:
        study = lists.open(federation, choices=True)
        winners, decided = study.choose(choices), np.array(study.joined.decided)
    pooled = TableChooser(lists.plain).choose(choices)
    assert decided.any() and np.array_equal(np.array(winners)[decided], np.array(pooled)[decided])


@pytest.mark.parametrize("kind", ["exact", "cut"])
def test_releases_over_unknown_people_are_those_of_the_join(kind):
    lists = random_lists(4, sites=3)
    families = tuple(families_of([*lists.variables]))
    rule = Rule(kind, fewest=5)
    with lists.federate() as federation:
        released = lists.open(federation, choices=True).release(FamilyTables(families, False, rule))
    least = rule.fewest if kind == "cut" else 0
    for table, pooled in zip(released, lists.plain.tables(families), strict=True):
        assert np.array_equal(table, np.where(pooled >= least, pooled, 0))


@pytest.mark.laws
def test_alarm_over_unknown_people_is_learned_as_from_the_join(alarm_data):
    names = [*alarm_data.variables]
    generator = np.random.default_rng(1)
    lists = Lists(
        dict(alarm_data.variables),
        dict(alarm_data.codes),
        {site: generator.permutation(alarm_data.records)[:1800] for site in "abc"},
        {site: names[place::3] for place, site in enumerate("abc")},
    )
    options = Options(algorithm="k2", max_parents=3)
    with lists.federate() as federation:
        learned = learn(lists.counter(federation), options)
    pooled = learn(lists.plain, options)
    assert_learned_alike(learned, pooled)
