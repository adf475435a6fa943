from functools import partial
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from tests.structure_worlds import binary, random_constraints, random_data, with_gaps
from vertibayes.choosing import TableChooser
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.learners import learn_structure


def information(data, x, y, given=()):
    """Mutual information times records, by its definition, over the complete records."""
    names = (x, y, *given)
    complete = np.all([data.codes[n] < len(data.variables[n].states) for n in names], axis=0)
    table = np.zeros([len(data.variables[n].states) for n in names])
    np.add.at(table, tuple(data.codes[n][complete] for n in names), 1)
    table = table.reshape(*table.shape[:2], -1)
    product = table.sum(0, keepdims=True) * table.sum(1, keepdims=True)
    expected = product / np.maximum(table.sum((0, 1)), 1)
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / expected[seen])).sum())


def spanning_tree(data, features, given=()):
    graph = nx.Graph()
    for x, y in combinations(sorted(features), 2):
        graph.add_edge(x, y, weight=information(data, x, y, given))
    return {frozenset(edge) for edge in nx.maximum_spanning_edges(graph, data=False)}


def undirected(structure):
    return {frozenset(edge) for edge in structure.edges}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_a_maximum_spanning_tree(seed, gaps):
    data = random_data(seed, 9, 500)
    data = with_gaps(data) if gaps else data
    structure = learn_structure(PlainCounter(data), "chow_liu")
    assert undirected(structure) == spanning_tree(data, data.variables)
    assert structure.parents["n0"] == () and len(structure.edges) == 8


@pytest.mark.parametrize("seed", range(3))
def test_tan_is_a_spanning_tree_of_information_given_the_class(seed):
    data = random_data(seed, 8, 1000)
    structure = learn_structure(PlainCounter(data), "tan", class_variable="n3")
    features = [name for name in structure.nodes if name != "n3"]
    assert all(structure.parents[name][0] == "n3" for name in features)
    tree = {edge for edge in undirected(structure) if "n3" not in edge}
    assert tree == spanning_tree(data, features, ("n3",))


def test_the_tree_of_alarm_needs_few_calls_by_choices(alarm_data):
    asked = []
    chooser = TableChooser(PlainCounter(alarm_data))
    choose = chooser.choose
    chooser.choose = lambda choices: (asked.append(choices), choose(choices))[1]
    structure = learn_structure(chooser, "chow_liu")
    assert undirected(structure) == spanning_tree(alarm_data, alarm_data.variables)
    assert len(asked) <= 11
    assert all(len(one) <= len(alarm_data.variables) for choices in asked for one in choices.sets)


class Counting(PlainCounter):
    calls = 0

    def tables(self, families, **options):
        self.calls += 1
        return super().tables(families, **options)


def test_over_tables_all_pairs_are_counted_in_one_call(alarm_data):
    for algorithm, target in (("chow_liu", None), ("tan", "CVP")):
        counter = Counting(alarm_data)
        learn_structure(counter, algorithm, class_variable=target)
        assert counter.calls == 1


def test_ties_go_to_the_first_names_and_close_no_cycle():
    counter = PlainCounter(binary(dict.fromkeys("edcba", np.array([0, 1] * 20, np.uint8))))
    star = Structure({"a": (), **dict.fromkeys("bcde", ("a",))})
    assert learn_structure(counter, "chow_liu") == star
    assert learn_structure(TableChooser(counter), "chow_liu") == star


def test_required_edges_are_in_the_tree_and_forbidden_pairs_are_not():
    data = random_data(0, 6, 500)
    free = learn_structure(PlainCounter(data), "chow_liu")
    edge = free.edges[0]
    pairs = combinations(data.variables, 2)
    absent = next(pair for pair in pairs if frozenset(pair) not in undirected(free))
    constraints = Constraints(required=(absent[::-1],), forbidden=(edge, edge[::-1]))
    structure = learn_structure(PlainCounter(data), "chow_liu", constraints=constraints)
    assert absent[::-1] in structure.edges and frozenset(edge) not in undirected(structure)
    assert len(structure.edges) == 5


