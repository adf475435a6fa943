"""Any spread of columns and rows over sites: what is learned is what the pooled data give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.splits import split_rows
from tests.spreads import Spread, assert_learned_alike, families_of, random_spread
from tests.structure_worlds import known_network, with_gaps
from vertibayes.choosing import TableChooser
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes.sampling import sample
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.study_people import Placement
from vertibayes_protocols.variables import Family, Rows

FREE = Policy(free_tables=True, fewest_records=1, most_epsilon=1e5)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_tables_of_any_spread_are_those_of_the_pooled_data(seed):
    spread = random_spread(seed)
    families = families_of(list(spread.pooled.variables))
    with spread.federate(policy=FREE) as federation:
        counter = spread.counter(federation)
        assert counter.variables == spread.plain.variables
        for missing in (False, True):
            tables = counter.tables(families, missing=missing)
            pooled = spread.plain.tables(families, missing=missing)
            assert all(map(np.array_equal, tables, pooled))
        parts = [counter.tables(families[:3], rows=rows) for rows in (Rows(1, 0, 5), Rows(1, 5))]
        assert all(
            np.array_equal(a + b, whole)
            for a, b, whole in zip(*parts, spread.plain.tables(families[:3]), strict=True)
        )


def has_every_state(spread):
    """Whether each variable has records, so that its CPTs can be learned."""
    return all(
        (codes < len(spread.pooled.variables[name].states)).any()
        for name, codes in spread.pooled.codes.items()
    )


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["available", "em"]))
def test_structures_and_cpts_of_any_spread_are_those_of_the_pooled_data(seed, missing):
    spread = random_spread(seed, records=50)
    if not has_every_state(spread):
        return
    with spread.federate(policy=FREE) as federation:
        counter = spread.counter(federation)
        for algorithm in ("k2", "hybrid"):
            options = Options(algorithm=algorithm, missing=missing)
            learned, pooled = (learn(source, options) for source in (counter, spread.plain))
            assert_learned_alike(learned, pooled)


@pytest.mark.parametrize(("seed", "missing"), [(0, False), (1, True), (2, False)])
def test_choices_over_a_spread_have_the_winners_of_the_pooled_data(seed, missing):
    spread = random_spread(seed, records=60, variables=4)
    names = list(spread.pooled.variables)
    families = [
        [Family(child), *(Family(child, (parent,)) for parent in names if parent != child)]
        for child in names
    ]
    sets = tuple(tuple((Score(family),) for family in of_child) for of_child in families)
    for score in ("k2", "likelihood"):
        choices = Choices(sets, missing, score=score)
        with spread.federate(policy=FREE) as federation:
            study = spread.open(federation, choices=True)
            winners = study.choose(choices)
            pooled = TableChooser(spread.plain).choose(choices)
        decided = np.array(study.joined.decided)
        assert decided.any() and np.array_equal(
            np.array(winners)[decided], np.array(pooled)[decided]
        )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["exact", "cut", "laplace"])
def test_releases_over_a_spread_are_those_of_the_pooled_data(seed, kind):
    """Noise of twelve tables together at epsilon 8 stays within 40, and is not always 0."""
    spread = random_spread(10 + seed, records=60)
    families = tuple(families_of(list(spread.pooled.variables)))
    rule = Rule(kind, fewest=5, epsilon=8.0)
    with spread.federate(policy=FREE) as federation:
        study = spread.open(federation, choices=True)
        released = study.release(FamilyTables(families, False, rule))
    least = rule.fewest if rule.kind == "cut" else 0
    for table, pooled in zip(released, spread.plain.tables(families), strict=True):
        expected = np.where(pooled >= least, pooled, 0)
        assert np.abs(table - expected).max() <= (40 if rule.is_noisy else 0)


@pytest.mark.laws
def test_child_with_half_of_its_columns_split_by_rows_is_learned_as_pooled():
    """Two missing cells in a hundred beside; three sites, each of which lists everybody."""
    network = known_network("child")
    data = with_gaps(sample(network, 1000, seed=2), 0.02)
    parts = split_rows(data, 3, list(data.variables)[::2], seed=3)
    everyone = dict.fromkeys(parts, Placement(data.records, np.arange(data.records)))
    spread = Spread(parts, everyone, data)
    with spread.federate(policy=FREE) as federation:
        counter = spread.counter(federation)
        options = Options(algorithm="k2", missing="available", max_parents=2)
        learned, plain = (learn(source, options) for source in (counter, spread.plain))
    assert_learned_alike(learned, plain)
