"""Edges of a graph, and how sure each is."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Edge: TypeAlias = tuple[str, str]


class ArcStrength(NamedTuple):
    """How sure an edge is."""

    # The nodes: as learned, or else in the more frequent direction.
    parent: str
    child: str
    strength: float  # the share of the samples in which the nodes are adjacent
    direction: float  # the share of these in which the edge points from parent to child
    gain: float | None  # by how much the parent raises the BIC of the learned family, in nats
