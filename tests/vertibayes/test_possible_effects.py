"""Effects over all directions: equal to an enumeration of the DAGs of a class."""

from itertools import combinations, product

import numpy as np
import pytest

from tests.equivalence_classes import (
    effect_by_truncation,
    equivalent,
    joint_of,
    random_network,
    random_structure,
)
from tests.structure_worlds import all_structures
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.effects import effect_in, standardized
from vertibayes.network import Network
from vertibayes.options import Options
from vertibayes.sampling import sample
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.equivalence import fixed_by, structures_by_parents
from vertibayes.structure.possible_effects import Directions, effects_in, standardized_range
from vertibayes_protocols.variables import Variable


@pytest.mark.parametrize("seed", range(60))
def test_the_effects_are_those_of_all_dags_of_the_class(seed):
    generator = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(generator.integers(3, 7))]
    structure = random_structure(generator, names, generator.uniform(0.3, 0.8))
    kept = [edge for edge in structure.edges if generator.random() < 0.25] if seed % 2 else []
    network = random_network(generator, structure)
    joint = joint_of(network)
    dags = list(equivalent(structure, kept))
    for x, y in product(names, repeat=2):
        if x == y:
            continue
        expected = np.array([effect_by_truncation(joint, dag, x, y) for dag in dags])
        directions = Directions.of(structure, x, y, kept)
        assert directions.structures[0] == structure
        assert {frozenset(s.parents[x]) for s in directions.structures} == {
            frozenset(dag.parents[x]) for dag in dags
        }
        found = effects_in(network, x, y, directions)
        assert directions.is_determined == bool(np.ptp(expected, axis=0).max() < 1e-9)
        ours = np.array([effect.risks for effect in found.effects])
        assert ours.min(axis=0) == pytest.approx(expected.min(axis=0), abs=1e-9)
        assert ours.max(axis=0) == pytest.approx(expected.max(axis=0), abs=1e-9)
        differences = expected[:, 1, 1] - expected[:, 0, 1]
        lowest, highest = found.difference("yes", "yes", "no")
        assert lowest == pytest.approx(differences.min(), abs=1e-9)
        assert highest == pytest.approx(differences.max(), abs=1e-9)


def test_a_set_of_parents_is_possible_if_a_dag_has_it_and_knowledge_allows_it():
    """All structures of four nodes, each with every direction of one of its edges as given."""
    for structure in all_structures("abcd"):
        for edge in structure.edges[:2]:
            given = [edge[::-1]]
            dags = list(equivalent(structure, given))
            if not dags:
                with pytest.raises(ValueError, match=r"given|no structure that fits"):
                    structures_by_parents(structure, "b", given)
                continue
            found = structures_by_parents(structure, "b", given)
            edges = [set(dag.edges) for dag in dags]
            assert all(set(dag.edges) in edges for dag in found)
            sets = [frozenset(dag.parents["b"]) for dag in found]
            assert len(sets) == len(set(sets)) and set(sets) == {
                frozenset(dag.parents["b"]) for dag in dags
            }


SMOKE = Network(
    Structure.of(["ill", "smoke"], [("ill", "smoke")]),
    {name: Variable(name, ("no", "yes")) for name in ("ill", "smoke")},
    {"ill": np.array([0.65, 0.35]), "smoke": np.array([[0.6, 0.3], [0.4, 0.7]])},
)


def test_a_single_reversible_arrow_gives_a_range_from_0():
    directions = Directions.of(SMOKE.structure, "smoke", "ill")
    assert not directions.is_determined and directions.undecided == (("ill", "smoke"),)
    found = effects_in(SMOKE, "smoke", "ill")
    lowest, highest = found.difference("yes", "yes", "no")
    joint = np.array([0.65, 0.35]) * np.array([[0.6, 0.3], [0.4, 0.7]])
    shares = joint[:, 1] / joint.sum(axis=1)
    assert lowest == 0 and highest == pytest.approx(shares[1] - shares[0])
    assert found.difference_interval("yes", "yes", "no") is None
    known = Network(**{**vars(SMOKE), "fixed": frozenset([("ill", "smoke")])})
    assert effects_in(known, "smoke", "ill").difference("yes", "yes", "no") == (0, 0)
    given = Directions.of(SMOKE.structure, "smoke", "ill", [("smoke", "ill")])
    assert given.is_determined
    assert effects_in(SMOKE, "smoke", "ill", given).difference("yes", "yes", "no")[
        0
    ] == pytest.approx(highest)


