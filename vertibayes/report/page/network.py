"""The network of structure.json: what is known of its arrows, and its drawing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vertibayes.dag import Structure
from vertibayes.drawing.edge_styles import FEW_NATS, is_doubtful
from vertibayes.drawing.svg import Mark, draw, marks_of
from vertibayes.edges import ArcStrength, Edge
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.results import Results

MOST_ARROWS = 10_000  # of a drawing; the time of a layout grows with their square


class ShownNetwork(NamedTuple):
    """A structure, the sites of its variables, and what is known of its edges."""

    structure: Structure
    sites: Mapping[str, str]
    strengths: Mapping[Edge, ArcStrength]  # how sure each edge is; empty if that is not known
    gains: Mapping[Edge, float]
    compelled: frozenset[Edge] | None  # the edges whose direction the data show

    @classmethod
    def of(cls, results: Results) -> ShownNetwork:
        """Return the network of a run; without nodes if the folder has none."""
        content = results.files["structure.json"]
        edges = _edges(content["edges"])
        if len(edges) > MOST_ARROWS:
            most = f"{len(edges):,} arrows are too many to be drawn; at most {MOST_ARROWS:,}"
            raise ValueError(f"{content.file}: {most}")
        try:
            structure = Structure.of(content["nodes"].texts(), edges)
        except ValueError as error:
            raise ValueError(f"{content.file}: {error}") from None
        gains = dict(zip(edges, _numbers(content["gain"]), strict=False))
        known = content["algorithm"].exists and content["compelled"].exists
        compelled = frozenset(_edges(content["compelled"])) if known else None
        return cls(structure, results.sites, _strengths(content, edges, gains), gains, compelled)

    @property
    def reversible(self) -> list[Edge]:
        """The edges whose direction the data do not show, if that is known."""
        if self.compelled is None:
            return []
        return [edge for edge in self.structure.edges if edge not in self.compelled]

    @property
    def doubtful(self) -> list[Edge]:
        """The edges that few samples have, or that gain little."""
        return [
            edge
            for edge in self.structure.edges
            if self.gains.get(edge, FEW_NATS) < FEW_NATS
            or (edge in self.strengths and is_doubtful(self.strengths[edge]))
        ]

    @property
    def drawing(self) -> str:
        """The drawing as an SVG element, with escaped names."""
        edges, of = self.structure, self.sites
        return draw(edges, of, strengths=self.strengths, reversible=self.reversible, in_page=True)

    @property
    def marks(self) -> Mapping[str, Mark]:
        """The letter and the colour of each site."""
        return marks_of(self.sites)

    def held_by(self, site: str) -> list[str]:
        """Return the variables of a site."""
        return [name for name, of in self.sites.items() if of == site]


def _edges(content: Entry) -> list[Edge]:
    return [(edge[0].text, edge[1].text) for edge in content.each()]


def _strengths(
    content: Entry, edges: list[Edge], gains: Mapping[Edge, float]
) -> dict[Edge, ArcStrength]:
    strengths, directions = _numbers(content["strength"]), _numbers(content["direction"])
    if not len(strengths) == len(directions) == len(edges):
        return {}
    known = zip(edges, strengths, directions, strict=True)
    return {edge: ArcStrength(*edge, share, way, gains.get(edge)) for edge, share, way in known}


def _numbers(entries: Entry) -> list[float]:
    return [float(entry.value) for entry in entries.each() if entry.is_number]
