"""How the statistics of all nodes come together in a round: averages, and sums along a tree.

What a node does here it does between machines too (`vertibayes_protocols.calibration.nodes`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.calibration.node_records import NodeRecords, Places
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import Update, Wholes, local_rc
from vertibayes_protocols.calibration.nodes import relay_rate
from vertibayes_protocols.calibration.starts import contribution, of_contributions, start_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Flags: TypeAlias = NDArray[np.bool_]


class Settings(NamedTuple):
    """How nodes calibrate; see `collaborative_rc`."""

    rate: float
    size: float
    iterations: int
    mixing: Mixing
    own: bool
    start: Start


class Report(NamedTuple):
    """The losses and repairs of all nodes in a round, and who took part."""

    soft: Floats
    errors: Wholes
    repairs: Wholes
    present: Flags

    @classmethod
    def empty(cls, nodes: int) -> Report:
        """Return the report of a round in which no node takes part."""
        errors, repairs = np.zeros((2, nodes), np.int64)
        return cls(np.zeros(nodes), errors, repairs, np.zeros(nodes, bool))

    def add(self, places: Places, first: Update) -> None:
        """Enter what nodes have measured."""
        self.soft[places], self.errors[places] = first.soft, first.errors
        self.repairs[places], self.present[places] = first.repairs, True


class Averaging:
    """Nodes that replace their statistics with a mean of their neighbourhood's, and update them."""

    def __init__(self, nodes: NodeRecords, settings: Settings) -> None:
        self._nodes, self._settings = nodes, settings
        self._places = {name: place for place, name in enumerate(nodes.names)}
        self._start = start_of(
            nodes.classifier, nodes.sums, 1 / settings.rate, settings.size, settings.start
        )
        self.models = self._start.copy()
        self._lost = np.zeros(len(nodes.names), bool)  # away, and not back for a whole round
        self._known: tuple[Graph, bytes, csr_array] | None = None

    def round(self, graph: Graph, there: Flags, order: Places | None = None) -> Report:
        """Let the nodes that are there average and update: at once, or some one after another."""
        self._lost |= ~there
        sending, back = there & ~self._lost, there & self._lost
        weights, report = self._weights(graph, sending), Report.empty(len(there))
        at_once = [np.flatnonzero(there)] if there.any() else []
        for places in at_once if order is None else self._waves(graph, order):
            mixed = self._mixed(weights[places])
            for place in np.flatnonzero(back[places]).tolist():
                mixed[place] = self._heard(graph, int(places[place]), sending)
            report.add(places, self._update(mixed, places))
        return report

    def _waves(self, graph: Graph, order: Places) -> list[Places]:
        """Return nodes that may update at once, with the same result as one after another.

        A node is in a later wave than all its neighbours that are before it in the order.
        """
        wave: dict[int, int] = {}
        for node in order.tolist():
            wave[node] = 1 + max(
                (wave.get(peer, 0) for peer in self._peers(graph, node)), default=0
            )
        return [
            np.array([node for node in wave if wave[node] == number])
            for number in range(1, max(wave.values(), default=0) + 1)
        ]

    def _mixed(self, weights: csr_array) -> Floats:
        """Return the weighted means of the statistics of all nodes, one for each row of weights."""
        means = weights @ self.models.reshape(len(self.models), -1)
        return np.asarray(means.reshape(-1, *self.models.shape[1:]))

    def _update(self, mixed: Floats, places: Places) -> Update:
        """Update nodes from the means of their neighbourhoods."""
        update = partial(self._nodes.update, nodes=places)
        change, first = local_rc(update, mixed, self._settings.iterations)
        self.models[places], self._lost[places] = mixed + change, False
        return first

    def _heard(self, graph: Graph, node: int, sending: Flags) -> Floats:
        """Return what a node that is back has: its neighbours' mean, or its start."""
        heard = [peer for peer in self._peers(graph, node) if sending[peer]]
        return np.asarray(self.models[heard].mean(axis=0) if heard else self._start[node])

    def _peers(self, graph: Graph, node: int) -> list[int]:
        """Return the places of a node's neighbours."""
        return [self._places[peer] for peer in graph.neighbours[self._nodes.names[node]]]

    def _weights(self, graph: Graph, sending: Flags) -> csr_array:
        """Return the weights of all nodes in the means of those that send."""
        key = sending.tobytes()
        if self._known is None or self._known[0] is not graph or self._known[1] != key:
            self._known = (graph, key, self._matrix(graph, sending))
        return self._known[2]

    def _matrix(self, graph: Graph, sending: Flags) -> csr_array:
        from scipy.sparse import csr_array

        names = self._nodes.names
        shape = (len(names), len(names))
        if not sending.any():
            return csr_array(shape)
        silent = {name for name, sends in zip(names, sending, strict=True) if not sends}
        some = graph.without(silent)
        plain = self._settings.mixing == "mean"
        own = self._settings.own
        weights = some.mean_weights(own=own) if plain else some.metropolis_weights()
        places = self._places
        entries = [(w, places[n], places[p]) for n, of in weights.items() for p, w in of.items()]
        values, rows, columns = zip(*entries, strict=True)
        return csr_array((values, (rows, columns)), shape=shape)


