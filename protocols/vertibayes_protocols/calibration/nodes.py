"""One node of a calibration: what a party keeps between rounds, what it sends, what it computes.

Nodes do no input or output. Between machines each site runs one
(`vertibayes_protocols.queries.calibration.consensus`); `vertibayes.calibration.crc` runs all nodes
of a network in one process.

A node that is *absent* sends nothing and computes nothing. A node that is *back* has lost its
statistics: in its first round it listens, and the others do without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.calibration.checks import SMALL, check_statistics
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import Update, local_rc, statistics_of, update
from vertibayes_protocols.calibration.starts import contribution, of_contributions, start_of

LATE = 0.5  # iterations times rate times delay, at most: at .96, Letter over 320 nodes diverges


@dataclass(frozen=True)
class Attendance:
    """Who is there in a round."""

    network: Graph  # all nodes; for a relay, its spanning tree
    absent: frozenset[Party] = frozenset()
    back: frozenset[Party] = frozenset()
    number: int = 1  # of the round

    def receivers(self, node: Party) -> tuple[Party, ...]:
        """Return the neighbours to which a node sends."""
        if node in self.absent or node in self.back:
            return ()
        return tuple(p for p in self.network.neighbours[node] if p not in self.absent)

    def senders(self, node: Party) -> tuple[Party, ...]:
        """Return the neighbours from which a node receives."""
        silent = self.absent if node not in self.absent else self.network.nodes
        peers = self.network.neighbours[node]
        return tuple(p for p in peers if p not in silent and p not in self.back)

    def weights(self, node: Party, mixing: Mixing) -> dict[Party, float]:
        """Return what each sender weighs in a node's mean; the node itself has the rest."""
        senders = self.senders(node)
        if node in self.back:
            return dict.fromkeys(senders, 1 / max(1, len(senders)))
        speaking = self._speaking
        weights = speaking.metropolis_weights if mixing == "metropolis" else speaking.mean_weights
        return {peer: weights[node][peer] for peer in senders}

    @cached_property
    def _speaking(self) -> Graph:
        """The network of the nodes that send."""
        return self.network.without(self.absent | self.back)


class Node(Protocol):
    """What a conversation asks of a node, whichever way statistics come together."""

    @property
    def length(self) -> int:
        """How many numbers a message has."""
        ...

    @property
    def model(self) -> Floats:
        """The statistics of the node's classifier: of an average in units of m0."""
        ...

    @property
    def statistics(self) -> Floats:
        """The statistics as the node computes with them: of an average for m0 records."""
        ...

    def outgoing(self, there: Attendance) -> dict[Party, Floats]:
        """Return what the node sends to each neighbour: shape (length,)."""
        ...

    def receive(self, there: Attendance, received: Mapping[Party, Floats]) -> Update:
        """Take what neighbours have sent, and update with the own records."""
        ...


class AveragingNode:
    """A node that replaces its statistics with a mean of its neighbourhood's, and updates them."""

    def __init__(
        self,
        party: Party,
        classifier: GenerativeClassifier,
        examples: Examples,
        size: float,
        rate: float,
        *,
        start: Start = "uniform",
        mixing: Mixing = "mean",
        iterations: int = 1,
    ) -> None:
        self.party, self.size, self.mixing, self.iterations = party, size, mixing, iterations
        self._update = partial(update, classifier, examples=examples)
        sums = statistics_of(classifier, examples)
        self.statistics = start_of(classifier, sums, 1 / rate, size, start)

    @property
    def length(self) -> int:
        """How many numbers a message has: the statistics."""
        return self.statistics.size

    @property
    def model(self) -> Floats:
        """The statistics in units of m0: theta does not depend on their size."""
        return self.statistics / self.size

    def outgoing(self, there: Attendance) -> dict[Party, Floats]:
        """Return the statistics, for each neighbour that is there."""
        return dict.fromkeys(there.receivers(self.party), self.statistics.reshape(-1))

    def receive(self, there: Attendance, received: Mapping[Party, Floats]) -> Update:
        """Average with the neighbours that were heard, and update; as `Node`."""
        weights = there.weights(self.party, self.mixing)
        total = np.zeros(self.length)
        for peer in received:
            total += weights[peer] * received[peer]
        return self.add(there, total, tuple(received))

    def add(self, there: Attendance, total: Floats, heard: Collection[Party]) -> Update:
        """Average with a sum of weighted statistics, and update."""
        weights = there.weights(self.party, self.mixing)
        mixed = self.statistics
        total = total.reshape(mixed.shape)
        if heard and (self.mixing == "mean" or self.party in there.back):
            own = self.party not in there.back
            common = weights[next(iter(heard))]  # the same for all
            mixed = (total / common + own * mixed) / (len(heard) + own)
        elif heard:
            mixed = total + (1 - sum(weights[peer] for peer in heard)) * mixed
        change, first = local_rc(self._update, mixed, self.iterations)
        self.statistics = mixed + change
        check_statistics(f"the node {self.party}", self.statistics, f"round {there.number}", SMALL)
        return first


