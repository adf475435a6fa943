import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

from vertibayes.calibration.topologies import network_of, node_names
from vertibayes.report.communication import PLAIN, SHADES, draw_network
from vertibayes.settings import NETWORKS
from vertibayes_protocols.calibration.graph import Graph

SVG = "{http://www.w3.org/2000/svg}"


def drawn(kind, nodes, errors=None, seed=1):
    graph = network_of(kind, node_names(nodes), np.random.default_rng(seed))
    return graph, read(draw_network(graph, errors))


def read(svg):
    """The places and fills of the circles, the titles, the texts and the size of a drawing."""
    root = ET.fromstring(svg)
    titles = [group.find(f"{SVG}title").text for group in root.iter(f"{SVG}g")]
    circles = [
        (float(c.get("cx")), float(c.get("cy")), float(c.get("r")), c.get("fill"))
        for c in root.iter(f"{SVG}circle")
    ]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    return circles, titles, texts, (float(root.get("width")), float(root.get("height")))


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("nodes", [5, 40, 80])
def test_a_drawing_shows_all_nodes_and_edges_within_its_bounds(kind, nodes):
    graph, (circles, titles, texts, (width, height)) = drawn(kind, nodes)
    edges = [f"{one} - {other}" for one, other in graph.edges]
    assert sorted(titles) == sorted([*graph.nodes, *edges])
    assert texts == (list(graph.nodes) if nodes <= 60 else [])
    assert len(circles) == nodes
    for x, y, radius, fill in circles:
        assert radius <= x <= width - radius and radius <= y <= height - radius
        assert fill == PLAIN


@pytest.mark.parametrize(("kind", "nodes"), [("tree", 50), ("star", 30), ("complete", 10)])
def test_the_circles_of_nodes_lie_apart(kind, nodes):
    _, (circles, *_) = drawn(kind, nodes)
    for (x, y, radius, _), (x2, y2, *_) in combinations(circles, 2):
        assert np.hypot(x - x2, y - y2) > 1.2 * radius


def test_a_chain_is_drawn_as_a_line_from_its_first_node():
    _, (circles, *_) = drawn("chain", 8)
    xs, ys = [x for x, *_ in circles], [y for _, y, *_ in circles]
    assert min(np.diff(xs)) > 50 and np.ptp(ys) < 5


def test_neighbours_of_a_tree_are_drawn_closer_than_other_nodes():
    graph, (circles, *_) = drawn("tree", 40)
    place = dict(zip(graph.nodes, circles, strict=True))
    far = {pair: np.hypot(*np.subtract(place[pair[0]][:2], place[pair[1]][:2]))
           for pair in combinations(sorted(graph.nodes), 2)}  # fmt: skip
    joined = [far[edge] for edge in graph.edges]
    assert min(joined) > 31 and max(joined) < 124  # an edge has about 62 pixels
    assert np.mean([*far.values()]) > 3 * np.mean(joined)


def test_nodes_are_coloured_by_their_errors_with_a_legend():
    errors = {"node-1": 0.1, "node-2": 0.149, "node-3": 0.2}
    _, (circles, titles, texts, _) = drawn("chain", 4, errors)
    assert [circle[-1] for circle in circles] == [SHADES[0], SHADES[2], SHADES[-1], PLAIN]
    assert texts[4:] == [
        "error 0.100 to 0.120", "error 0.140 to 0.160", "error 0.180 to 0.200", "error not known",
    ]  # fmt: skip
    assert "node-2: error 0.1490" in titles


def test_errors_that_differ_by_little_have_close_shades_and_each_shade_is_in_the_legend():
    errors = {"node-1": 0.061, "node-2": 0.070, "node-3": 0.072}
    _, (circles, _, texts, _) = drawn("chain", 3, errors)
    assert [circle[-1] for circle in circles] == [SHADES[0], SHADES[0], SHADES[1]]
    assert texts[3:] == ["error 0.061 to 0.071", "error 0.071 to 0.081"]


def test_equal_errors_have_one_shade():
    _, (circles, _, texts, _) = drawn("ring", 3, dict.fromkeys(node_names(3), 0.25))
    assert {circle[-1] for circle in circles} == {SHADES[0]}
    assert texts[3:] == ["error 0.250"]


def test_an_error_that_is_not_a_number_is_refused_with_the_name_of_its_node():
    with pytest.raises(ValueError, match="node-2 must be finite, got nan"):
        drawn("chain", 3, {"node-1": 0.1, "node-2": float("nan")})


@pytest.mark.parametrize("nodes", ["a", "ab", ["<&>", "b", 'a very long "name" of a node']])
def test_networks_without_edges_and_names_with_markup_are_drawn(nodes):
    circles, titles, *_ = read(draw_network(Graph.of(nodes, [])))
    assert sorted(titles) == sorted(nodes)
    assert len({circle[:2] for circle in circles}) == len(nodes)
