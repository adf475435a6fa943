import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.dag import Structure
from vertibayes.drawing.layout.crossings import count_crossings, order_layers
from vertibayes.drawing.layout.layers import layer
from vertibayes.drawing.layout.placement import Size, lay_out
from vertibayes.drawing.svg import draw, text_width

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(draw_):
    """Sizes of boxes and the edges of any directed acyclic graph over them."""
    nodes = draw_(st.integers(1, 14))
    pairs = list(combinations(range(nodes), 2))
    chosen = draw_(st.lists(st.sampled_from(pairs), unique=True, max_size=40)) if pairs else []
    name = draw_(st.permutations(range(nodes)))
    widths = draw_(st.lists(st.integers(20, 260), min_size=nodes, max_size=nodes))
    sizes = [Size(width, 26 + 14 * (width % 3)) for width in widths]
    return sizes, [(name[a], name[b]) for a, b in chosen]


def dense(nodes=40, edges=94, seed=7):
    generator = np.random.default_rng(seed)
    pairs = list(combinations(range(nodes), 2))
    chosen = generator.choice(len(pairs), edges, replace=False)
    return [Size(70, 26)] * nodes, [pairs[i] for i in sorted(chosen)]


def boxes(layout, sizes):
    return [(x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            for (x, y), (w, h) in zip(layout.centres, sizes, strict=True)]  # fmt: skip


def assert_well_laid_out(sizes, arcs):
    layout = lay_out(sizes, arcs)
    found = boxes(layout, sizes)
    for (a, b, c, d), (e, f, g, h) in combinations(found, 2):
        assert c < e + 1e-6 or g < a + 1e-6 or d < f + 1e-6 or h < b + 1e-6, "two boxes overlap"
    assert set(layout.paths) == set(arcs)
    for (parent, child), path in layout.paths.items():
        heights = [y for _, y in path]
        assert min(np.diff(heights)) > -1e-6, "edges lead down"
        assert path[0][1] == pytest.approx(found[parent][3])
        assert path[-1][1] == pytest.approx(found[child][1])
        for node, (x, _) in ((parent, path[0]), (child, path[-1])):
            assert found[node][0] < x < found[node][2], "an edge begins and ends at its boxes"
        for (x, top), (_, bottom) in zip(path[2:-2:2], path[3:-2:2], strict=True):
            for left, low, right, high in found:
                inside = left < x < right and low < bottom - 1e-6 and top < high - 1e-6
                assert not inside, "an edge leads through a box"
    everything = [*found, *((x, y, x, y) for path in layout.paths.values() for x, y in path)]
    low, high = np.min(everything, axis=0)[:2], np.max(everything, axis=0)[2:]
    assert low == pytest.approx([0, 0]) and high == pytest.approx(layout.size), "it fits"


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_boxes_are_apart_and_edges_lead_down_around_them(graph):
    assert_well_laid_out(*graph)


def test_a_dense_network_and_one_that_needs_many_rows_are_well_laid_out():
    assert_well_laid_out(*dense())
    star = [Size(90, 26)] * 40
    assert_well_laid_out(star, [(0, child) for child in range(1, 40)])
    assert_well_laid_out(star, [(parent, 39) for parent in range(39)])
    assert_well_laid_out(star, [])


def test_equal_structures_give_equal_drawings(alarm_network):
    structure = alarm_network.structure
    assert draw(structure) == draw(Structure(dict(structure.parents)))
    assert lay_out(*dense()) == lay_out(*dense())


def test_alarm_fills_its_canvas_with_few_crossings(alarm_network):
    structure = alarm_network.structure
    number = {name: place for place, name in enumerate(structure.nodes)}
    arcs = [(number[parent], number[child]) for parent, child in structure.edges]
    sizes = [Size(text_width(name) + 24, 26) for name in structure.nodes]
    layout = lay_out(sizes, arcs)
    covered = np.zeros((6, 6), bool)  # parts of the canvas with a box
    for left, top, right, bottom in boxes(layout, sizes):
        for x, y in ((left, top), (right, bottom)):
            column, row = int(6 * x / layout.size.width), int(6 * y / layout.size.height)
            covered[min(row, 5), min(column, 5)] = True
    assert covered.mean() > 0.75
    graph = layer(len(sizes), arcs, lambda node: sizes[node].width, layout.size.width)
    assert count_crossings(graph, order_layers(graph)) <= 12
    assert count_crossings(graph, graph.layers) > 30, "before they are ordered"


def test_crossings_are_counted():
    square = layer(4, [(0, 2), (0, 3), (1, 2), (1, 3)], lambda node: 10, 100)
    assert count_crossings(square, [[0, 1], [2, 3]]) == 1
    crossed = layer(5, [(0, 3), (1, 2), (4, 2), (4, 3)], lambda node: 10, 100)
    assert count_crossings(crossed, [[0, 1, 4], [2, 3]]) == 2
    assert count_crossings(crossed, order_layers(crossed)) == 0


def test_a_branch_stands_near_what_it_leads_to():
    # 0 -> 1 -> 2 -> 3 -> 4 and a branch 5 -> 6 that ends in 4.
    arcs = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 4)]
    graph = layer(7, arcs, lambda node: 10, 100)
    assert graph.layers[2:4] == [[2, 5], [3, 6]]
    assert len(graph.up) == 7, "no edge is longer than a layer"