def test_a_root_of_the_constraints_is_the_root():
    data = random_data(0, 6, 500)
    for root in data.variables:
        constraints = Constraints(roots=(root,))
        structure = learn_structure(PlainCounter(data), "chow_liu", constraints=constraints)
        assert structure.parents[root] == ()
        assert undirected(structure) == spanning_tree(data, data.variables)


def test_pairs_that_are_all_forbidden_leave_a_forest():
    data = random_data(0, 6, 500)
    halves = sorted(data.variables)[:3], sorted(data.variables)[3:]
    forbidden = tuple((a, b) for x in halves[0] for y in halves[1] for a, b in ((x, y), (y, x)))
    constraints = Constraints(forbidden=forbidden)
    structure = learn_structure(PlainCounter(data), "chow_liu", constraints=constraints)
    assert undirected(structure) == spanning_tree(data, halves[0]) | spanning_tree(data, halves[1])


@pytest.mark.parametrize("required", [("ab", "bc", "ac"), ("ac", "bc")])
def test_required_edges_that_no_tree_keeps_are_named(required):
    edges = tuple((f"n{'abc'.index(p)}", f"n{'abc'.index(c)}") for p, c in required)
    with pytest.raises(ValueError, match=r"the required edge n. -> n2 does not fit into a tree"):
        learn_structure(
            PlainCounter(random_data(0, 4, 100)),
            "chow_liu",
            constraints=Constraints(required=edges),
            max_parents=2,
        )


def test_tiers_still_give_a_tree_that_can_be_directed():
    data = random_data(1, 8, 1000)
    names = sorted(data.variables)
    constraints = Constraints(tiers=(tuple(names[4:]), tuple(names[:4])))
    structure = learn_structure(PlainCounter(data), "chow_liu", constraints=constraints)
    assert constraints.violations(structure) == [] and len(structure.edges) >= 4


def impossible(constraints, most, target):
    """Whether required edges do not fit: those of the class are not of the tree of TAN."""
    children = [child for _, child in constraints.required]
    in_tree = [edge for edge in constraints.required if target not in edge]
    of_tree = [child for _, child in in_tree]
    return (
        target in children
        or any(children.count(child) > most for child in children)
        or any(of_tree.count(child) > 1 for child in of_tree)
        or (bool(in_tree) and not nx.is_forest(nx.Graph(in_tree)))
    )


@pytest.mark.parametrize("seed", range(30))
def test_each_tree_keeps_random_constraints_and_the_number_of_parents(seed):
    generator = np.random.default_rng(seed)
    data = random_data(seed, 5, 200)
    constraints = random_constraints(generator, data.variables)
    for algorithm, most in (("chow_liu", 1), ("tan", 2), ("tan", 1)):
        learn = partial(
            learn_structure,
            PlainCounter(data),
            algorithm,
            constraints=constraints,
            class_variable="n0",
            max_parents=most,
        )
        if impossible(constraints, most, "n0" if algorithm == "tan" else None):
            with pytest.raises(ValueError, match="required"):
                learn()
            continue
        structure = learn()
        assert constraints.violations(structure) == []
        assert max(map(len, structure.parents.values())) <= most


@pytest.mark.parametrize(
    ("target", "required", "reason"),
    [
        (None, (), "tan needs a class: none was given"),
        ("x", (), "the class of tan must be one of n0, n1, n2, n3, got 'x'"),
        ("n1", (("n0", "n1"),), "the required edge n0 -> n1 contradicts tan"),
    ],
)
def test_tan_without_its_class_is_refused(target, required, reason):
    with pytest.raises(ValueError, match=reason):
        learn_structure(
            PlainCounter(random_data(0, 4, 50)),
            "tan",
            class_variable=target,
            constraints=Constraints(required=required),
        )