class Relay:
    """Nodes that pass sums on along a spanning tree, and update with what has arrived.

    A contribution is the sums of a node's records, the sum of its differences so far, and how many
    records it has: one row of numbers. A message is the sum of all contributions behind its sender.
    """

    def __init__(self, nodes: NodeRecords, network: Graph, settings: Settings) -> None:
        from scipy.sparse import csr_array

        rate = relay_rate(settings.rate, settings.iterations, network)
        self._nodes, self._settings = nodes, settings._replace(rate=rate)
        sums = nodes.sums * (settings.start == "data")
        self._start = contribution(sums, nodes.sizes)
        self._own = self._start.copy()
        places = {name: place for place, name in enumerate(nodes.names)}
        edges = [(places[one], places[other]) for one, other in network.tree.edges]
        pairs = np.array(edges + [(u, v) for v, u in edges], np.intp).reshape(-1, 2)
        self._from, self._to = pairs.T
        self._back = np.roll(np.arange(len(pairs)), len(edges))  # the same edge the other way
        self._arrived = np.zeros((len(pairs), self._start.shape[1]))
        shape = (len(sums), len(pairs))
        self._into = csr_array((np.ones(len(pairs)), (self._to, np.arange(len(pairs)))), shape)
        self._lost = np.zeros(len(sums), bool)
        self.models = self._known()[0]

    def round(self, there: Flags) -> Report:
        """Let the nodes that are there send, receive and update at once."""
        back = there & self._lost
        sent = self._total()[self._from] - self._arrived[self._back]
        self._own[back] = self._start[back]
        self._arrived[back[self._to]] = 0.0
        delivered = (there & ~back)[self._from] & there[self._to]
        self._arrived[delivered] = sent[delivered]
        self._lost = ~there
        return self._update(np.flatnonzero(there))

    def _total(self) -> Floats:
        """Return the sums of all contributions that each node knows."""
        return np.asarray(self._own + self._into @ self._arrived)

    def _known(self) -> tuple[Floats, Floats]:
        """Return the statistics of all contributions that each node knows, and rate / m."""
        settings = self._settings
        return of_contributions(
            self._nodes.classifier, self._total(), settings.rate, settings.start
        )

    def _update(self, places: Places) -> Report:
        report = Report.empty(len(self.models))
        if not len(places):
            return report
        current, step = (values[places] for values in self._known())
        update = partial(self._nodes.update, nodes=places)
        change, first = local_rc(update, current, self._settings.iterations, step)
        half = (self._own.shape[1] - 1) // 2
        self._own[places, half:-1] += change.reshape(len(places), half)
        self.models[places] = self._known()[0][places]
        report.add(places, first)
        return report