def test_wide_layers_are_broken():
    sizes = [Size(90, 26)] * 61
    flat = lay_out(sizes, [(0, child) for child in range(1, 61)])
    assert flat.size.width < 60 * (90 + 18) * 0.6
    assert len({y for _, y in flat.centres}) > 3
    grid = lay_out(sizes, [])
    assert grid.size.width < 20 * 90 and len({y for _, y in grid.centres}) > 4


def test_the_drawing_names_nodes_edges_and_sites():
    structure = Structure.of(["a<b", 'q"&', "lone"], [("a<b", 'q"&')])
    root = ET.fromstring(draw(structure, {"a<b": "<north>", 'q"&': "south", "lone": "south"}))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert sorted(texts) == sorted(["a<b", 'q"&', "lone", "<north>", "south"])
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert sorted(titles) == sorted(["a<b", 'q"&', "lone", 'a<b → q"&'])
    fills = [r.get("fill") for r in root.iter(f"{SVG}rect")]
    assert fills[1:4].count(fills[2]) == 2, "both nodes of a site have its colour"


def test_edges_of_dense_networks_are_coloured_by_parent():
    names = [f"v{i}" for i in range(40)]
    edges = [(names[a], names[b]) for a, b in dense()[1]]

    def strokes(structure):
        root = ET.fromstring(draw(structure))
        found = {}
        for group in root.iter(f"{SVG}g"):
            if group.get("class") == "edge":
                parent = group.find(f"{SVG}title").text.split(" ")[0]
                found.setdefault(parent, set()).add(group.get("stroke"))
        return found

    by_parent = strokes(Structure.of(names, edges))
    assert all(len(colours) == 1 for colours in by_parent.values())
    assert len(set.union(*by_parent.values())) > 5
    assert len(set.union(*strokes(Structure.of(names, edges[:40])).values())) == 1


def test_long_names_are_broken_into_lines_and_very_long_ones_shortened():
    name = "age at the first visit to the clinic in years"
    longest = "x" * 300
    root = ET.fromstring(draw(Structure.of([name, longest, "wide 血圧の平均値"], [])))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts[:2] == ["age at the first visit to ", "the clinic in years"]
    assert len(texts) == 6 and "…" in "".join(texts[2:5])
    assert longest in [element.text for element in root.iter(f"{SVG}title")]
    assert float(root.get("width")) < 1000


def test_a_structure_without_nodes_is_drawn():
    assert ET.fromstring(draw(Structure({}))).get("width") == "32"
