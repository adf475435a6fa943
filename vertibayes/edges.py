"""Edges of a graph, and how sure each is."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Edge: TypeAlias = tuple[str, str]


class ArcStrength(NamedTuple):
    """How sure an edge is.

    Attributes
    ----------
    parent, child : str
        The nodes: as learned, or else in the more frequent direction.
    strength : float
        The share of the samples in which the nodes are adjacent.
    direction : float
        The share of these in which the edge points from parent to child; an edge that can be
        reversed without a change of the score counts one half. One half if no sample has the edge.
    gain : float or None
        By how much the parent raises the BIC of the learned family, in nats. None if it is not
        known, or the edge was not learned.
    """

    parent: str
    child: str
    strength: float
    direction: float
    gain: float | None
