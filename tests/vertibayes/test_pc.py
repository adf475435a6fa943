import numpy as np
import pytest

from tests.structure_worlds import binary, example, frame_of, random_data
from vertibayes.choosing import TableChooser, follow
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.structure.learners import learn_structure, search_of
from vertibayes.structure.pc import pattern, pc_result_steps
from vertibayes.structure.skeleton import Skeleton


def pc(data, *, alpha=0.05, **parameters):
    source = PlainCounter(data)
    search = search_of(source, "pc", **parameters)
    return follow(pc_result_steps(search, alpha=alpha), TableChooser(source).choose)


def pgmpy_skeleton(data, alpha, levels):
    """The skeleton of pgmpy's newer PC; that of `pgmpy.estimators` tests edges in an order."""
    from pgmpy.causal_discovery import PC

    learner = PC(
        variant="stable",
        ci_test="g_sq",
        significance_level=alpha,
        max_cond_vars=levels,
        show_progress=False,
    )
    return {frozenset(edge) for edge in learner.fit(frame_of(data)).skeleton_.edges()}


@pytest.mark.parametrize(("seed", "alpha"), [(0, 0.05), (1, 0.01), (2, 0.01), (3, 0.05), (4, 0.01)])
def test_the_skeleton_is_that_of_pgmpy(seed, alpha):
    """Over tables without empty cells: pgmpy has no degrees of freedom for empty ones.

    The variables have three states, because pgmpy corrects tests of two by two for continuity.
    """
    data = random_data(seed, 6, 4000, concentration=20.0)
    learned = pc(data, alpha=alpha, max_parents=3).skeleton
    assert {frozenset(pair) for pair in learned.pairs} == pgmpy_skeleton(data, alpha, 2)


def noisy_or(records=4000):
    generator = np.random.default_rng(0)
    flip = lambda column: np.where(generator.random(records) < 0.1, 1 - column, column)  # noqa: E731
    a, b = generator.integers(0, 2, (2, records))
    c = flip(a | b)
    codes = {"a": a, "b": b, "c": c, "d": flip(c)}
    return binary({name: column.astype(np.uint8) for name, column in codes.items()})


def test_a_collider_compels_what_follows_it():
    result = pc(noisy_or(), alpha=0.001)
    assert result.cpdag.compelled == (("a", "c"), ("b", "c"), ("c", "d"))
    assert set(result.structure.edges) == set(result.cpdag.compelled)
    assert not (result.reversed_arrows or result.dropped or result.surplus)


def skeleton_of(neighbours, separators):
    separating = {pair: frozenset(given) for pair, given in separators.items()}
    return Skeleton(neighbours, separators, separating)


def test_a_variable_of_any_separator_is_no_collider():
    """Of two sets that separate a pair, only the second has their common neighbour."""
    neighbours = {"a": ("c",), "b": ("c",), "c": ("a", "b"), "d": ()}
    skeleton = Skeleton(neighbours, {("a", "b"): ("d",)}, {("a", "b"): frozenset("cd")})
    assert pattern(skeleton, Constraints()).arrows == []


def test_constraints_compel_directions_and_what_follows():
    chain = skeleton_of({"a": ("b",), "b": ("a", "c"), "c": ("b",)}, {("a", "c"): ("b",)})
    assert pattern(chain, Constraints()).arrows == []
    assert pattern(chain, Constraints(required=(("a", "b"),))).arrows == [("a", "b"), ("b", "c")]
    assert pattern(chain, Constraints(tiers=(("c",), ("b",)))).arrows == [("b", "a"), ("c", "b")]


def test_colliders_that_contradict_each_other_are_decided_by_name():
    neighbours = {"a": ("b",), "b": ("a", "c"), "c": ("b", "d"), "d": ("c",)}
    separators = {("a", "c"): (), ("b", "d"): (), ("a", "d"): ()}
    graph = pattern(skeleton_of(neighbours, separators), Constraints())
    assert graph.arrows == [("a", "b"), ("b", "c"), ("d", "c")]


def cycle_of_arrows():
    from vertibayes.structure.partial_graph import PartialGraph

    graph = PartialGraph("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    for arrow in ("ab", "bc", "ca"):
        graph.orient(*arrow)
    return graph


def test_a_cycle_of_arrows_is_resolved_by_name_and_reported():
    extension = cycle_of_arrows().extension(Constraints())
    assert len(extension.reversed_arrows) == 1 and extension.dropped == ()
    assert len(extension.structure.edges) == 3


def test_an_arrow_is_dropped_if_constraints_allow_no_order():
    constraints = Constraints(required=(("a", "b"), ("b", "c")), forbidden=(("a", "c"),))
    extension = cycle_of_arrows().extension(constraints)
    assert extension.dropped == (("c", "a"),)
    assert extension.structure == Structure({"a": (), "b": ("a",), "c": ("b",)})


def test_parents_beyond_the_number_allowed_are_chosen_by_bic():
    result = pc(noisy_or(), max_parents=1)
    assert all(len(parents) <= 1 for parents in result.structure.parents.values())
    assert result.surplus
    required = Constraints(required=(("a", "c"),))
    assert pc(noisy_or(), max_parents=1, constraints=required).structure.parents["c"] == ("a",)


@pytest.mark.laws
def test_alarm_is_near_the_truth():
    network, data = example("alarm", 10_000)
    structure = learn_structure(PlainCounter(data), "pc")
    assert network.structure.hamming_distance(structure) <= 15
    assert cpdag_of(network.structure).hamming_distance(cpdag_of(structure)) <= 20
