"""Hill climbing, tabu search and the default learner over tables."""

from collections import Counter as Tally
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.test_k2 import Counting, binary
from vertibayes.choosing import TableChooser
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.splitting import split_columns
from vertibayes.structure import hybrid_by_tables
from vertibayes.structure.bic import bic_gain
from vertibayes.structure.climbing_by_tables import climb
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.family_scores import FamilyScores
from vertibayes.structure.graphs import elements, mask_of
from vertibayes.structure.learners import learn_structure, search_of
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable

ALGORITHMS = ("hybrid", "hill_climbing", "tabu")


def taken(data, variables, records=None):
    """The first variables of some data, and their first records."""
    part = data.take(list(data.variables)[:variables])
    codes = {name: column[:records] for name, column in part.codes.items()}
    return SiteData(part.variables, codes)


def bic(counter, structure, **parameters):
    """The BIC of a structure less that of the structure without edges."""
    search = search_of(counter, "hybrid", **parameters)
    scores = FamilyScores(replace(search, max_parents=20), counter)
    place = {name: i for i, name in enumerate(search.names)}
    dag = [mask_of(place[p] for p in structure.parents[child]) for child in search.names]
    scores.ask(parents | 1 << child for child, parents in enumerate(dag))
    return scores.total(dag)


# ---- the same from every counter -----------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_federation_learns_what_pooled_data_have(algorithm, alarm_data):
    data = taken(alarm_data, 9, 600)
    pooled = learn_structure(PlainCounter(data), algorithm)
    assert len(pooled.edges) >= 5
    for sites in (2, 3, 5):
        with federate(split_columns(data, sites)) as federation:
            counter = SecureCounter.of(federation)
            assert learn_structure(counter, algorithm).parents == pooled.parents
            assert counter.calls <= 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_missing_values_give_the_same_from_a_federation(algorithm, gaps):
    data = taken(gaps, 6, 400)
    for missing in (False, True):
        pooled = learn_structure(PlainCounter(data), algorithm, missing=missing)
        with federate(split_columns(data, 3)) as federation:
            secure = SecureCounter.of(federation)
            assert learn_structure(secure, algorithm, missing=missing).parents == pooled.parents


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_order_of_columns_makes_no_difference(algorithm, alarm_data):
    data = taken(alarm_data, 12, 800)
    names = list(data.variables)
    structures = [
        learn_structure(PlainCounter(data.take(order)), algorithm)
        for order in (names, names[::-1], sorted(names))
    ]
    assert all(one.parents == structures[0].parents for one in structures)


# ---- hill climbing -------------------------------------------------------------------------------


def acyclic(parents):
    """Whether parents by name have no cycle, by removing nodes without parents."""
    left = {child: set(own) for child, own in parents.items()}
    while ready := [child for child, own in left.items() if not own & set(left)]:
        for child in ready:
            del left[child]
    return not left


def greedy(counter, max_parents):
    """Greedy search as it is defined: all graphs that are one change away, one by one."""
    search = search_of(counter, "hill_climbing", max_parents=max_parents)
    chooser = TableChooser(counter)

    @cache
    def score(child, parents):
        family = Family(child, tuple(sorted(parents)))
        one = bic_gain(search, [family], [Family(child)])
        return chooser.scores_of(Choices(((one, ()),), score="likelihood"))[0][0]

    def total(parents):
        return sum(score(child, own) for child, own in parents.items())

    def changes(now):
        for child, parent in permutations(search.names, 2):
            for kind, changed in enumerate(moves(now, child, parent)):
                if acyclic(changed) and max(map(len, changed.values())) <= max_parents:
                    yield (-round(total(changed) - total(now), 5), child, kind, parent), changed

    def moves(now, child, parent):
        has = parent in now[child]
        without = {**now, child: now[child] - {parent}}
        if has:
            return now, without, {**without, parent: now[parent] | {child}}
        return ({**now, child: now[child] | {parent}},)

    now = {name: frozenset() for name in search.names}
    while True:
        key, after = min(changes(now), key=lambda change: change[0])
        if key[0] >= 0:
            return Structure({child: tuple(sorted(own)) for child, own in now.items()})
        now = after


@pytest.mark.parametrize("seed", range(4))
def test_hill_climbing_is_greedy_search_over_all_changes(seed, alarm_data):
    generator = np.random.default_rng(seed)
    names = generator.permutation(list(alarm_data.variables))[:7].tolist()
    counter = PlainCounter(taken(alarm_data.take(names), 7, 500))
    learned = learn_structure(counter, "hill_climbing", max_parents=3)
    assert learned.parents == greedy(counter, 3).parents


