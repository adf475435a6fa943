import json
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from vertibayes.calibration.topologies import (
    Changing,
    network_of,
    node_names,
    read_network,
)
from vertibayes.settings import NETWORKS
from vertibayes_protocols.calibration.graph import Graph


def to_networkx(graph):
    return nx.Graph(dict(graph.neighbours))


def drawn(kind, nodes, seed=0, **options):
    return network_of(kind, node_names(nodes), np.random.default_rng(seed), **options)


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("nodes", [5, 6, 50])
def test_every_kind_of_network_is_connected_and_follows_from_its_seed(kind, nodes):
    graph = drawn(kind, nodes, seed=3)
    assert nx.is_connected(to_networkx(graph))
    assert graph.nodes == tuple(node_names(nodes))
    assert drawn(kind, nodes, seed=3) == graph


def test_networks_have_the_edges_that_their_names_promise():
    assert nx.is_tree(to_networkx(drawn("tree", 50)))
    assert drawn("chain", 3).edges == (("node-1", "node-2"), ("node-2", "node-3"))
    assert nx.is_isomorphic(to_networkx(drawn("ring", 7)), nx.cycle_graph(7))
    assert drawn("star", 4).neighbours["node-1"] == ("node-2", "node-3", "node-4")
    assert len(drawn("complete", 10).edges) == 45
    lattice = nx.watts_strogatz_graph(12, 4, 0)
    assert nx.is_isomorphic(to_networkx(drawn("small-world", 12, rewiring=0)), lattice)


@pytest.mark.parametrize("kind", [kind for kind in NETWORKS if kind != "small-world"])
def test_one_node_and_two_nodes_make_a_network(kind):
    assert drawn(kind, 1).neighbours == {"node-1": ()}
    assert drawn(kind, 2).neighbours == {"node-1": ("node-2",), "node-2": ("node-1",)}


def test_each_of_the_sixteen_trees_of_four_nodes_is_equally_probable():
    generator = np.random.default_rng(4)
    trees = Counter(network_of("tree", "abcd", generator).edges for _ in range(1600))
    assert len(trees) == 16
    assert sum((count - 100) ** 2 / 100 for count in trees.values()) < 37.7  # p = .001 of chi^2


def test_a_small_world_keeps_the_number_of_edges_and_rewires_their_share():
    lattice = set(drawn("small-world", 20, degree=6, rewiring=0).edges)
    networks = [drawn("small-world", 20, seed, degree=6, rewiring=0.3).edges for seed in range(50)]
    assert {len(edges) for edges in networks} == {len(lattice)} == {60}
    rewired = np.mean([len(set(edges) - lattice) for edges in networks])
    assert 14 < rewired < 18.5  # 18, less the edges that lead back to where one was; sd 0.5


def test_an_erdos_renyi_network_has_the_share_of_edges_that_was_asked_for():
    assert len(drawn("erdos-renyi", 50, probability=0.4).edges) == pytest.approx(490, abs=70)
    assert len(drawn("erdos-renyi", 20, probability=1).edges) == 190


@pytest.mark.parametrize("kind", ["tree", "chain"])
def test_further_edges_are_added_to_those_that_are_there(kind):
    before, after = drawn(kind, 50, seed=1), drawn(kind, 50, seed=1, extra_edges=80)
    assert set(before.edges) < set(after.edges)
    assert len(after.edges) == 49 + 80
    assert len(drawn(kind, 4, extra_edges=3).edges) == 6


@pytest.mark.parametrize(
    ("kind", "nodes", "options", "message"),
    [
        ("mesh", 3, {}, "must be one of tree, erdos-renyi, .*, got 'mesh'"),
        ("tree", 4, {"extra_edges": 4}, "extra_edges must be between 0 and 3 .*, got 4"),
        ("tree", 4, {"extra_edges": -1}, "between 0 and 3 .*, got -1"),
        ("erdos-renyi", 9, {"probability": 0.0}, r"must be in \(0, 1\], got 0.0"),
        ("erdos-renyi", 40, {"probability": 0.01}, "none of 100 drawn networks .* is connected"),
        ("small-world", 9, {"degree": 3}, "must be even, .* got 3"),
        ("small-world", 4, {}, r"less than the number of nodes \(4\), got 4"),
        ("small-world", 9, {"rewiring": 2.0}, "must be in .0, 1., got 2.0"),
        ("tree", 0, {}, "at least 1, got 0"),
    ],
)
def test_networks_that_cannot_be_drawn_are_refused(kind, nodes, options, message):
    with pytest.raises(ValueError, match=message):
        drawn(kind, nodes, **options)


def written(tmp_path, content):
    path = tmp_path / "network.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_network_is_read_from_a_file_of_nodes_and_edges_or_of_edges_alone(tmp_path):
    edges = [["b", "a"], ["b", "c"]]
    named = read_network(written(tmp_path, {"nodes": ["a", "b", "c"], "edges": edges}))
    assert named == Graph.of("abc", [("a", "b"), ("b", "c")])
    alone = read_network(written(tmp_path, edges))
    assert alone.nodes == ("b", "a", "c")
    assert alone == named == read_network(written(tmp_path, {"edges": edges}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[", "line 1: not JSON"),
        ("3", "not a communication network; expected"),
        ({"nodes": ["a"]}, "not a communication network; expected"),
        ([["a", "b", "c"]], r"not an edge: \['a', 'b', 'c'\]"),
        ([["a", 1]], r"not an edge: \['a', 1\]"),
        ({"nodes": ["a", 2], "edges": []}, r"not a list of nodes: \['a', 2\]"),
        ({"nodes": ["a", "b"], "edges": [["a", "z"]]}, "the edge a - z: z is not a node"),
        ({"nodes": ["a", "a"], "edges": []}, "the node a appears twice"),
        ([["a", "a"]], "the node a is its own neighbour"),
        ([], "at least one node"),
        ({"nodes": ["a", "b", "c"], "edges": [["a", "b"]]}, "no path between a and c"),
    ],
)
def test_a_file_that_is_not_a_network_is_refused_by_name(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"network\.json.*{message}"):
        read_network(written(tmp_path, content))


def test_a_changing_network_lasts_as_many_rounds_as_it_should_in_any_order_of_questions():
    names = node_names(20)
    forward = Changing("tree", names, 4, np.random.default_rng(5))
    backward = Changing("tree", names, 4, np.random.default_rng(5))
    rounds = range(1, 25)
    late_first = {t: backward(t) for t in reversed(rounds)}
    assert {t: forward(t) for t in rounds} == late_first
    assert len({late_first[t].edges for t in rounds}) == 6
    assert all(late_first[t] == late_first[(t - 1) // 4 * 4 + 1] for t in rounds)


def test_a_changing_network_refuses_mistakes_before_the_first_round():
    for every, options, message in ((0, {}, "at least 1 round"), (1, {"extra_edges": 9}, "and 0")):
        with pytest.raises(ValueError, match=message):
            Changing("tree", "ab", every, np.random.default_rng(0), **options)
    with pytest.raises(ValueError, match="counted from 1, got 0"):
        Changing("tree", "ab", 1, np.random.default_rng(0))(0)
