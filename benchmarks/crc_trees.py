"""Figure 2 of Pérez et al. (2025): how much of a random tree is near a node, for `crc_tables.py`.

The paper shows curves without saying how its trees are drawn. Ours are uniform over all labelled
trees, in which the expected number of nodes at a distance of exactly k edges from a node is

    (k + 1) (n - 1) (n - 2) ... (n - k) / n^k

since a path of k edges is in (k + 1) n^(n - k - 2) of the n^(n - 2) trees.
"""

from __future__ import annotations

import numpy as np
from curves import legend, mean_sd, save, style
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from vertibayes.calibration.topologies import network_of, node_names

NODES = (20, 40, 50, 80, 160, 320)
AT = (1, 2, 4, 8, 16, 32)
TREES = 100


def near_in(nodes: int, generator: np.random.Generator) -> np.ndarray:
    """Return the share of nodes at distances of at most 0, 1, ..., n - 1 in a tree."""
    tree = network_of("tree", node_names(nodes), generator)
    place = {name: i for i, name in enumerate(tree.nodes)}
    ends = np.array([(place[one], place[other]) for one, other in tree.edges]).T
    edges = csr_array((np.ones(nodes - 1), tuple(ends)), shape=(nodes, nodes))
    apart = shortest_path(edges, directed=False, unweighted=True).astype(int)
    return np.bincount(apart.ravel(), minlength=nodes).cumsum() / nodes**2


def expected(nodes: int) -> np.ndarray:
    """Return the expectation of `near_in`."""
    k = np.arange(nodes)
    falling = np.cumprod(np.append(1.0, (nodes - k[1:]) / nodes))
    return np.cumsum((k + 1) * falling) / nodes


def trees(seed: int) -> tuple[list[str], list[list[object]], dict[int, np.ndarray]]:
    """Return the header and the rows of a table, and the curves."""
    curves = {
        nodes: np.array([near_in(nodes, np.random.default_rng((seed + i, nodes)))
                         for i in range(TREES)])
        for nodes in NODES
    }  # fmt: skip
    rows: list[list[object]] = []
    for nodes, found in curves.items():
        at = [min(distance, nodes - 1) for distance in AT]
        rows.append([nodes, "drawn", *(mean_sd(found[:, distance]) for distance in at)])
        rows.append([nodes, "expected", *(f"{each:.3f}" for each in expected(nodes)[at])])
    return ["nodes", "trees", *(f"within {distance}" for distance in AT)], rows, curves


def draw(curves: dict[int, np.ndarray]) -> None:
    """Write the figure."""
    with style():
        figure = Figure((5, 3.4), layout="constrained")
        axes = figure.subplots()
        for place, (nodes, found) in enumerate(curves.items()):
            mean = found.mean(axis=0)[:65]
            axes.plot(mean, color=f"C{place}", label=f"{nodes} nodes", linewidth=1.2)
        axes.set(xlabel="distance, at most", ylabel="share of the nodes", xlim=(0, 64), ylim=(0, 1))
        axes.grid(color="0.9", linewidth=0.6)
        legend(figure, axes, 3)
        save(figure, "crc_distances.svg")