@pytest.mark.parametrize("patience", [0, 20])
def test_prefetch_saves_calls_and_changes_nothing(patience, alarm_data):
    results = []
    for ahead in (0, 1, 3):
        counter = Counting(PlainCounter(taken(alarm_data, 16, 1000)))
        scores = FamilyScores(search_of(counter, "hill_climbing"), counter)
        start = climb(scores, scores.required, ahead=ahead, patience=patience)
        results.append((start, len(counter.asked)))
    dags, calls = zip(*results, strict=True)
    assert dags[0] == dags[1] == dags[2]
    assert calls[0] > 2 * calls[1] >= 2 * calls[2]


def test_tabu_search_is_not_worse_than_hill_climbing_and_the_default_is_best(alarm_data):
    better = Tally()
    for records in (300, 500, 1000):
        counter = PlainCounter(taken(alarm_data, 20, records))
        one, tabu, best = (
            bic(counter, learn_structure(counter, algorithm))
            for algorithm in ("hill_climbing", "tabu", "hybrid")
        )
        assert tabu >= one
        better.update(tabu=tabu > one, best=best > one)
    assert better["tabu"] and better["best"]


# ---- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
def test_scores_are_those_of_choices(missing, gaps):
    search = search_of(PlainCounter(gaps), "hybrid", missing=missing)
    scores, chooser = FamilyScores(search, PlainCounter(gaps)), TableChooser(PlainCounter(gaps))
    for place, own in ((0, 0b110), (4, 0b1 | 1 << 8), (9, 1)):
        scores.ask([own | 1 << place])
        parents = tuple(search.names[p] for p in elements(own))
        child = search.names[place]
        gain = bic_gain(search, [Family(child, parents)], [Family(child)])
        expected = chooser.scores_of(Choices(((gain, ()),), missing=missing, score="likelihood"))[
            0
        ][0]
        assert scores.score(place, own) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("missing", [False, True])
def test_parents_that_are_no_candidates_do_not_raise_a_score(missing, gaps):
    """The bound: whatever is left out, its families are scored here."""
    counter = PlainCounter(taken(gaps, 10, 150))
    scores = FamilyScores(search_of(counter, "hybrid", missing=missing), counter)
    left_out = 0
    for child in range(10):
        for first in elements(scores.allowed[child]):
            scores.ask([1 << child | 1 << first])
            rest = scores.allowed[child] & ~(1 << first)
            out = rest & ~mask_of(scores.candidates(child, 1 << first))
            scores.ask([1 << child | 1 << first | 1 << x for x in elements(out)])
            left_out += out.bit_count()
            for x in elements(out):
                gain = scores.score(child, 1 << first | 1 << x) - scores.score(child, 1 << first)
                assert gain <= 1e-9
    assert left_out > 20


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_missing_cells_do_not_bring_edges(algorithm, alarm_data):
    """Independent columns stay so, whichever records drop out; dependent ones are connected."""
    generator = np.random.default_rng(5)
    codes = {f"v{i}": generator.integers(0, 2, 2000).astype(np.uint8) for i in range(6)}
    codes["v5"] = codes["v4"].copy()
    for column in codes.values():
        column[generator.random(2000) < 0.2] = 2
    variables = {name: Variable(name, ("0", "1"), missing=True) for name in codes}
    structure = learn_structure(PlainCounter(SiteData(variables, codes)), algorithm)
    assert [set(edge) for edge in structure.edges] == [{"v4", "v5"}]


# ---- constraints ---------------------------------------------------------------------------------


@st.composite
def constraints_of(draw, names):
    """Constraints that a structure over the names keeps: edges go along a hidden order."""
    order = draw(st.permutations(names))
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    required = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True))
    allowed = [(a, b) for a, b in permutations(names, 2) if (a, b) not in required]
    forbidden = draw(st.lists(st.sampled_from(allowed), max_size=12, unique=True))
    cut = draw(st.integers(0, len(names)))
    tiers = (tuple(order[:cut]), tuple(order[cut:])) if draw(st.booleans()) else ()
    parents, children = {a for a, _ in required}, {b for _, b in required}
    roots = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    leaves = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    return Constraints(
        tuple(required),
        tuple(forbidden),
        tiers,
        tuple(name for name in roots if name not in children),
        tuple(name for name in leaves if name not in parents),
    )


@settings(max_examples=15)
@given(st.data())
def test_no_constraint_is_violated(alarm_data, data):
    part = taken(alarm_data, 7, 300)
    constraints = data.draw(constraints_of(list(part.variables)))
    counter = PlainCounter(part)
    for algorithm in ALGORITHMS:
        structure = learn_structure(counter, algorithm, constraints=constraints)
        assert not constraints.violations(structure)


def test_the_constraints_of_that_test_would_be_violated_without_them(alarm_data):
    counter = PlainCounter(taken(alarm_data, 8, 400))
    for algorithm in ALGORITHMS:
        edges = learn_structure(counter, algorithm).edges
        assert Constraints(forbidden=edges[:1]).violations(learn_structure(counter, algorithm))
        turned = learn_structure(
            counter, algorithm, constraints=Constraints(required=(edges[0][::-1],))
        )
        assert edges[0][::-1] in turned.edges


