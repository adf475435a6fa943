"""How sure an arc is: from samples of the learned network, and from nothing else."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.released_worlds import PooledStudy
from vertibayes import arc_strengths, averaged_structure
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.drawing.svg import draw
from vertibayes.edges import ArcStrength
from vertibayes.learning import learn, strengths_of
from vertibayes.network import Network
from vertibayes.options import Options
from vertibayes.released import learn_released
from vertibayes.report.edges import edges_json, report_of_edges
from vertibayes.report.strengths import draw_learned, report_of_strengths
from vertibayes.sampling import sample
from vertibayes.settings import rule_of
from vertibayes.structure import strengths as module
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.learners import learn_structure
from vertibayes.structure.strengths import l1_threshold, strengths_from
from vertibayes_protocols.variables import Variable

NODES = tuple("abcde")


def by_hybrid(counter):
    return learn_structure(counter, "hybrid")


def quiet(stage, done, steps):
    pass


@pytest.fixture(scope="module")
def truth():
    """a -> c <- b is a collider, c -> d follows from it, and e stands alone."""
    structure = Structure.of(NODES, [("a", "c"), ("b", "c"), ("c", "d")])
    variables = {name: Variable(name, ("no", "yes")) for name in NODES}
    yes = {
        "a": np.array(0.5),
        "b": np.array(0.4),
        "c": np.array([[0.1, 0.5], [0.6, 0.95]]),
        "d": np.array([0.2, 0.85]),
        "e": np.array(0.5),
    }
    return Network(structure, variables, {name: np.stack([1 - p, p]) for name, p in yes.items()})


@pytest.fixture(scope="module")
def data(truth):
    return sample(truth, 800, seed=5)


def strengths(network, records=800, **options):
    options = {"samples": 6, **options}
    return arc_strengths(network, by_hybrid, records, **options)


def test_equal_seeds_give_equal_strengths_and_other_seeds_other_samples(truth):
    seen = []

    def learn_and_see(counter):
        seen.append(counter.tables([*truth.structure.families])[2].tobytes())
        return by_hybrid(counter)

    def run(seed):
        return arc_strengths(truth, learn_and_see, 50, samples=4, seed=seed)

    assert run(0) == run(0)
    run(100)
    assert seen[:4] == seen[4:8] and len(set(seen)) == 8


def test_a_strong_arc_is_in_all_samples_and_a_collider_has_its_direction(truth):
    arcs = strengths(truth).by_edge
    for edge in (("a", "c"), ("b", "c"), ("c", "d")):
        assert arcs[edge].strength == 1.0 and arcs[edge].direction == 1.0


def test_a_reversible_arc_has_half_its_samples_in_each_direction():
    variables = {name: Variable(name, ("no", "yes")) for name in "ab"}
    cpts = {"a": np.array([0.5, 0.5]), "b": np.array([[0.9, 0.2], [0.1, 0.8]])}
    network = Network(Structure.of("ab", [("a", "b")]), variables, cpts)
    [arc] = strengths(network, 300).edges
    assert arc == ArcStrength("a", "b", 1.0, 0.5, None)


def test_a_constraint_that_decides_the_direction_counts(truth):
    variables = {name: truth.variables[name] for name in "ab"}
    cpts = {"a": np.array([0.5, 0.5]), "b": np.array([[0.9, 0.2], [0.1, 0.8]])}
    network = Network(Structure.of("ab", [("a", "b")]), variables, cpts)
    tiers = Constraints(tiers=(("a",), ("b",)))
    [arc] = strengths(network, 300, constraints=tiers).edges
    assert (arc.strength, arc.direction) == (1.0, 1.0)


def test_independent_columns_get_no_arc(truth):
    cpts = {name: np.array([0.5, 0.5]) for name in NODES}
    network = Network(Structure.of(NODES, []), truth.variables, cpts)
    result = strengths(network)
    assert all(arc.strength <= 0.5 for arc in result.edges) and result.averaged.edges == ()


def test_an_arc_that_no_sample_has_keeps_its_place_with_strength_zero():
    empty, one = Structure.of("ab", []), Structure.of("ab", [("b", "a")])
    assert strengths_from(one, [empty, empty]) == (ArcStrength("b", "a", 0.0, 0.5, None),)
    assert strengths_from(one, []) == ()
    assert strengths_from(empty, [one, empty]) == (ArcStrength("a", "b", 0.5, 0.5, None),)


def test_few_nodes_and_records_work(truth):
    alone = Network(Structure({"e": ()}), {"e": truth.variables["e"]}, {"e": np.array([0.5, 0.5])})
    assert strengths(alone).edges == ()
    assert strengths(truth, records=1).samples == 6
    assert strengths(truth, records=0).samples == 0
    with pytest.raises(ValueError, match="samples must be at least 0, got -1"):
        strengths(truth, samples=-1)


def test_the_time_ends_the_samples_after_any_but_there_is_one(truth):
    answers = iter([False, False, True])
    result = strengths(truth, time_is_up=lambda: next(answers))
    assert (result.samples, result.planned) == (3, 6)
    assert result.edges == strengths(truth, samples=3).edges
    one = strengths(truth, time_is_up=lambda: True)
    assert one.samples == 1 and one.edges == strengths(truth, samples=1).edges


# ---- the averaged structure ----------------------------------------------------------------------


@given(st.lists(st.integers(1, 20), max_size=12))
def test_the_threshold_is_nearest_to_the_distribution_of_the_strengths(counts):
    strengths = sorted(count / 20 for count in counts)
    middles = (np.arange(2000) + 0.5) / 2000
    below = np.searchsorted(strengths, middles, side="right") / max(len(strengths), 1)
    distance = {share: np.abs(below - share).mean() for share in {*below, 0.0}}
    kept = sum(strength > l1_threshold(strengths) for strength in strengths)
    share = 1 - kept / len(strengths) if strengths else 0.0
    assert (
        distance[min(distance, key=lambda other: abs(other - share))]
        <= min(distance.values()) + 1e-9
    )


@st.composite
def arcs_and_constraints(draw_):
    """Any strengths, and constraints that do not contradict each other."""
    order = draw_(st.permutations(NODES))
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    kinds = draw_(st.lists(st.sampled_from(["", "", "required", "forbidden"]),
                           min_size=len(pairs), max_size=len(pairs)))  # fmt: skip
    chosen = {
        kind: tuple(p for p, k in zip(pairs, kinds, strict=True) if k == kind) for kind in kinds
    }
    cut = draw_(st.integers(0, len(order)))
    tiers = (tuple(order[:cut]), tuple(order[cut:])) if draw_(st.booleans()) else ()
    constraints = Constraints(chosen.get("required", ()), chosen.get("forbidden", ()), tiers)
    share = st.integers(0, 10).map(lambda tenths: tenths / 10)
    arcs = [
        ArcStrength(*(pair if draw_(st.booleans()) else pair[::-1]), draw_(share), draw_(share), 1)
        for pair in pairs
    ]
    return arcs, constraints


@settings(max_examples=150)
@given(arcs_and_constraints(), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_averaged_structure_has_no_cycle_and_keeps_the_constraints(case, threshold):
    arcs, constraints = case
    averaged = averaged_structure(arcs, NODES, threshold=threshold, constraints=constraints)
    assert constraints.violations(averaged) == []  # a cycle would have raised an error
    strong = {frozenset(arc[:2]) for arc in arcs if arc.strength > threshold}
    required = {frozenset(edge) for edge in constraints.required}
    assert {frozenset(edge) for edge in averaged.edges} <= strong | required


def test_an_arc_is_reversed_rather_than_left_out():
    arcs = [ArcStrength("a", "b", 1.0, 1.0, 1.0), ArcStrength("b", "c", 0.9, 1.0, 1.0),
            ArcStrength("c", "a", 0.8, 1.0, 1.0)]  # fmt: skip
    assert set(averaged_structure(arcs, "abc").edges) == {("a", "b"), ("b", "c"), ("a", "c")}
    only = Constraints(forbidden=(("a", "c"),))
    assert ("c", "a") not in averaged_structure(arcs, "abc", constraints=only).edges


# ---- in a run ------------------------------------------------------------------------------------


class Refusing(PlainCounter):
    """A counter that can be told to answer no more."""

    refuses = False

    def tables(self, *arguments, **options):
        if self.refuses:
            raise AssertionError("a table was asked for")
        return super().tables(*arguments, **options)


OPTIONS = Options(algorithm="hybrid", bootstrap=3)


def test_nothing_is_asked_of_the_counter(data):
    counter = Refusing(data)
    learned = learn(counter, OPTIONS)
    counter.refuses = True
    result = strengths_of(learned, counter, OPTIONS, quiet)
    assert result.samples == 3 and result.by_edge["a", "c"].gain == learned.gains["a", "c"]
    with pytest.raises(AssertionError, match="a table was asked for"):  # negative control
        learn(counter, OPTIONS)


def test_a_release_gives_strengths_by_choices_among_the_candidates_of_the_study(data):
    study, rule = (
        PooledStudy(PlainCounter(data)),
        rule_of({"rule": "cut", "fewest": 10, "epsilon": 1.0, "delta": 1e-6, "dishonest": 1.0}),
    )
    options = Options(algorithm="k2", bootstrap=3)
    ours = learn_released(study, study.release, options, rule)
    asked = len(study.steps)
    everything = strengths_of(ours.learned, ours.counter, options, quiet, lambda _family: True)
    assert everything.by_edge["a", "c"].strength == 1.0 and len(study.steps) == asked
    none = strengths_of(ours.learned, ours.counter, options, quiet, lambda _family: False)
    assert all(arc.strength == 0 for arc in none.edges) and none.averaged.edges == ()


def test_no_strengths_without_a_search_samples_or_records(data):
    counter = PlainCounter(data)
    learned = learn(counter, OPTIONS)
    assert strengths_of(learned, counter, Options(bootstrap=0), quiet) is None
    given_ = Options(structure=learned.network.structure)
    assert strengths_of(learn(counter, given_), counter, given_, quiet) is None


def test_samples_have_as_many_records_as_the_search_and_follow_its_order(data, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        module, "sample", lambda network, n, seed: sizes.append(n) or sample(network, n, seed)
    )
    counter = PlainCounter(data)
    options = Options(algorithm="k2", bootstrap=2, structure_records=500)
    learned = learn(counter, options)
    result = strengths_of(learned, counter, options, quiet)
    assert sizes == [500, 500] == [result.records] * 2
    place = {name: i for i, name in enumerate(data.variables)}
    assert all(place[p] < place[c] for p, c in result.averaged.edges)


class Clock:
    """A clock that a sample moves on by a number of seconds."""

    def __init__(self, monkeypatch, seconds):
        self.now = 0.0
        draw_ = module.sample

        def drawn(*arguments):
            self.now += seconds
            return draw_(*arguments)

        monkeypatch.setattr(module, "sample", drawn)
        monkeypatch.setattr("vertibayes.learning.perf_counter", lambda: self.now)


@pytest.mark.parametrize(
    ("seconds", "given_", "took", "samples"),
    [
        (3.0, {}, 10.0, 3),  # a fourth would take the samples to twelve seconds
        (3.0, {}, 1e9, 10),
        (8.0, {}, 1e9, 7),  # a minute
        (50.0, {}, 10.0, 1),
        (0.4, {}, 0.1, 5),  # two seconds
        (50.0, {"bootstrap": 12}, 10.0, 12),
        (3.0, {"bootstrap": 12, "max_seconds": 7.0}, 1e9, 2),
    ],
)
def test_samples_take_no_longer_than_learning_unless_their_number_is_given(
    data, monkeypatch, seconds, given_, took, samples
):
    counter, options = PlainCounter(data), Options(algorithm="hybrid", **given_)
    learned = replace(learn(counter, options), structure_seconds=took, parameters_seconds=0.0)
    Clock(monkeypatch, seconds)
    result = strengths_of(learned, counter, options, quiet)
    assert (result.samples, result.planned) == (samples, given_.get("bootstrap", 10))


def test_max_seconds_limits_the_samples(data):
    options = Options(algorithm="hybrid", bootstrap=10_000, max_seconds=0.2)
    counter = PlainCounter(data)
    result = strengths_of(learn(counter, options), counter, options, quiet)
    assert 0 <= result.samples < 10_000 == result.planned


def test_samples_are_learned_by_an_algorithm_that_time_does_not_end(data):
    counter, options = PlainCounter(data), Options(algorithm="chow_liu")
    assert strengths_of(learn(counter, options), counter, options, quiet).samples > 0


# ---- files and drawings --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned(data):
    counter = PlainCounter(data)
    learned = learn(counter, OPTIONS)
    return replace(learned, strengths=strengths_of(learned, counter, OPTIONS, quiet))


def test_structure_json_has_strength_and_direction_of_each_edge(learned):
    content = json.loads(json.dumps(edges_json(learned), allow_nan=False))
    edges = learned.network.structure.edges
    assert content["strength"] == [learned.strengths.by_edge[e].strength for e in edges]
    assert len(content["direction"]) == len(edges)
    assert {tuple(e) for e in content["averaged"]["edges"]} == set(learned.strengths.averaged.edges)
    assert 0 <= content["averaged"]["threshold"] <= 0.5
    assert all(0 < other["strength"] <= 1 for other in content["other_edges"])


def test_the_report_says_how_many_edges_are_sure_and_what_the_samples_do_not_have(learned):
    summary = {"variables": {"a": {"missing": False}}}
    [line] = report_of_strengths(learned, summary)
    assert "edges in at least 80% of 3 samples from the learned network" in line
    assert "do not have" not in line and "time" not in line
    few = replace(learned, strengths=replace(learned.strengths, planned=100))
    [line] = report_of_strengths(few, summary)
    assert "in at least 80% of 3 of 100 samples from the learned network" in line
    assert line.endswith("; the time ended the samples: --bootstrap N draws N")
    missing = {"variables": {"a": {"missing": True}}, "release": {"rule": {"kind": "cut"}}}
    [line] = report_of_strengths(learned, missing)
    assert line.endswith("the samples do not have missing cells or the errors of the rule")


def test_the_lines_about_edges_count_none_one_and_several(learned):
    summary = {"variables": {}}
    alone = Structure.of(NODES, [])
    alone = replace(learned, network=SimpleNamespace(structure=alone, fixed=frozenset()))
    [line] = report_of_strengths(alone, summary)
    assert line.startswith("arc strengths: no edge was learned; 3 samples from the learned network")
    said = "other structures that fit as well have"
    ab, bc, de = ("a", "b"), ("b", "c"), ("d", "e")
    for edges, fixed, compelled, start in (
        ([ab], set(), set(), f"1 reversible: {said} it the other way round, so its direction"),
        ([ab, bc], set(), set(), f"all 2 reversible: {said} them the other way round"),
        ([ab], set(), {ab}, "1 compelled: each structure that fits as well has it"),
        ([ab, de], set(), {ab}, f"1 compelled; 1 reversible: {said} it the"),
        ([ab, de], {ab, de}, {ab, de}, "all 2 fixed by what experts know"),
        ([ab, bc], {ab}, {ab, bc}, "1 fixed by what experts know; 1 follow from these and the"),
        ([ab, de], {ab}, {ab}, "1 compelled, 1 of them fixed by what experts know; 1 reversible"),
    ):
        network = SimpleNamespace(structure=Structure.of(NODES, edges), fixed=frozenset(fixed))
        gains = dict.fromkeys(edges, 90.0)
        one = replace(learned, network=network, compelled=frozenset(compelled), gains=gains)
        assert report_of_edges(one)[0].startswith(f"arrows: {start}")


def groups_of(svg):
    root = ET.fromstring(svg)
    groups = [g for g in root.iter() if g.get("class") == "edge"]
    return {g[0].text.split(";")[0]: g for g in groups}, root


def test_the_drawing_shows_strength_doubt_and_reversible_edges():
    structure = Structure.of("abcd", [("a", "b"), ("b", "c"), ("c", "d")])
    known = [ArcStrength("a", "b", 1.0, 1.0, 80.0), ArcStrength("b", "c", 0.6, 0.75, 20.0),
             ArcStrength("c", "d", 0.9, 0.5, 2.0)]  # fmt: skip
    by_edge = {arc[:2]: arc for arc in known}
    text = draw(structure, strengths=by_edge, reversible={("c", "d")})
    assert text == draw(structure, strengths=dict(by_edge), reversible={("c", "d")})
    groups, root = groups_of(text)
    sure, doubtful, reversible = groups["a → b"], groups["b → c"], groups["c — d"]
    widths = [float(g[1].get("stroke-width")) for g in (sure, reversible, doubtful)]
    assert widths == sorted(widths, reverse=True)
    assert [g[1].get("stroke-dasharray") is None for g in (sure, doubtful)] == [True, False]
    assert len(sure) == len(doubtful) == 3 and len(reversible) == 2, "a title, a line, a head"
    assert "strength 60.0%, direction 75.0%, gain 20.0 nats" in doubtful[0].text
    legend = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert any("doubtful" in row for row in legend) and any("reversible" in row for row in legend)


def test_a_drawing_without_strengths_has_no_legend_of_arcs(learned):
    structure = learned.network.structure
    _, root = groups_of(draw(structure))
    assert [e.text for e in root.iter() if e.tag.endswith("text")] == list(structure.nodes)
    groups, _ = groups_of(draw_learned(learned, dict.fromkeys(structure.nodes, "here")))
    assert any("strength" in group[0].text for group in groups.values())
    assert not any(math.isnan(float(root.get(side))) for side in ("width", "height"))
