"""Edges of a graph, and how sure each is."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Edge: TypeAlias = tuple[str, str]


class ArcStrength(NamedTuple):
    """How sure an edge is."""

    parent: str  # parent and child are as learned, or else in the more frequent direction
    child: str
    strength: float  # the share of the samples in which the nodes are adjacent
    # The share of these in which the edge points from parent to child; a reversible edge counts one
    # half. One half if no sample has the edge.
    direction: float
    # By how much the parent raises the BIC of the learned family, in nats; None if it is not known,
    # or the edge was not learned.
    gain: float | None