def test_tiers_that_forbid_everything_leave_no_edge(alarm_data):
    data = taken(alarm_data, 5)
    for algorithm in ALGORITHMS:
        constraints = Constraints(leaves=tuple(data.variables))
        structure = learn_structure(PlainCounter(data), algorithm, constraints=constraints)
        assert structure.edges == ()


# ---- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_when_time_is_up_the_best_so_far_is_returned(algorithm, alarm_data):
    required = (("HR", "CVP"),)
    constraints = Constraints(required=required)
    data = alarm_data.take(["HR", "CVP", *list(alarm_data.variables)[5:14]])
    reached = []
    for calls in range(9):
        counter = Counting(PlainCounter(data))
        structure = learn_structure(
            counter,
            algorithm,
            constraints=constraints,
            time_is_up=lambda asked=counter.asked, most=calls: len(asked) >= most,
        )
        assert len(counter.asked) <= calls and not constraints.violations(structure)
        reached.append(bic(PlainCounter(data), structure, constraints=constraints))
    if algorithm != "hybrid":  # which may end an order search before its climb
        assert reached == sorted(reached)
    whole = learn_structure(PlainCounter(data), algorithm, constraints=constraints)
    assert reached[0] < reached[-1] <= bic(PlainCounter(data), whole) + 1e-6


def test_progress_has_stages_and_steps(alarm_data):
    seen = []
    learn_structure(
        PlainCounter(taken(alarm_data, 8)), "hybrid", progress=lambda *step: seen.append(step)
    )
    assert {stage for stage, _, _ in seen} == {"tests", "order search", "hill climbing"}
    assert all(done >= 0 and (done < steps or not steps) for _, done, steps in seen)


# ---- firm ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("records", [0, 1, 40])
@pytest.mark.parametrize("names", ["a", "ab", "abc"])
def test_few_variables_and_records(algorithm, records, names):
    copy = [0, 1] * (records // 2) + [0] * (records % 2)
    counter = binary(**dict.fromkeys(names, copy))
    edges = {"a": (), "ab": (("b", "a"),), "abc": (("b", "a"), ("c", "b"))}[names]
    structure = learn_structure(counter, algorithm)
    assert len(structure.edges) == (len(edges) if records > 1 else 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_constant_column_has_no_edge(algorithm):
    variables = {"a": Variable("a", ("x",)), **{n: Variable(n, ("x", "y")) for n in "bc"}}
    codes = {name: np.array([0, 1] * 50, np.uint8) for name in "bc"}
    counter = PlainCounter(SiteData(variables, {"a": np.zeros(100, np.uint8), **codes}))
    assert [set(edge) for edge in learn_structure(counter, algorithm).edges] == [{"b", "c"}]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("max_parents", [0, 1, 2])
def test_the_number_of_parents_is_kept(algorithm, max_parents, alarm_data):
    counter = Counting(PlainCounter(taken(alarm_data, 12, 800)))
    structure = learn_structure(counter, algorithm, max_parents=max_parents)
    assert max(map(len, structure.parents.values())) == max_parents
    asked = {len(family.members) for call in counter.asked for family in call}
    assert max(asked) <= max_parents + 1


@pytest.mark.laws
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_many_variables(algorithm):
    """`benchmarks/structures.py --growth` has 300: minutes."""
    generator = np.random.default_rng(0)
    codes = {"v0": generator.integers(0, 2, 200)}
    for i in range(1, 80):
        flips = generator.random(200) < 0.15
        codes[f"v{i}"] = codes[f"v{i - 1}"] ^ flips if i % 3 else generator.integers(0, 2, 200)
    structure = learn_structure(binary(**codes), algorithm)
    near = {frozenset(edge) for edge in structure.edges}
    chain = {frozenset((f"v{i}", f"v{i - 1}")) for i in range(1, 80) if i % 3}
    assert len(near & chain) > 0.9 * len(chain)


def test_many_dense_columns_take_their_parents_among_fewer_neighbours(monkeypatch):
    """Of the tables of four variables and more, which cost most, a tenth are not asked for."""
    generator = np.random.default_rng(0)
    causes = generator.random((2_000, 4))
    weights = generator.random((4, 40)) ** 3
    codes = causes @ weights + generator.normal(0, 0.2, (2_000, 40)) > np.median(
        causes @ weights, 0
    )
    data = binary(**{f"v{i:02}": column for i, column in enumerate(codes.T)})

    def wide_tables():
        counter = Counting(data)
        learn_structure(counter, "hybrid")
        return sum(len(family.members) > 3 for call in counter.asked for family in call)

    few = wide_tables()
    monkeypatch.setattr(hybrid_by_tables, "NEIGHBOURS", [10])
    assert few < 0.9 * wide_tables()
