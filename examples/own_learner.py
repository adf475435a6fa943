"""Write a learner in twenty lines: the Chow-Liu tree, from pooled data or from a federation.

The tree joins the pairs with the largest mutual information (Chow and Liu 1968). The learner asks a
`Counter` for tables, so that the same lines learn from pooled data and from a federation, with
identical results.

    python examples/own_learner.py
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from vertibayes import (
    Counter,
    Family,
    PlainCounter,
    SecureCounter,
    Structure,
    federate,
    split_columns,
)
from vertibayes.cli.demo import alarm
from vertibayes.sampling import sample


def chow_liu(counter: Counter) -> Structure:
    """Learn the tree in one call, with all edges directed away from the first variable."""
    names = list(counter.variables)
    pairs = list(combinations(names, 2))
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(names)
    for pair, table in zip(pairs, counter.tables([Family(a, (b,)) for a, b in pairs]), strict=True):
        graph.add_edge(*pair, weight=mutual_information(table))
    tree = nx.maximum_spanning_tree(graph)
    return Structure.of(names, nx.bfs_tree(tree, names[0]).edges)


def mutual_information(table: NDArray[np.int64]) -> float:
    """Return the mutual information of a table's two variables, in nats."""
    joint = table / table.sum()
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / product[seen])).sum())


def compare() -> tuple[Structure, Structure]:
    """Learn from pooled records of ALARM and from three sites that hold its columns."""
    data = sample(alarm(), 5000, seed=0)
    with federate(split_columns(data, sites=3)) as federation:
        secure = chow_liu(SecureCounter.of(federation, order=list(data.variables)))
    pooled = chow_liu(PlainCounter(data))
    print(f"{len(secure.edges)} edges;", "identical" if secure == pooled else "DIFFERENT")
    return secure, pooled


if __name__ == "__main__":
    compare()
