"""A layered drawing of a structure as SVG, nodes coloured by site (Sugiyama et al. 1981).

Parents stand above their children; an edge over several layers bends at a point in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from vertibayes.network import Structure

COLOURS = (
    "#8ecae6", "#ffb703", "#95d5b2", "#e5989b", "#cdb4db", "#d9c5a0", "#a8dadc", "#f4a261",
)  # fmt: skip
NODE_HEIGHT, LAYER_HEIGHT, GAP, MARGIN, LETTER = 26.0, 76.0, 18.0, 24.0, 8.0
SWEEPS = 24

Bend: TypeAlias = tuple[str, str, int]  # an edge's point in a layer
Item: TypeAlias = str | Bend


class Layout(NamedTuple):
    """Where nodes and bends lie: centre, and the width of each."""

    layers: list[list[Item]]
    x: dict[Item, float]
    width: dict[Item, float]


def draw(structure: Structure, sites: Mapping[str, str] | None = None) -> str:
    """Return a drawing of a structure.

    Parameters
    ----------
    structure : Structure
    sites : mapping of str to str, optional
        Of each node the site that holds it.

    Returns
    -------
    svg : str
        The text of an SVG file.
    """
    layout = _layout(structure)
    level = {item: depth for depth, layer in enumerate(layout.layers) for item in layer}
    names = sorted(set((sites or {}).values()))
    colour = {site: COLOURS[i % len(COLOURS)] for i, site in enumerate(names)}
    right = max((layout.x[i] + layout.width[i] / 2 for i in level), default=0) + MARGIN
    right = max(right, MARGIN + sum(30 + LETTER * len(site) for site in names))
    height = MARGIN * 2 + LAYER_HEIGHT * max(len(layout.layers) - 1, 0) + NODE_HEIGHT
    height += 30 if names else 0
    body = [_edge(edge, layout, level) for edge in structure.edges]
    for node in structure.nodes:
        fill = colour[sites[node]] if sites else COLOURS[0]
        body.append(_node(node, layout, level[node], fill))
    body += _legend(colour, height)
    return "\n".join([_HEAD.format(width=right, height=height), *body, "</svg>", ""])


_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12">
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>
<rect width="100%" height="100%" fill="white"/>"""


def _layout(structure: Structure) -> Layout:
    level: dict[Item, int] = {}
    for node in structure.order():
        level[node] = max((level[p] + 1 for p in structure.parents[node]), default=0)
    for node in structure.nodes:
        children = [level[child] for parent, child in structure.edges if parent == node]
        if children and not structure.parents[node]:
            level[node] = min(children) - 1  # a root stands just above its first child
    layers: list[list[Item]] = [[] for _ in range(max(level.values(), default=0) + 1)]
    for node in structure.nodes:
        layers[level[node]].append(node)
    neighbours: dict[Item, list[Item]] = {node: [] for node in structure.nodes}
    for parent, child in structure.edges:
        bends = _bends(parent, child, level)
        for bend in bends:
            layers[bend[2]].append(bend)
            neighbours[bend] = []
        chain: list[Item] = [parent, *bends, child]
        for above, below in pairwise(chain):
            neighbours[above].append(below)
            neighbours[below].append(above)
    width = {i: 6.0 if isinstance(i, tuple) else 16 + LETTER * len(i) for la in layers for i in la}
    x = _spread(layers, neighbours, width)
    return Layout(layers, x, width)


def _bends(parent: str, child: str, level: Mapping[Item, int]) -> list[Bend]:
    """Return an edge's points in the layers between its ends."""
    return [(parent, child, at) for at in range(level[parent] + 1, level[child])]


def _spread(
    layers: list[list[Item]], neighbours: Mapping[Item, Sequence[Item]], width: Mapping[Item, float]
) -> dict[Item, float]:
    """Order each layer by the mean place of its neighbours, sweep after sweep, and pack it."""
    x: dict[Item, float] = {}
    for layer in layers:
        _pack(layer, {item: float(i) for i, item in enumerate(layer)}, width, x)
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wish = {i: _mean([x[n] for n in neighbours[i]], x[i]) for i in layer}
            layer.sort(key=lambda item: wish[item])
            _pack(layer, wish, width, x)
    left = min((x[item] - width[item] / 2 for item in x), default=0.0)
    return {item: at - left + MARGIN for item, at in x.items()}


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _pack(
    layer: Sequence[Item],
    wish: Mapping[Item, float],
    width: Mapping[Item, float],
    x: dict[Item, float],
) -> None:
    """Place items near their wishes, in order and apart; the row is centred on its wishes."""
    at = float("-inf")
    for item in layer:
        at = max(wish[item], at + width[item] / 2)
        x[item] = at
        at += width[item] / 2 + GAP
    shift = _mean([wish[item] - x[item] for item in layer], 0.0)
    for item in layer:
        x[item] += shift


def _y(level: int) -> float:
    return MARGIN + NODE_HEIGHT / 2 + LAYER_HEIGHT * level


def _edge(edge: tuple[str, str], layout: Layout, level: Mapping[Item, int]) -> str:
    parent, child = edge
    items: list[Item] = [parent, *_bends(parent, child, level)]
    points = [(layout.x[item], _y(level[item])) for item in items]
    points[0] = (points[0][0], points[0][1] + NODE_HEIGHT / 2)
    points.append((layout.x[child], _y(level[child]) - NODE_HEIGHT / 2))
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#tip)"/>'


def _node(node: str, layout: Layout, level: int, fill: str) -> str:
    width, x, y = layout.width[node], layout.x[node], _y(level)
    return (
        f'<g><rect x="{x - width / 2:.1f}" y="{y - NODE_HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{NODE_HEIGHT}" rx="8" fill="{fill}" stroke="#555"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(node)}</text></g>'
    )


def _legend(colour: Mapping[str, str], height: float) -> list[str]:
    parts, x = [], MARGIN
    for site, fill in colour.items():
        parts.append(
            f'<rect x="{x}" y="{height - 30}" width="14" height="14" rx="4" fill="{fill}" '
            f'stroke="#555"/><text x="{x + 19}" y="{height - 18.5}">{escape(site)}</text>'
        )
        x += 30 + LETTER * len(site)
    return parts
