"""Collaborative risk-based calibration (CRC) over a communication network: a simulation.

All nodes update at once, so that hundreds of nodes take seconds. How statistics come together is
in `mixing`; between machines, each party does the same with its own records.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Algorithms 2 and 3, equation 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.calibration.mixing import Averaging, Flags, Relay, Settings
from vertibayes.calibration.node_records import NodeRecords, Places
from vertibayes.calibration.rc import check_schedule, warn_of_one_class
from vertibayes_protocols.calibration.checks import (
    GROWTH,
    SMALL,
    check_choices,
    check_examples,
    check_statistics,
    growth,
)
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import Wholes
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
    own: bool = True,
    start: Start = "uniform",
    absent: Absences | None = None,
    asleep: float = 0.0,
    generator: np.random.Generator | None = None,
) -> Iterator[Round]:
    """Calibrate a classifier at the nodes of a network; yield each round ([1]_, Algorithm 2)."""
    check_schedule(rate, rounds, "rounds")
    check_schedule(rate, iterations, "iterations")
    settings = Settings(rate, size or 0.0, iterations, mixing, own, start)
    check_choices(mixing, start)
    _check_size(size, mixing)
    _check_sleep(mixing, asleep, generator)
    _check_records(classifier, examples)
    if isinstance(network, Graph):
        _check_nodes(network, examples)
        network.check_connected()
    nodes = NodeRecords(classifier, examples)
    if size is None:
        settings = settings._replace(size=nodes.sizes.sum() / (rate * len(nodes.names)))
    mixer: Averaging | Relay
    if mixing != "relay":
        mixer = Averaging(nodes, settings)
    elif isinstance(network, Graph):
        mixer = Relay(nodes, network, settings)
    else:
        raise ValueError("a relay needs a fixed network, got one that changes by round")
    sleeping = (asleep, generator) if generator is not None and asleep else None
    return _rounds(nodes, mixer, network, rounds, absent, sleeping)


def _rounds(
    nodes: NodeRecords,
    mixer: Averaging | Relay,
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
        away = set() if absent is None else set(absent(number))
        if unknown := away - set(nodes.names):
            raise ValueError(f"the absent node {min(unknown)} in round {number} is not a node")
        there = np.array([name not in away for name in nodes.names])
        if isinstance(mixer, Relay):
            report = mixer.round(there)
        else:
            report = mixer.round(graph, there, _order(there, sleeping))
        _check_growth(nodes.names, mixer, number)
        yield Round(number, mixer.models.copy(), *report)


def _order(there: Flags, sleeping: Sleeping | None) -> Places | None:
    """Return the nodes that are awake, in the order in which they update; None if at once."""
    if sleeping is None:
        return None
    share, generator = sleeping
    awake = there & (generator.random(len(there)) >= share)
    return generator.permutation(np.flatnonzero(awake))


def _check_growth(names: tuple[str, ...], mixer: Averaging | Relay, number: int) -> None:
    """Refuse statistics that diverge."""
    advice = {} if isinstance(mixer, Relay) else {"advice": SMALL}
    for place in np.flatnonzero(growth(mixer.models) > GROWTH)[:1]:
        node, moment = f"the node {names[place]}", f"round {number}"
        check_statistics(node, mixer.models[place], moment, **advice)


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
