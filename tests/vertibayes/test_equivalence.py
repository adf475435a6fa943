from itertools import combinations

import numpy as np
import pytest

from tests.structure_worlds import all_structures, random_constraints
from vertibayes.dag import Structure
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.equivalence import Cpdag, cpdag_of
from vertibayes.structure.partial_graph import PartialGraph


def shape(structure):
    """The neighbours and the unshielded colliders: equal for equivalent structures."""
    edges = frozenset(frozenset(edge) for edge in structure.edges)
    colliders = frozenset(
        (child, frozenset(pair))
        for child, parents in structure.parents.items()
        for pair in combinations(parents, 2)
        if frozenset(pair) not in edges
    )
    return edges, colliders


def extension(cpdag, constraints=Constraints()):
    """Return one of the structures of a CPDAG: the one whose order is first by name."""
    graph = PartialGraph(cpdag.nodes, (*cpdag.compelled, *cpdag.reversible))
    for edge in cpdag.compelled:
        graph.orient(*edge)
    graph.keep(constraints)
    graph.close()
    structure = graph.extension(constraints).structure
    violations = constraints.violations(structure)
    edges, compelled = structure.edges, set(cpdag.compelled)
    faults = len(edges) < len(compelled) + len(cpdag.reversible) or not compelled <= set(edges)
    arrows = {(parent, child) for child, pair in shape(structure)[1] for parent in pair}
    if violations or faults or not arrows <= compelled:
        why = f": {violations[0]}" if violations else ""
        raise ValueError(f"no structure of the CPDAG keeps the constraints{why}")
    return structure


def by_enumeration(structures, names):
    """The CPDAG of structures: an arrow is compelled if all have it."""
    edges = [set(structure.edges) for structure in structures]
    compelled = set.intersection(*edges)
    pairs = {tuple(sorted(edge)) for edge in edges[0]}
    reversible = pairs - {tuple(sorted(edge)) for edge in compelled}
    return Cpdag(tuple(names), tuple(sorted(compelled)), tuple(sorted(reversible)))


@pytest.fixture(scope="module")
def classes():
    groups = {}
    for structure in all_structures("abcd"):
        groups.setdefault(shape(structure), []).append(structure)
    return list(groups.values())


def test_the_cpdags_of_all_structures_of_four_nodes(classes):
    assert len(classes) == 185 and sum(map(len, classes)) == 543
    for structures in classes:
        expected = by_enumeration(structures, "abcd")
        assert {cpdag_of(structure) for structure in structures} == {expected}
        assert extension(expected) in structures


def test_what_experts_know_compels_what_enumeration_says(classes):
    generator = np.random.default_rng(0)
    for structures in classes:
        for _ in range(4):
            constraints = random_constraints(generator, "abcd")
            kept = [s for s in structures if not constraints.violations(s)]
            plain = cpdag_of(structures[0])
            if not kept:
                with pytest.raises(ValueError, match="keeps the constraints"):
                    extension(plain, constraints)
                continue
            expected = by_enumeration(kept, "abcd")
            assert {cpdag_of(structure, constraints) for structure in kept} == {expected}
            assert extension(plain, constraints) in kept


@pytest.mark.laws
def test_the_cpdags_of_all_structures_of_five_nodes():
    groups = {}
    for structure in all_structures("abcde"):
        groups.setdefault(shape(structure), []).append(structure)
    assert len(groups) == 8782
    for structures in groups.values():
        expected = by_enumeration(structures, "abcde")
        assert cpdag_of(structures[0]) == expected
        assert extension(expected) in structures


def random_structure(seed, nodes, density):
    generator = np.random.default_rng(seed)
    names = [f"n{i:02}" for i in generator.permutation(nodes)]
    edges = [pair for pair in combinations(names, 2) if generator.random() < density]
    return Structure.of(names, edges)


@pytest.mark.parametrize("seed", range(8))
def test_cpdags_are_the_essential_graphs_of_pyagrum(seed):
    import pyagrum as gum

    structure = random_structure(seed, 20, 0.05 * (1 + seed))
    network = gum.BayesNet()
    place = {name: network.add(gum.LabelizedVariable(name, name, 2)) for name in structure.nodes}
    for edge in structure.edges:
        network.addArc(*(place[name] for name in edge))
    essential, names = gum.EssentialGraph(network), {v: k for k, v in place.items()}
    learned = cpdag_of(structure)
    assert set(learned.compelled) == {(names[a], names[b]) for a, b in essential.arcs()}
    assert {frozenset(pair) for pair in learned.reversible} == {
        frozenset((names[a], names[b])) for a, b in essential.edges()
    }
    assert cpdag_of(extension(learned)) == learned


def test_an_extension_puts_earlier_names_first():
    assert extension(Cpdag(tuple("abc"), (), (("a", "b"), ("b", "c")))).edges == (
        ("a", "b"),
        ("b", "c"),
    )


def test_the_distance_counts_pairs_once():
    one = Cpdag(tuple("abc"), (("a", "b"),), (("b", "c"),))
    assert one.hamming_distance(one) == 0
    assert one.hamming_distance(Cpdag(tuple("abc"), (("b", "a"),), ())) == 2
    assert one.hamming_distance(Cpdag(tuple("abc"), (), (("a", "b"), ("a", "c")))) == 3
    with pytest.raises(ValueError, match="differ in c"):
        one.hamming_distance(Cpdag(tuple("ab"), (), ()))


def test_a_structure_against_the_constraints_is_refused():
    with pytest.raises(ValueError, match="a -> b contradicts the root b"):
        cpdag_of(Structure.of("ab", [("a", "b")]), Constraints(roots=("b",)))


def test_a_cpdag_without_a_structure_is_refused():
    square = (("a", "b"), ("a", "d"), ("b", "c"), ("c", "d"))
    with pytest.raises(ValueError, match="no structure of the CPDAG"):
        extension(Cpdag(tuple("abcd"), (), square))
