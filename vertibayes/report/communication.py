"""Draw a communication network as SVG, its nodes coloured by the errors of their models.

Nodes lie as far apart as their distance in the network (stress majorization), or on a circle if
each node has two neighbours or more, or there are very many nodes.

References
----------
.. [1] E. R. Gansner, Y. Koren, S. North (2004). Graph drawing by stress majorization. Section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from vertibayes.drawing.svg import EDGE, HEAD, LEGEND, MARGIN, legend, legend_width
from vertibayes_protocols.calibration.graph import Graph

MOST_NAMED = 60  # nodes whose names are shown
LONGEST = 14  # characters of a name
MOST_MAJORIZED, STEPS = 600, 100  # nodes, and steps of the layout; its time grows with nodes^2
SHADES = ("#fff7e0", "#fdd9a0", "#f4a261", "#d9683f", "#a32a2a")  # from the lowest error on
LEAST_SPAN = 0.05  # of the errors that all shades span: close errors have close shades
PLAIN = "#8ecae6"  # a node without an error


def draw_network(graph: Graph, errors: Mapping[str, float] | None = None) -> str:
    """Return a drawing of a communication network."""
    errors = errors or {}
    for node, error in errors.items():
        if not isfinite(error):
            raise ValueError(f"the error of the node {node} must be finite, got {error}")
    named = len(graph.nodes) <= MOST_NAMED
    radius, length, aside = (9.0, 62.0, 30.0) if named else (5.5, 24.0, 0.0)
    places = _layout(graph) * length
    places += MARGIN + radius + np.array([aside, 0.0]) - places.min(axis=0)
    fills = _fills(errors)
    names = _legend(fills, errors, len(graph.nodes))
    width = max(places[:, 0].max() + radius + aside, sum(map(legend_width, names))) + MARGIN
    height = places[:, 1].max() + radius + 2 * MARGIN + (LEGEND if names else 0)
    at = dict(zip(graph.nodes, places.tolist(), strict=True))
    body = [_edge(one, other, at) for one, other in graph.edges]
    body += [_circle(node, at[node], radius, fills.get(node), errors.get(node)) for node in at]
    body += [_name(node, at[node], radius) for node in at if named]
    body += legend(names, height - MARGIN - 14)
    return "\n".join([HEAD.format(width=width, height=height), *body, "</svg>", ""])


def _layout(graph: Graph) -> NDArray[np.float64]:
    """Return a place for each node, neighbours about 1 apart: shape (nodes, 2)."""
    count = len(graph.nodes)
    circle = _circular(count)
    if not 2 < count <= MOST_MAJORIZED or min(map(len, graph.neighbours.values())) > 1:
        return circle
    distances = _distances(graph)
    places = _majorized(distances, _start(distances, circle))
    places -= places.mean(axis=0)
    _, axes = np.linalg.eigh(places.T @ places)
    turned = places @ axes[:, ::-1]  # the longest axis is horizontal, the first node left and up
    return np.asarray(turned * np.where(turned[0] > 0, -1, 1))


def _circular(count: int) -> NDArray[np.float64]:
    """Return places on a circle, one apart, the first at the top."""
    angles = 2 * np.pi * np.arange(count) / count
    radius = 0.5 / np.sin(np.pi / max(count, 2))
    return np.asarray(radius * np.stack([np.sin(angles), -np.cos(angles)], axis=1))


def _distances(graph: Graph) -> NDArray[np.float64]:
    """Return the edges on the shortest path between nodes; parts of a network lie apart."""
    place = {node: number for number, node in enumerate(graph.nodes)}
    distances = np.full((len(place), len(place)), np.inf)
    np.fill_diagonal(distances, 0.0)
    for one, other in graph.edges:
        distances[place[one], place[other]] = distances[place[other], place[one]] = 1.0
    for via in range(len(place)):
        np.minimum(distances, distances[:, via, None] + distances[via], out=distances)
    apart = np.isinf(distances)
    distances[apart] = distances[~apart].max() + 2
    return distances


def _start(distances: NDArray[np.float64], circle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the principal coordinates of the nodes; the circle separates those that coincide."""
    centring = np.eye(len(distances)) - 1 / len(distances)
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    return np.asarray(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0)) + 0.01 * circle)


def _majorized(distances: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places whose distances come close to those given, relatively ([1]_, equation 7)."""
    off = ~np.eye(len(distances), dtype=bool)
    weights = np.divide(1.0, distances**2, out=np.zeros_like(distances), where=off)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    forces, places = weights * distances, start
    for _ in range(STEPS):
        actual = np.hypot(*(places.T[:, :, None] - places.T[:, None]))
        pull = np.divide(forces, actual, out=np.zeros_like(forces), where=actual > 0)
        places = inverse @ (pull.sum(axis=1)[:, None] * places - pull @ places)
    return places


def _fills(errors: Mapping[str, float]) -> dict[str, str]:
    """Return the shade of each node that has an error."""
    low, step = _scale(errors)
    last = len(SHADES) - 1
    return {node: SHADES[min(int((e - low) / step), last)] for node, e in errors.items()}


def _scale(errors: Mapping[str, float]) -> tuple[float, float]:
    """Return the lowest error, and the errors that one shade spans."""
    low = min(errors.values(), default=0.0)
    return low, max(max(errors.values(), default=0.0) - low, LEAST_SPAN) / len(SHADES)


def _legend(fills: Mapping[str, str], errors: Mapping[str, float], count: int) -> dict[str, str]:
    """Return the range of errors of each shade that is there, or the one error, and the shade."""
    names, (low, step) = {}, _scale(errors)
    for place, shade in enumerate(SHADES):
        if shade in fills.values():
            least = low + place * step
            equal = len({*errors.values()}) == 1
            shown = f"{low:.3f}" if equal else f"{least:.3f} to {least + step:.3f}"
            names[f"error {shown}"] = shade
    if errors and len(errors) < count:
        names["error not known"] = PLAIN
    return names


def _edge(one: str, other: str, at: Mapping[str, list[float]]) -> str:
    (x1, y1), (x2, y2) = at[one], at[other]
    return (
        f'<g class="edge" stroke="{EDGE}" stroke-opacity="0.6"><title>'
        f'{escape(f"{one} - {other}")}</title><path d="M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}"/></g>'
    )


def _circle(
    node: str, at: list[float], radius: float, fill: str | None, error: float | None
) -> str:
    title = escape(node) if error is None else f"{escape(node)}: error {error:.4f}"
    return (
        f'<g><title>{title}</title><circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}" '
        f'fill="{fill or PLAIN}" stroke="{EDGE}"/></g>'
    )


def _name(node: str, at: list[float], radius: float) -> str:
    shown = node if len(node) <= LONGEST else f"{node[: LONGEST - 6]}…{node[-5:]}"
    return (
        f'<text x="{at[0]:.1f}" y="{at[1] + radius + 11:.1f}" text-anchor="middle" font-size="10" '
        f'stroke="white" stroke-width="3" paint-order="stroke">{escape(shown)}</text>'
    )
