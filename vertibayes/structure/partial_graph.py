"""Graphs whose edges have a direction only in part: Meek's rules, and their extension to a DAG."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.graphs import Mask, elements


@dataclass(frozen=True)
class Extension:
    """A DAG with the edges of a partially directed graph."""

    structure: Structure  # the DAG; nodes and parents are sorted by name
    reversed_arrows: tuple[Edge, ...]
    dropped: tuple[Edge, ...]


class _Cost(NamedTuple):
    """What it costs to make a node a sink: sets of its neighbours, fewest first."""

    dropped: Mask  # children whose arrow the constraints do not allow in the other direction
    turned: Mask  # the other children
    faults: Mask  # undirected neighbours with which it makes a collider


class PartialGraph:
    """A graph with arrows and undirected edges.

    Sets of nodes are bit masks over the sorted names, so that whatever comes first does so by name.
    """

    def __init__(self, names: Iterable[str], pairs: Iterable[Edge]) -> None:
        self.names = tuple(sorted(names))
        self._place = {name: place for place, name in enumerate(self.names)}
        self._parents, self._children, self._open = ([0] * len(self.names) for _ in range(3))
        for x, y in pairs:
            a, b = self._place[x], self._place[y]
            self._open[a] |= 1 << b
            self._open[b] |= 1 << a

    @property
    def arrows(self) -> list[Edge]:
        """The arrows as (parent, child), sorted."""
        names = self.names
        return [
            (parent, names[b])
            for a, parent in enumerate(names)
            for b in elements(self._children[a])
        ]

    @property
    def undirected(self) -> list[Edge]:
        """The undirected edges, each sorted by name."""
        names = self.names
        return [
            (x, names[b]) for a, x in enumerate(names) for b in elements(self._open[a]) if a < b
        ]

    def orient(self, parent: str, child: str) -> None:
        """Make an undirected edge an arrow; an arrow stays as it is."""
        self._orient(self._place[parent], self._place[child])

    def keep(self, constraints: Constraints) -> None:
        """Orient the undirected edges of which constraints allow one direction only."""
        for x, y in self.undirected:
            for parent, child in ((x, y), (y, x)):
                if is_fixed(constraints, parent, child):
                    self.orient(parent, child)

    def close(self) -> None:
        """Orient whatever follows from the arrows by Meek's rules 1 to 4.

        The undirected edges that are left have both directions among the DAGs that have the same
        neighbours, arrows and unshielded colliders. If there is no such DAG, what is oriented
        depends on the order of names, and on nothing else.

        References
        ----------
        Meek (1995), Causal inference and causal explanation with background knowledge.
        https://arxiv.org/abs/1302.4972
        """
        changed = True
        while changed:
            changed = False
            for a in range(len(self.names)):
                for b in elements(self._open[a]):
                    if self._follows(a, b):
                        self._orient(a, b)
                        changed = True

    def extension(self, constraints: Constraints) -> Extension:
        """Return a DAG with the edges of the graph that keeps constraints.

        Nodes are taken from the graph one by one: a node without children whose undirected edges
        make no collider, of several the last by name. If no node qualifies, the node is taken of
        which the fewest arrows must be dropped, then the fewest reversed, then the fewest edges
        make a collider. A required arrow is neither dropped nor reversed.

        References
        ----------
        Dor and Tarsi (1992), A simple algorithm to construct a consistent extension of a partially
        oriented graph. UCLA, Cognitive Systems Laboratory, technical report R-185.
        """
        left = (1 << len(self.names)) - 1
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(self.names, ())
        turned: list[Edge] = []
        dropped: list[Edge] = []
        while left:
            sink, cost = self._sink(left, constraints)
            node = self.names[sink]
            taken = (self._parents[sink] | self._open[sink] | cost.turned) & left
            parents[node] = tuple(self.names[p] for p in elements(taken))
            dropped += [(node, self.names[c]) for c in elements(cost.dropped)]
            turned += [(node, self.names[c]) for c in elements(cost.turned)]
            left ^= 1 << sink
        return Extension(Structure(parents), tuple(sorted(turned)), tuple(sorted(dropped)))

    def _sink(self, left: Mask, constraints: Constraints) -> tuple[int, _Cost]:
        """Return the next node to take, and its cost.

        Of required arrows there is no cycle, so that some node has none to others that are left.
        """
        best: tuple[tuple[int, ...], int, _Cost] | None = None
        for node in reversed(list(elements(left))):
            children = self._children[node] & left
            if not children and not self._faults(node, left):
                return node, _Cost(0, 0, 0)
            cost = self._cost(node, left, constraints)
            if cost is None:
                continue
            key = tuple(mask.bit_count() for mask in cost)
            if best is None or key < best[0]:
                best = key, node, cost
        assert best is not None
        return best[1:]

    def _cost(self, node: int, left: Mask, constraints: Constraints) -> _Cost | None:
        """Return the cost of a node; None if it has a required arrow to one that is left."""
        name, dropped, turned = self.names[node], 0, 0
        for child in elements(self._children[node] & left):
            if (name, self.names[child]) in constraints.required:
                return None
            if constraints.allows(self.names[child], name):
                turned |= 1 << child
            else:
                dropped |= 1 << child
        return _Cost(dropped, turned, self._faults(node, left))

    def _faults(self, node: int, left: Mask) -> Mask:
        """Return the undirected neighbours of a node that are not neighbours of all the others."""
        near = self._near(node) & left
        faults = 0
        for other in elements(self._open[node] & left):
            if near & ~self._near(other) & ~(1 << other):
                faults |= 1 << other
        return faults

    def _near(self, node: int) -> Mask:
        return self._parents[node] | self._children[node] | self._open[node]

    def _follows(self, a: int, b: int) -> bool:
        """Whether the undirected edge a - b must be the arrow a -> b."""
        near_b = self._near(b)
        if self._parents[a] & ~near_b or self._children[a] & self._parents[b]:
            return True  # rules 1 and 2
        both = self._open[a] & self._parents[b]
        if any(both & ~self._near(c) & ~(1 << c) for c in elements(both)):
            return True  # rule 3
        apart = self._open[a] & ~near_b & ~(1 << b)
        middle = self._parents[b] & self._near(a) if apart else 0
        return any(self._parents[c] & apart for c in elements(middle))  # rule 4

    def _orient(self, parent: int, child: int) -> None:
        if self._open[parent] >> child & 1:
            self._open[parent] ^= 1 << child
            self._open[child] ^= 1 << parent
            self._children[parent] |= 1 << child
            self._parents[child] |= 1 << parent


def is_fixed(constraints: Constraints, parent: str, child: str) -> bool:
    """Whether an edge between two nodes can only have this direction."""
    if (parent, child) in constraints.required:
        return True
    return constraints.allows(parent, child) and not constraints.allows(child, parent)
