"""Communication networks: drawn at random, read from files, changing, and with absent nodes.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Sections IV, IV-B and IV-H.
.. [2] H. Prüfer (1918). Neuer Beweis eines Satzes über Permutationen. Trees as sequences.
.. [3] P. Erdős, A. Rényi (1959). On random graphs I; here as E. N. Gilbert: each edge by itself.
.. [4] D. J. Watts, S. H. Strogatz (1998). Collective dynamics of 'small-world' networks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import chain, combinations
from math import log
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from vertibayes.json_content import read_json
from vertibayes.settings import NETWORKS
from vertibayes_protocols.calibration.graph import Graph

Places: TypeAlias = list[tuple[int, int]]  # edges, as the places of their nodes

TRIES = 100  # draws of a network until it is connected


def node_names(count: int) -> list[str]:
    """Return the names ``node-1``, ``node-2`` and so on."""
    if count < 1:
        raise ValueError(f"the number of nodes must be at least 1, got {count}")
    return [f"node-{place}" for place in range(1, count + 1)]


def network_of(
    kind: str,
    nodes: Sequence[str],
    generator: np.random.Generator,
    *,
    extra_edges: int = 0,
    probability: float | None = None,
    degree: int = 4,
    rewiring: float = 0.1,
) -> Graph:
    """Return a connected communication network."""
    count = len(nodes)
    ways: dict[str, Callable[[], Places]] = {
        "tree": lambda: _tree(count, generator),
        "chain": lambda: _chain(count),
        "ring": lambda: _chain(count) + ([(0, count - 1)] if count > 2 else []),
        "star": lambda: [(0, place) for place in range(1, count)],
        "complete": lambda: list(combinations(range(count), 2)),
        "erdos-renyi": lambda: _independent(count, probability, generator),
        "small-world": lambda: _small_world(count, degree, rewiring, generator),
    }
    if kind not in ways:
        raise ValueError(f"the network must be one of {', '.join(NETWORKS)}, got {kind!r}")
    edges = _connected(ways[kind], count, kind)
    edges += _further(count, edges, extra_edges, generator)
    return Graph.of(nodes, ((nodes[one], nodes[other]) for one, other in edges))


def _connected(draw: Callable[[], Places], count: int, kind: str) -> Places:
    """Return the first drawn network that is connected."""
    for _ in range(TRIES):
        edges = draw()
        if _is_connected(count, edges):
            return edges
    raise ValueError(
        f"none of {TRIES} drawn networks of the kind {kind!r} is connected: {count} nodes; "
        "specify a higher probability of edges, or a higher degree"
    )


def _is_connected(count: int, edges: Places) -> bool:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(edges, np.intp).reshape(-1, 2).T
    parts, _ = connected_components(csr_array((np.ones(len(edges)), ends), (count, count)))
    return bool(parts <= 1)


def _chain(count: int) -> Places:
    return [(place, place + 1) for place in range(count - 1)]


def _tree(count: int, generator: np.random.Generator) -> Places:
    """Return a tree: each of the count^(count - 2) trees has one sequence ([2]_)."""
    sequence = generator.integers(count, size=max(count - 2, 0)).tolist()
    degrees = [1] * count
    for node in sequence:
        degrees[node] += 1
    leaves = [node for node in range(count) if degrees[node] == 1]  # ascending: a heap
    edges: Places = []
    for node in sequence:
        edges.append((heapq.heappop(leaves), node))
        degrees[node] -= 1
        if degrees[node] == 1:
            heapq.heappush(leaves, node)
    return [*edges, (leaves[0], leaves[1])] if count > 1 else []


def _independent(count: int, probability: float | None, generator: np.random.Generator) -> Places:
    """Return edges, each of which is there with the same probability ([3]_)."""
    if probability is None:
        probability = min(1.0, 2 * log(count) / count) if count > 2 else 1.0
    if not 0 < probability <= 1:
        raise ValueError(f"the probability of an edge must be in (0, 1], got {probability}")
    ones, others = np.triu_indices(count, 1)
    there = generator.random(len(ones)) < probability
    return list(zip(ones[there].tolist(), others[there].tolist(), strict=True))


def _small_world(
    count: int, degree: int, rewiring: float, generator: np.random.Generator
) -> Places:
    """Return a ring whose nodes reach `degree` / 2 ahead, some edges of it rewired ([4]_)."""
    if degree < 2 or degree % 2 or degree >= count:
        raise ValueError(
            f"the degree of a small world must be even, at least 2 and less than the number of "
            f"nodes ({count}), got {degree}"
        )
    if not 0 <= rewiring <= 1:
        raise ValueError(f"the probability of rewiring must be in [0, 1], got {rewiring}")
    lattice = [(n, (n + step) % count) for step in range(1, degree // 2 + 1) for n in range(count)]
    taken: list[set[int]] = [set() for _ in range(count)]
    for one, other in lattice:
        taken[one].add(other)
        taken[other].add(one)
    edges: Places = []
    for one, other in lattice:
        free = [node for node in range(count) if node != one and node not in taken[one]]
        if free and generator.random() < rewiring:
            new = free[generator.integers(len(free))]
            taken[one].remove(other)
            taken[other].remove(one)
            taken[one].add(new)
            taken[new].add(one)
            other = new
        edges.append((one, other))
    return edges


def _further(count: int, edges: Places, more: int, generator: np.random.Generator) -> Places:
    """Return `more` random pairs of nodes without an edge."""
    free = np.triu(np.ones((count, count), bool), 1)
    for one, other in edges:
        free[min(one, other), max(one, other)] = False
    ones, others = np.nonzero(free)
    if not 0 <= more <= len(ones):
        raise ValueError(
            f"extra_edges must be between 0 and {len(ones)} (the pairs of nodes without an edge), "
            f"got {more}"
        )
    chosen = generator.permutation(len(ones))[:more]
    return list(zip(ones[chosen].tolist(), others[chosen].tolist(), strict=True))


def read_network(path: Path) -> Graph:
    """Read a communication network."""
    content = read_json(path)
    edges = content.get("edges") if isinstance(content, dict) else content
    if not isinstance(edges, list):
        raise ValueError(
            f'{path}: not a communication network; expected {{"nodes": [...], "edges": [...]}} or '
            "a list of edges"
        )
    for edge in edges:
        if not _is_names(edge) or len(edge) != 2:
            raise ValueError(f'{path}: not an edge: {edge!r}; expected ["a node", "another node"]')
    nodes = list(dict.fromkeys(chain.from_iterable(edges)))
    if isinstance(content, dict) and "nodes" in content:
        nodes = content["nodes"]
    if not _is_names(nodes):
        raise ValueError(f"{path}: not a list of nodes: {nodes!r}; expected a list of names")
    try:
        graph = Graph.of(nodes, edges)
        graph.check_connected()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return graph


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


class Changing:
    """A communication network that is drawn again after every few rounds ([1]_, section IV-H)."""

    def __init__(
        self,
        kind: str,
        nodes: Sequence[str],
        every: int,
        generator: np.random.Generator,
        **options: Any,
    ) -> None:
        if every < 1:
            raise ValueError(f"a network must last at least 1 round, got {every}")
        self._kind, self._nodes, self._options = kind, tuple(nodes), options
        self._every = every
        self._seed = int(generator.integers(2**63))
        self._drawn: dict[int, Graph] = {}
        self(1)  # mistakes appear now, not in a round

    def __call__(self, number: int) -> Graph:
        """Return the network of a round; rounds are counted from 1, and asked for in any order."""
        if number < 1:
            raise ValueError(f"rounds are counted from 1, got {number}")
        period = (number - 1) // self._every
        if period not in self._drawn:
            generator = np.random.default_rng((self._seed, period))
            self._drawn[period] = network_of(self._kind, self._nodes, generator, **self._options)
        return self._drawn[period]
