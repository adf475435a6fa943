from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes_protocols.calibration.graph import Graph


@st.composite
def graphs(draw):
    """Any network of up to nine nodes."""
    nodes = [f"n{place}" for place in range(draw(st.integers(1, 9)))]
    pairs = [(a, b) for a in nodes for b in nodes if a < b]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph.of(draw(st.permutations(nodes)), edges)


def matrix(graph, weights):
    return np.array([[weights[v].get(u, 0.0) for u in graph.nodes] for v in graph.nodes])


def steps_from(graph, start):
    steps, line = {start: 0}, deque([start])
    while line:
        node = line.popleft()
        for peer in graph.neighbours[node]:
            if peer not in steps:
                steps[peer] = steps[node] + 1
                line.append(peer)
    return steps


CHAIN = Graph.of("abc", [("b", "a"), ("b", "c")])


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ({}, "needs at least one node"),
        ({"a": ("a",)}, "the node a is its own neighbour"),
        ({"a": ("b", "b"), "b": ("a",)}, "the node a has the neighbour b twice"),
        ({"a": ("c",), "b": ()}, "the node a has a neighbour that is not a node: c"),
        ({"a": ("b",), "b": ()}, "b is a neighbour of a, but a not of b"),
    ],
)
def test_neighbours_that_are_not_a_network_are_refused(neighbours, message):
    with pytest.raises(ValueError, match=message):
        Graph(neighbours)


def test_edges_that_are_not_of_a_network_are_refused():
    with pytest.raises(ValueError, match="the edge a - z: z is not a node"):
        Graph.of("ab", [("a", "z")])
    with pytest.raises(ValueError, match="the node b is its own neighbour"):
        Graph.of("ab", [("b", "b")])
    with pytest.raises(ValueError, match="the node a appears twice"):
        Graph.of("aba", [("a", "b")])


def test_an_edge_may_be_given_in_either_direction_and_in_both():
    assert Graph.of("abc", [("a", "b"), ("b", "a"), ("c", "b")]) == CHAIN
    assert CHAIN.edges == (("a", "b"), ("b", "c"))


def test_nodes_that_are_absent_leave_with_their_edges():
    assert CHAIN.without({"b"}).neighbours == {"a": (), "c": ()}
    assert CHAIN.without({"a", "unknown"}).neighbours == {"b": ("c",), "c": ("b",)}
    with pytest.raises(ValueError, match="all nodes are absent"):
        CHAIN.without("abc")


def test_a_network_of_two_parts_is_refused_with_a_node_of_each():
    apart = Graph.of("abcd", [("a", "b"), ("c", "d")])
    for check in (apart.check_connected, lambda: apart.tree):
        with pytest.raises(ValueError, match="there is no path between a and c"):
            check()


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_tree_spans_the_network_by_shortest_paths_from_a_busiest_node(graph):
    connected = len(steps_from(graph, graph.nodes[0])) == len(graph.nodes)
    if not connected:
        with pytest.raises(ValueError, match="not connected"):
            graph.check_connected()
        return
    tree = graph.tree
    assert len(tree.edges) == len(graph.nodes) - 1
    assert set(tree.edges) <= set(graph.edges)
    most = max(len(peers) for peers in graph.neighbours.values())
    root = max(node for node, peers in graph.neighbours.items() if len(peers) == most)
    assert steps_from(tree, root) == steps_from(graph, root)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.randoms())
def test_all_nodes_derive_the_same_tree_whatever_the_order_of_their_files(graph, random):
    if len(steps_from(graph, graph.nodes[0])) < len(graph.nodes):
        return
    shuffled = {n: tuple(random.sample(p, len(p))) for n, p in graph.neighbours.items()}
    order = random.sample(graph.nodes, len(graph.nodes))
    other = Graph({node: shuffled[node] for node in order})
    assert dict(other.tree.neighbours) == dict(graph.tree.neighbours)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_plain_mean_weighs_all_of_a_neighbourhood_equally(graph):
    for node, peers in graph.neighbours.items():
        hood = {*peers, node}
        assert graph.mean_weights[node] == dict.fromkeys(sorted(hood), 1 / len(hood))


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_metropolis_weights_keep_the_mean_over_all_nodes(graph):
    weights = matrix(graph, graph.metropolis_weights)
    assert np.allclose(weights, weights.T, atol=1e-15)
    assert np.allclose(weights.sum(axis=0), 1, atol=1e-12)
    assert (np.diag(weights) > 0).all()
    assert ((weights > 0) == (matrix(graph, graph.mean_weights) > 0)).all()


def test_metropolis_weights_of_a_chain():
    third = pytest.approx(1 / 3)
    assert CHAIN.metropolis_weights == {
        "a": {"a": pytest.approx(2 / 3), "b": third},
        "b": {"a": third, "b": third, "c": third},
        "c": {"b": third, "c": pytest.approx(2 / 3)},
    }
