"""Collaborative risk-based calibration (CRC) over a communication network, in one process.

The nodes are those of parties between machines (`vertibayes_protocols.calibration.nodes`); what a
node sends is handed to its neighbours here. 320 nodes take seconds for 64 rounds.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Algorithms 2 and 3, equation 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.calibration.rc import check_schedule, warn_of_one_class
from vertibayes_protocols.calibration.checks import check_choices, check_examples
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import Update, Wholes
from vertibayes_protocols.calibration.nodes import (
    Attendance,
    AveragingNode,
    Node,
    RelayNode,
    relay_rate,
)
from vertibayes_protocols.errors import DataError

Networks: TypeAlias = Graph | Callable[[int], Graph]  # one network, or that of each round
Absences: TypeAlias = Callable[[int], Collection[str]]
Sleeping: TypeAlias = tuple[float, np.random.Generator]  # the share of nodes that sleep


class Round(NamedTuple):
    """The result of a round; the nodes are in the order of `examples`."""

    number: int  # the number of the round, from 1
    statistics: Floats  # those of the nodes' models at the end of the round
    soft: Floats
    errors: Wholes
    repairs: Wholes  # how many of the same statistics were not valid; see `Weights`
    present: NDArray[np.bool_]  # which nodes took part


def collaborative_rc(
    classifier: GenerativeClassifier,
    examples: Mapping[str, Examples],
    network: Networks,
    rounds: int,
    *,
    rate: float = 0.05,
    size: float | None = None,
    iterations: int = 1,
    mixing: Mixing = "mean",
    start: Start = "uniform",
    absent: Absences | None = None,
    asleep: float = 0.0,
    generator: np.random.Generator | None = None,
) -> Iterator[Round]:
    """Calibrate a classifier at the nodes of a network; yield each round ([1]_, Algorithm 2)."""
    check_schedule(rate, rounds, "rounds")
    check_schedule(rate, iterations, "iterations")
    check_choices(mixing, start)
    _check_size(size, mixing)
    _check_sleep(mixing, asleep, generator)
    _check_records(classifier, examples)
    if isinstance(network, Graph):
        _check_nodes(network, examples)
        network.check_connected()
    new: Callable[[str, GenerativeClassifier, Examples], Node]
    if mixing != "relay":
        if size is None:
            records = sum(len(part.classes) for part in examples.values())
            size = records / (rate * len(examples))
        new = partial(
            AveragingNode, size=size, rate=rate, start=start, mixing=mixing, iterations=iterations
        )
    elif isinstance(network, Graph):
        slow = relay_rate(rate, iterations, network)
        new = partial(RelayNode, rate=slow, start=start, iterations=iterations)
        network = network.tree
    else:
        raise ValueError("a relay needs a fixed network, got one that changes by round")
    sleeping = (asleep, generator) if generator is not None and asleep else None
    nodes = _Nodes({name: partial(new, name, classifier, part) for name, part in examples.items()})
    return _rounds(nodes, network, rounds, absent, sleeping)


def _rounds(
    nodes: _Nodes,
    network: Networks,
    rounds: int,
    absent: Absences | None,
    sleeping: Sleeping | None,
) -> Iterator[Round]:
    """Let the nodes communicate and update, round by round."""
    for number in range(1, rounds + 1):
        graph = network if isinstance(network, Graph) else network(number)
        if not isinstance(network, Graph):
            _check_nodes(graph, nodes.names)
        away = frozenset() if absent is None else frozenset(absent(number))
        if unknown := away - set(nodes.names):
            raise ValueError(f"the absent node {min(unknown)} in round {number} is not a node")
        yield nodes.round(number, graph, away, sleeping)


class _Nodes:
    """All nodes, what each is at its start, and who has lost its statistics."""

    def __init__(self, starts: Mapping[str, Callable[[], Node]]) -> None:
        self.names = tuple(starts)
        self._starts = starts
        self._nodes = {name: start() for name, start in starts.items()}
        self._lost: frozenset[str] = frozenset()  # away, and no update since

    def round(
        self, number: int, network: Graph, away: frozenset[str], sleeping: Sleeping | None
    ) -> Round:
        """Let the nodes that are there send, receive and update: at once, or one after another."""
        self._lost |= away
        there = Attendance(network, away, self._lost - away, number)
        sent = {name: node.outgoing(there) for name, node in self._nodes.items()}
        updates = dict[str, Update]()
        for name in self._awake(away, sleeping):
            if name in self._lost:
                self._nodes[name] = self._starts[name]()
            received = {peer: sent[peer][name] for peer in there.senders(name)}
            updates[name] = self._nodes[name].receive(there, received)
            if sleeping:
                sent[name] = self._nodes[name].outgoing(there)
        self._lost -= set(updates)
        soft, errors, repairs = (
            np.array([getattr(updates.get(name), of, 0) for name in self.names])
            for of in ("soft", "errors", "repairs")
        )
        statistics = np.stack([node.statistics for node in self._nodes.values()])
        present = np.array([name in updates for name in self.names])
        return Round(number, statistics, soft, errors, repairs, present)

    def _awake(self, away: frozenset[str], sleeping: Sleeping | None) -> list[str]:
        """Return the nodes that update, in their order."""
        there = np.array([name not in away for name in self.names])
        places = np.flatnonzero(there)
        if sleeping:
            share, generator = sleeping
            awake = there & (generator.random(len(there)) >= share)
            places = generator.permutation(np.flatnonzero(awake))
        return [self.names[place] for place in places]


def _check_size(size: float | None, mixing: Mixing) -> None:
    """Refuse an equivalent sample size that is out of range, or that nothing uses."""
    if size is not None and not 0 < size < np.inf:
        raise ValueError(f"the equivalent sample size must be a positive number, got {size}")
    if size is not None and mixing == "relay":
        raise ValueError("a relay has no equivalent sample size: leave size out, or choose mean")


def _check_sleep(mixing: Mixing, asleep: float, generator: np.random.Generator | None) -> None:
    """Refuse sleep that is out of range, or that a way of mixing does not provide for."""
    if not 0 <= asleep < 1:
        raise ValueError(f"asleep must be at least 0 and below 1, got {asleep}")
    if asleep and mixing == "relay":
        raise ValueError("sleeping nodes need averaging: choose mean or metropolis")
    if asleep and generator is None:
        raise ValueError("asleep needs a generator, which draws the nodes that sleep")


def _check_records(classifier: GenerativeClassifier, examples: Mapping[str, Examples]) -> None:
    """Refuse records that cannot be used; warn of nodes and classes without records."""
    if not examples:
        raise DataError("examples must have at least one node, got 0")
    for name, part in examples.items():
        check_examples(f"the node {name}", classifier, part)
    empty = [name for name, part in examples.items() if not len(part.classes)]
    if len(empty) == len(examples):
        raise DataError("no node has a record: at least one record is expected")
    if empty:
        warnings.warn(
            "nodes without records have a uniform start, and pass on what others send: "
            f"{', '.join(empty)}",
            stacklevel=3,
        )
    warn_of_one_class(classifier, examples.values(), level=4)


def _check_nodes(network: Graph, names: Collection[str]) -> None:
    """Refuse a network of other nodes than those that have examples."""
    if missing := set(network.nodes) - set(names):
        raise DataError(f"the node {min(missing)} of the network has no examples")
    if missing := set(names) - set(network.nodes):
        raise DataError(f"the node {min(missing)} has examples, but is not in the network")