def test_tables_give_the_range_and_the_interval_that_covers_all_of_its_effects():
    data = sample(SMOKE, 3000, seed=1)
    counter = PlainCounter(data)
    directions = Directions.of(SMOKE.structure, "smoke", "ill")
    found = standardized_range(counter, directions)
    plain = standardized(counter, "smoke", "ill")
    assert found.difference("yes", "yes", "no") == (0, plain.difference("yes", "yes", "no"))
    _, high = plain.difference_interval("yes", "yes", "no")
    assert found.difference_interval("yes", "yes", "no") == (0, high)
    low, high = found.risk("yes", "no")
    share = (data.codes["ill"] == 1).mean()
    assert low == plain.risk("yes", "no") and high == pytest.approx(share)
    low, high = found.risk_interval("yes", "no")
    assert low == plain.risk_interval("yes", "no")[0] and high > share


def test_each_direction_asks_for_its_own_smallest_table():
    structure = Structure.of("axyz", [("a", "x"), ("x", "y"), ("a", "y"), ("z", "y")])
    network = random_network(np.random.default_rng(0), structure)
    asked = []

    class Counted(PlainCounter):
        def tables(self, families, **more):
            asked.append([family.members for family in families])
            return super().tables(families, **more)

    directions = Directions.of(structure, "x", "y")
    assert [s.parents["x"] for s in directions.structures] == [("a",), ()]
    found = standardized_range(Counted(sample(network, 2000, seed=1)), directions)
    assert asked == [[("y", "x", "a"), ("y", "x")]] and len(found.effects) == 2
    with pytest.raises(
        ValueError, match="no adjustment set without a separates the effect of x on y"
    ):
        standardized_range(Counted(sample(network, 2000, seed=1)), directions, excluded=["a"])


def test_an_ordering_fixes_all_arrows_and_constraints_some():
    structure = Structure.of("abc", [("a", "b"), ("b", "c")])
    assert fixed_by(structure, Options(ordering=["a", "b", "c"]).knowledge) == {*structure.edges}
    tiers = Constraints(tiers=(("a",), ("b", "c")))
    assert fixed_by(structure, Options(constraints=tiers).knowledge) == {("a", "b")}
    assert fixed_by(structure, Options().knowledge) == set()


def test_directions_that_contradict_the_data_or_each_other_are_refused():
    collider = Structure.of("abc", [("a", "c"), ("b", "c")])
    with pytest.raises(ValueError, match="c -> a is given, and a -> c is shown by the data"):
        Directions.of(collider, "a", "c", [("c", "a")])
    chain = Structure.of("abc", [("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match="no structure that fits the data as well has all of a ->"):
        Directions.of(chain, "a", "c", [("a", "b"), ("c", "b")])
    with pytest.raises(ValueError, match="both a -> b and b -> a are given"):
        Directions.of(chain, "a", "c", [("a", "b"), ("b", "a")])


def test_too_many_sets_of_parents_are_refused():
    names = [f"v{i:02}" for i in range(12)]
    with pytest.raises(ValueError, match="v00 has more than 1000 possible sets of parents"):
        structures_by_parents(Structure.of(names, combinations(names, 2)), "v00")


def test_without_an_effect_all_risks_are_the_share_and_effects_in_an_arrow_are_as_before():
    network = random_network(np.random.default_rng(1), Structure.of("xyz", [("x", "y")]))
    assert effects_in(network, "x", "z").difference("yes", "yes", "no") == (0, 0)
    known = Network(**{**vars(network), "fixed": frozenset([("x", "y")])})
    [effect] = effects_in(known, "x", "y").effects
    assert np.array_equal(effect.risks, effect_in(network, "x", "y").risks)
