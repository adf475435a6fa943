"""A communication network: the neighbours of each node, and their weights in its mean.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Section II-C, Algorithm 2.
.. [2] L. Xiao, S. Boyd, S. Lall (2005). A scheme for robust distributed sensor fusion based on
   average consensus. IPSN. Metropolis weights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

from vertibayes_mpc.rounds import Party


@dataclass(frozen=True)
class Graph:
    """An undirected communication network.

    Examples
    --------
    >>> chain = Graph.of(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> chain.neighbours["b"]
    ('a', 'c')
    >>> chain.mean_weights["a"]
    {'a': 0.5, 'b': 0.5}
    """

    neighbours: Mapping[Party, tuple[Party, ...]]

    def __post_init__(self) -> None:
        if not self.neighbours:
            raise ValueError("a communication network needs at least one node")
        others = {node: set(peers) for node, peers in self.neighbours.items()}
        for node, peers in self.neighbours.items():
            if node in others[node]:
                raise ValueError(f"the node {node} is its own neighbour")
            if len(others[node]) < len(peers):
                twice = next(one for one, other in pairwise(sorted(peers)) if one == other)
                raise ValueError(f"the node {node} has the neighbour {twice} twice")
            for peer in peers:
                if peer not in others:
                    raise ValueError(f"the node {node} has a neighbour that is not a node: {peer}")
                if node not in others[peer]:
                    raise ValueError(f"{peer} is a neighbour of {node}, but {node} not of {peer}")

    @classmethod
    def of(cls, nodes: Iterable[Party], edges: Iterable[tuple[Party, Party]]) -> Self:
        """Return the network of some edges."""
        peers: dict[Party, dict[Party, None]] = {}
        for node in nodes:
            if node in peers:
                raise ValueError(f"the node {node} appears twice")
            peers[node] = {}
        for one, other in edges:
            if missing := {one, other} - set(peers):
                raise ValueError(f"the edge {one} - {other}: {min(missing)} is not a node")
            peers[one][other] = peers[other][one] = None
        return cls({node: tuple(sorted(others)) for node, others in peers.items()})

    @property
    def nodes(self) -> tuple[Party, ...]:
        """All nodes."""
        return tuple(self.neighbours)

    @property
    def edges(self) -> tuple[tuple[Party, Party], ...]:
        """All edges, each once."""
        return tuple((n, p) for n, peers in self.neighbours.items() for p in peers if n < p)

    def without(self, absent: Collection[Party]) -> Graph:
        """Return the network of the nodes that are there."""
        if not absent:
            return self
        there = {n: peers for n, peers in self.neighbours.items() if n not in absent}
        if not there:
            raise ValueError("all nodes are absent; a round needs at least one that is there")
        return Graph({n: tuple(p for p in peers if p in there) for n, peers in there.items()})

    def check_connected(self) -> None:
        """Refuse a network of several parts, whose nodes could not reach one model."""
        first = self.nodes[0]
        reached = {first, *self._parents_from(first)}
        if apart := [node for node in self.nodes if node not in reached]:
            raise ValueError(
                f"the network is not connected: there is no path between {first} and {apart[0]}"
            )

    def _parents_from(self, root: Party) -> dict[Party, Party]:
        """Return the parent of each node that is reached from a root, breadth first, by name."""
        parents: dict[Party, Party] = {}
        line = deque([root])
        while line:
            node = line.popleft()
            for peer in sorted(self.neighbours[node]):
                if peer != root and peer not in parents:
                    parents[peer] = node
                    line.append(peer)
        return parents

    @cached_property
    def tree(self) -> Graph:
        """A spanning tree, breadth first from the node of most neighbours, the same at all."""
        self.check_connected()
        root = max(self.nodes, key=lambda node: (len(self.neighbours[node]), node))
        return Graph.of(self.nodes, self._parents_from(root).items())

    @cached_property
    def delay(self) -> float:
        """How many edges of the tree are between two nodes, in the mean over all pairs.

        Each edge parts the tree in two, and is on the way between all nodes of one part and all of
        the other.
        """
        below = dict.fromkeys(self.nodes, 1)
        parents = self.tree._parents_from(self.nodes[0])
        for node, parent in reversed(parents.items()):  # breadth first: the farthest come last
            below[parent] += below[node]
        n = len(self.nodes)
        return sum(2 * below[node] * (n - below[node]) for node in parents) / n**2

    @cached_property
    def mean_weights(self) -> dict[Party, dict[Party, float]]:
        """The weights of the plain mean of a neighbourhood ([1]_, Algorithm 2)."""
        return {
            node: dict.fromkeys(sorted((*peers, node)), 1 / (1 + len(peers)))
            for node, peers in self.neighbours.items()
        }

    @cached_property
    def metropolis_weights(self) -> dict[Party, dict[Party, float]]:
        """Weights under which all nodes have the same influence ([2]_).

        Those of an edge are 1 / (1 + the larger degree) for both ends; the rest is a node's own.
        """
        degree = {node: len(peers) for node, peers in self.neighbours.items()}
        weights = {}
        for node, peers in self.neighbours.items():
            given = {peer: 1 / (1 + max(degree[node], degree[peer])) for peer in peers}
            given[node] = 1 - sum(given.values())
            weights[node] = dict(sorted(given.items()))
        return weights
