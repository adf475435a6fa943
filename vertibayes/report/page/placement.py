"""Where the nodes and edges of a run's structure are drawn, and what is known of the edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vertibayes.dag import Structure
from vertibayes.drawing.layout import Size
from vertibayes.drawing.layout.placement import Point
from vertibayes.drawing.svg import place
from vertibayes.edges import ArcStrength, Edge
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.results import Results

MOST_ARROWS = 10_000  # of a drawing; the time of a layout grows with their square


class PlacedNetwork(NamedTuple):
    """A structure with places."""

    structure: Structure
    names: tuple[str, ...]
    lines: list[list[str]]  # the lines of text of each node's box
    boxes: list[Size]
    centres: list[Point]
    paths: Mapping[Edge, list[Point]]
    size: Size  # of the whole drawing
    strengths: Mapping[Edge, ArcStrength]  # how sure each edge is; empty if that is not known
    gains: Mapping[Edge, float]
    compelled: frozenset[Edge] | None  # the edges whose direction the data show

    def is_compelled(self, edge: Edge) -> bool | None:
        """Whether the data show the direction of an edge; None if that is not known."""
        return None if self.compelled is None else edge in self.compelled


def placed_network(results: Results) -> PlacedNetwork:
    """Return the structure of a run with places; without nodes if the folder has none."""
    content = results.files["structure.json"]
    structure = _structure(content)
    placed = place(structure)
    edges = [(entry[0].text, entry[1].text) for entry in content["edges"].each()]
    names = structure.nodes
    gains = dict(zip(edges, _numbers(content["gain"]), strict=False))
    return PlacedNetwork(
        structure,
        names,
        placed.lines,
        placed.boxes,
        placed.layout.centres,
        {(names[p], names[c]): points for (p, c), points in placed.layout.paths.items()},
        placed.layout.size,
        _strengths(content, edges, gains),
        gains,
        _compelled(content),
    )


def _structure(content: Entry) -> Structure:
    """Return the structure of structure.json."""
    edges = [(entry[0].text, entry[1].text) for entry in content["edges"].each()]
    if len(edges) > MOST_ARROWS:
        most = f"{len(edges):,} arrows are too many to be drawn; at most {MOST_ARROWS:,}"
        raise ValueError(f"{content.file}: {most}")
    try:
        return Structure.of(content["nodes"].texts(), edges)
    except ValueError as error:
        raise ValueError(f"{content.file}: {error}") from None


def _strengths(
    content: Entry, edges: list[Edge], gains: Mapping[Edge, float]
) -> dict[Edge, ArcStrength]:
    strengths, directions = _numbers(content["strength"]), _numbers(content["direction"])
    if not strengths or len(strengths) != len(edges) or len(directions) != len(edges):
        return {}
    return {
        edge: ArcStrength(*edge, strength, direction, gains.get(edge))
        for edge, strength, direction in zip(edges, strengths, directions, strict=True)
    }


def _numbers(entries: Entry) -> list[float]:
    return [float(entry.value) for entry in entries.each() if entry.is_number]


def _compelled(content: Entry) -> frozenset[Edge] | None:
    """Return the compelled edges; None if the structure was not learned without an order."""
    if not content["algorithm"].exists or not content["compelled"].exists:
        return None
    return frozenset((entry[0].text, entry[1].text) for entry in content["compelled"].each())
