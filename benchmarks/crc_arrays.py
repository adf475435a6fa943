"""All nodes of CRC at once, in arrays, for `crc_tables.py`: ten times as fast as a node at a time.

`crc_tables.py --tables speed` compares the statistics with those of `vertibayes.calibration.crc`.
Two things of Pérez et al. (2025) are only here. A neighbourhood *without the node* is what line 8
of Algorithm 2 averages; on a tree, which has two sides, each round then takes all statistics from
one side to the other. *No repairs* takes counts and variances that updates have driven below zero
as they are, about which the paper says nothing: logarithms are not numbers then (nan), the
statistics of the node neither, and a round later those of its neighbours. A model of such
parameters has no largest probability, and takes the first class, as numpy's `argmax` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from vertibayes.calibration.models import error_rates
from vertibayes.calibration.topologies import Changing
from vertibayes_protocols.calibration import factors
from vertibayes_protocols.calibration.classifier import Examples, FactoredClassifier
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import local_rc, update
from vertibayes_protocols.calibration.nodes import relay_rate
from vertibayes_protocols.calibration.starts import OWN, contribution, start_of


class Rule(NamedTuple):
    """How nodes bring statistics together."""

    mixing: str
    start: str = "uniform"
    repairs: bool = True


class Nodes(NamedTuple):
    """The nodes of a run, all with as many records."""

    classifier: FactoredClassifier
    columns: np.ndarray  # of shape (nodes, records, width)
    classes: np.ndarray  # of shape (nodes, records)
    network: Graph | Changing

    @property
    def sums(self) -> np.ndarray:
        """s(X, Y) of each node."""
        places = np.arange(len(self.classifier.classes))[:, None] == self.classes[:, None]
        return places.astype(float) @ self.columns

    def local(self, statistics: np.ndarray, iterations: int, step: object = 1.0) -> np.ndarray:
        """Return the sum of the differences of some local iterations."""
        own = partial(update, self.classifier, examples=Examples(self.columns, self.classes))
        return local_rc(own, statistics, iterations, step)[0]


def rounds(nodes: Nodes, count: int, rule: Rule, rate: float, iterations: int = 1) -> Iterator:
    """Yield the statistics of all nodes after each round."""
    run = relay if rule.mixing == "relay" else average
    with repairing(rule.repairs):
        yield from run(nodes, count, rule, rate, iterations)


def average(
    nodes: Nodes, count: int, rule: Rule, rate: float, iterations: int
) -> Iterator[np.ndarray]:
    """Yield the statistics of nodes that average over their neighbourhoods."""
    sums, size = nodes.sums, nodes.classes.shape[1] / rate
    current = np.stack(
        [start_of(nodes.classifier, each, 1 / rate, size, rule.start) for each in sums]
    )
    is_one = isinstance(nodes.network, Graph)
    mixing = matrix(nodes.network, rule.mixing) if is_one else None
    for number in range(1, count + 1):
        if not is_one:
            mixing = matrix(nodes.network(number), rule.mixing)
        mixed = (mixing @ current.reshape(len(sums), -1)).reshape(sums.shape)
        current = mixed + nodes.local(mixed, iterations)
        yield current


def matrix(network: Graph, mixing: str) -> np.ndarray:
    """Return the weight of each node (columns) in the mean of each (rows)."""
    if mixing == "metropolis":
        weights = network.metropolis_weights
    elif mixing == "others":
        weights = {n: dict.fromkeys(p, 1 / len(p)) for n, p in network.neighbours.items()}
    else:
        weights = network.mean_weights
    return np.array([[weights[n].get(p, 0.0) for p in network.nodes] for n in network.nodes])


def relay(
    nodes: Nodes, count: int, rule: Rule, rate: float, iterations: int
) -> Iterator[np.ndarray]:
    """Yield the statistics of nodes that pass sums on along a tree."""
    rate = relay_rate(rate, iterations, nodes.network)
    place = {name: i for i, name in enumerate(nodes.network.nodes)}
    edges = [(place[one], place[other]) for one, other in nodes.network.tree.edges]
    source, sink = np.array(edges + [edge[::-1] for edge in edges]).T
    back = np.roll(np.arange(len(source)), len(edges))
    into = csr_array((np.ones(len(sink)), (sink, np.arange(len(sink)))))
    sums, records = nodes.sums, nodes.classes.shape[1]
    own = np.stack([contribution(each * (rule.start == "data"), records) for each in sums])
    half, messages = sums[0].size, np.zeros((len(sink), own.shape[1]))
    for _ in range(count):
        messages = (own + into @ messages)[source] - messages[back]
        current, step = _known(nodes, own + into @ messages, rate, rule.start)
        change = nodes.local(current, iterations, step)
        own[:, half:-1] += change.reshape(len(place), -1)
        yield _known(nodes, own + into @ messages, rate, rule.start)[0]


def _known(nodes: Nodes, totals: np.ndarray, rate: float, start: str) -> tuple:
    """Return the statistics of all contributions that each node knows, and rate / m.

    As `vertibayes_protocols.calibration.starts.of_contributions`, for all nodes.
    """
    even = nodes.classifier.uniform(1.0)
    sums, differences = totals[:, :-1].reshape(-1, 2, *even.shape).swapaxes(0, 1)
    scale = 1 / np.maximum(totals[:, -1], 1.0)[:, None, None]
    first = OWN * scale * sums + (1 - OWN) * even if start == "data" else even
    return first + rate * scale * differences, rate * scale


@contextmanager
def repairing(repairs: bool) -> Iterator[None]:
    """Leave counts and variances below zero as they are, unless repaired."""
    if repairs:
        yield
        return
    # As a field it would go through five factors and two functions, for this benchmark alone.
    kept = factors._positive, factors.LEAST
    factors._positive = lambda counts, alpha=0.0: (counts + alpha, np.zeros(counts.shape[:-2], int))
    factors.LEAST = -np.inf
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        factors._positive, factors.LEAST = kept


def errors_of(nodes: Nodes, statistics: np.ndarray, examples: Examples, rule: Rule) -> np.ndarray:
    """Return the error of each node's model; without repairs, what is no number says class 0."""
    with repairing(rule.repairs):
        found = error_rates(nodes.classifier, statistics, examples)
        if not rule.repairs:
            weights = nodes.classifier.weights(statistics).values
            found[np.isnan(weights).any(axis=(1, 2))] = (examples.classes != 0).mean()
    return found