def relay_rate(rate: float, iterations: int, network: Graph) -> float:
    """Return the learning rate of a relay: lower where sums are late, or they would overshoot.

    All nodes update with differences that are `Graph.delay` rounds late in the mean. As in any
    descent by late differences, the statistics swing, and then diverge, if the rate times the delay
    is large.
    """
    return min(rate, LATE / (iterations * max(network.delay, 1.0)))


class RelayNode:
    """A node that passes sums on along a tree, and updates with all that has arrived.

    A contribution is one vector: the sums of a node's records, the sum of its differences so far,
    and how many records it has. A message to a neighbour is the sum of all contributions that did
    not come from there; it contains those of earlier messages, so that a lost one does no harm.
    """

    def __init__(
        self,
        party: Party,
        classifier: GenerativeClassifier,
        examples: Examples,
        rate: float,
        *,
        start: Start = "uniform",
        iterations: int = 1,
    ) -> None:
        self.party, self.rate, self.iterations = party, rate, iterations
        self._classifier, self._start = classifier, start
        self._update = partial(update, classifier, examples=examples)
        sums = statistics_of(classifier, examples) * (start == "data")
        self.own = contribution(sums, len(examples.classes))
        self._last: dict[Party, Floats] = {}

    @property
    def length(self) -> int:
        """How many numbers a message has: two vectors of statistics, and a number of records."""
        return self.own.size

    @property
    def total(self) -> Floats:
        """The sum of all contributions that the node knows: shape (length,)."""
        return self._sum_without(None)

    @property
    def model(self) -> Floats:
        """The statistics, for one record: b = 0.9 S / m + 0.1 uniform(1) + rate G / m."""
        return self._known()[0]

    statistics = model

    def _known(self) -> tuple[Floats, float]:
        """Return the statistics of all contributions that the node knows, and rate / m."""
        return of_contributions(self._classifier, self.total, self.rate, self._start)

    def outgoing(self, there: Attendance) -> dict[Party, Floats]:
        """Return the sum of all contributions that did not come from each neighbour."""
        return {peer: self._sum_without(peer) for peer in there.receivers(self.party)}

    def _sum_without(self, peer: Party | None) -> Floats:
        total = self.own.copy()
        for sender, message in self._last.items():
            if sender != peer:
                total += message
        return total

    def receive(self, there: Attendance, received: Mapping[Party, Floats]) -> Update:
        """Keep the last message of each neighbour, and update; as `Node`."""
        self._last = {**self._last, **received}
        current, step = self._known()
        change, first = local_rc(self._update, current, self.iterations, step)
        half = change.size
        self.own = self.own.copy()  # a message that was sent does not change
        self.own[half : 2 * half] += change.reshape(-1)
        check_statistics(f"the node {self.party}", self.model, f"round {there.number}")
        return first


@dataclass
class Checkpoints:
    """A site's nodes at the ends of the last two parts of a calibration, in memory only.

    The analyst may have missed the end of a part: it then asks for the part again.
    """

    calibration: bytes = b""  # what the calibration is about, as a digest
    nodes: dict[int, Node] = field(default_factory=dict, repr=False)
    begun: dict[bytes, int] = field(default_factory=dict)

    def get(self, calibration: bytes, rounds: int) -> Node | None:
        """Return a copy of the node after so many rounds, if it is known."""
        node = self.nodes.get(rounds) if calibration == self.calibration else None
        return copy(node)

    def begin(self, calibration: bytes, first: int, last: int) -> bool:
        """Note that a part of some rounds begins; return whether its first has begun before.

        A part that broke has shown sums to neighbours, and has left no node.
        """
        done = max(self.nodes, default=0) if calibration == self.calibration else 0
        latest = max(done, self.begun.get(calibration, 0))
        self.begun[calibration] = max(latest, last)
        return first <= latest

    def keep(self, calibration: bytes, before: int, rounds: int, node: Node) -> None:
        """Keep a node after so many rounds, and the one before this part; forget all others."""
        known = self.nodes if calibration == self.calibration else {}
        self.nodes = {number: n for number, n in known.items() if number == before}
        self.calibration, self.nodes[rounds] = calibration, node
