import numpy as np
import pytest

from vertibayes.dag import Structure
from vertibayes.network import Network, from_pgmpy
from vertibayes.sampling import sample
from vertibayes_protocols.variables import Variable

BIT = ("0", "1")


def test_nodes_edges_and_families():
    structure = Structure.of(["a", "b", "c"], [("a", "c"), ("b", "c")])
    assert structure.nodes == ("a", "b", "c")
    assert structure.edges == (("a", "c"), ("b", "c"))
    assert structure.families[2].members == ("c", "a", "b")
    assert structure.order().index("c") == 2


@pytest.mark.parametrize(
    ("nodes", "edges", "reason"),
    [
        (["a"], [("a", "b")], "a -> b has an unknown"),
        (["a"], [("b", "a")], "b -> a has an unknown"),
        (["a", "a"], [], "twice"),
        (["a", "b"], [("a", "b"), ("a", "b")], "a parent of b appears twice"),
        (
            ["a", "b", "c"],
            [("a", "b"), ("b", "c"), ("c", "a")],
            "must not have a cycle: .* -> .* -> .* -> ",
        ),
        (["a"], [("a", "a")], "must not have a cycle: a -> a"),
    ],
)
def test_impossible_structures(nodes, edges, reason):
    with pytest.raises(ValueError, match=reason):
        Structure.of(nodes, edges)


def test_structural_hamming_distance():
    nodes = ["a", "b", "c", "d"]
    one = Structure.of(nodes, [("a", "b"), ("b", "c")])
    other = Structure.of(nodes, [("b", "a"), ("c", "d")])
    assert one.hamming_distance(other) == 3  # one turned round, one lacking, one too many
    assert one.hamming_distance(one) == 0
    with pytest.raises(ValueError, match="d"):
        one.hamming_distance(Structure.of(nodes[:3], []))


def test_to_pgmpy_and_back(alarm_network):
    model = alarm_network.to_pgmpy()
    back = from_pgmpy(model)
    assert back.structure.parents == alarm_network.structure.parents
    for node, cpt in alarm_network.cpts.items():
        assert np.array_equal(back.cpts[node], cpt)
        assert back.variables[node].states == alarm_network.variables[node].states


@pytest.mark.parametrize("cpt", [[0.5, 0.6], [1.5, -0.5], [np.nan, np.nan]])
def test_no_distribution(cpt):
    with pytest.raises(ValueError, match="CPT of a"):
        Network(Structure({"a": ()}), {"a": Variable("a", BIT)}, {"a": np.array(cpt)})


def test_a_cpt_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"CPT of a must have the shape \(2,\), got \(3,\)"):
        Network(Structure({"a": ()}), {"a": Variable("a", BIT)}, {"a": np.ones(3) / 3})


def test_samples_follow_the_network(alarm_network):
    data = sample(alarm_network, 50_000, seed=3)
    child, parents = "HISTORY", alarm_network.structure.parents["HISTORY"]
    assert parents == ("LVFAILURE",)
    table = np.zeros((2, 2))
    np.add.at(table, (data.codes[child], data.codes["LVFAILURE"]), 1)
    wanted = alarm_network.cpts[child]
    assert table / table.sum(axis=0) == pytest.approx(wanted, abs=0.02)
    again = sample(alarm_network, 50_000, seed=3)
    assert all(np.array_equal(data.codes[n], again.codes[n]) for n in data.codes)
    with pytest.raises(ValueError, match="must be at least 0, got -1"):
        sample(alarm_network, -1, seed=3)


def test_all_public_names_are_there():
    import vertibayes

    for name in vertibayes.__all__:
        assert getattr(vertibayes, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        vertibayes.nothing  # noqa: B018
