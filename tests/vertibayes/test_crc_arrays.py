"""The arrays of `benchmarks/crc_arrays.py` are the nodes of parties, all at once."""

import numpy as np
import pytest

from tests.documents import ROOT, scripts
from tests.vertibayes.rc_worlds import complete, world
from vertibayes.calibration.crc import collaborative_rc
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes_protocols.calibration.graph import Graph

TREE = Graph.of("abcdefg", ["ab", "ac", "bd", "be", "cf", "fg"])
ROUNDS, RATE = 9, 0.2


@pytest.fixture
def arrays():
    with scripts(ROOT / "benchmarks", "crc_arrays") as [module]:
        yield module


def nodes_of(arrays, w):
    shape = len(TREE.nodes), -1
    columns = w.examples.columns.reshape(*shape, w.classifier.width)
    return arrays.Nodes(w.classifier, columns, w.examples.classes.reshape(shape), TREE)


@pytest.mark.parametrize("start", ["uniform", "data"])
@pytest.mark.parametrize("mixing", ["mean", "metropolis", "relay"])
def test_arrays_reach_the_statistics_of_the_nodes_of_parties(arrays, mixing, start):
    w = world(70, 8)
    options = {"rate": RATE, "iterations": 2, "mixing": mixing, "start": start}
    *_, theirs = collaborative_rc(w.classifier, w.nodes([10] * 7), TREE, ROUNDS, **options)
    *_, ours = arrays.rounds(nodes_of(arrays, w), ROUNDS, arrays.Rule(mixing, start), RATE, 2)
    assert ours == pytest.approx(theirs.statistics, abs=1e-9)


def test_a_neighbourhood_without_the_node_is_the_mean_of_the_others(arrays):
    w = world(70, 8)
    nodes = nodes_of(arrays, w)
    first, second = arrays.rounds(nodes, 2, arrays.Rule("others"), RATE)
    mixed = np.stack([(first[1] + first[2]) / 2, (first[0] + first[3] + first[4]) / 3])
    some = nodes._replace(columns=nodes.columns[:2], classes=nodes.classes[:2])
    assert second[:2] == pytest.approx(mixed + some.local(mixed, 1))


@pytest.mark.parametrize(("mixing", "holds"), [("mean", True), ("others", False)])
def test_theorem_1_counts_the_node_in_its_neighbourhood(arrays, mixing, holds):
    w = world(70, 8)
    nodes = nodes_of(arrays, w)._replace(network=complete(TREE.nodes))
    start = w.classifier.uniform(70.0)
    rc = risk_based_calibration(w.classifier, w.examples, 5, rate=RATE, start=start).last
    *_, last = arrays.rounds(nodes, 5, arrays.Rule(mixing), RATE)
    mixed = (arrays.matrix(nodes.network, mixing) @ last.reshape(7, -1)).reshape(last.shape)
    theirs = w.classifier.weights(rc).values
    apart = np.abs(w.classifier.weights(mixed).values - theirs).max()
    assert (apart < 1e-9) == holds and (holds or apart > 1e-3)


def test_without_repairs_a_model_of_no_numbers_takes_the_first_class(arrays):
    w = world(70, 8, states=())
    nodes = nodes_of(arrays, w)
    bad = w.classifier.uniform(1.0)[None].repeat(2, axis=0)
    bad[:, 1, 3] = -1.0  # a variance of the second class, whose weights are not numbers then
    rule = arrays.Rule("mean", repairs=False)
    found = arrays.errors_of(nodes, bad, w.examples, rule)
    assert found == pytest.approx(np.mean(w.examples.classes != 0))
    assert not np.isnan(w.classifier.weights(bad[0]).values).any()  # repairs are on again


def test_trees_have_as_many_near_nodes_as_expected():
    with scripts(ROOT / "benchmarks", "crc_trees") as [trees]:
        drawn = [trees.near_in(20, np.random.default_rng(seed)) for seed in range(100)]
        mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0) / 100**0.5
        apart = np.abs(mean - trees.expected(20))[:9]  # beyond, most trees have no nodes
        assert (apart < 4 * error[:9] + 1e-9).all()
        assert trees.expected(3) == pytest.approx([1 / 3, 7 / 9, 1])
