"""Gossip naive Bayes in one process: nodes pass estimates of the sum on, without an aggregator.

    each iteration    a node merges the last two estimates that it received with its own update, and
                      sends the result to a random neighbour                    (Algorithms 4 and 5)
    a message         arrives at the end of the slot in which it is sent, or up to `latest` later
    a model           nodes * theta, as sums                                     (equations 26, 27)

One slot in an iteration is the *synchronous* variant: all nodes send estimates of what they had
received before the iteration, and all messages arrive at its end, in random order. More slots are
the *asynchronous* variant: each node wakes in one slot of each iteration, always the same one, as
clocks of equal speed that nobody has set do; what arrived in earlier slots of the iteration is in
its estimate. `latest` counts slots, so that messages overtake each other. A node that is asleep in
an iteration sends nothing and still receives. A node that has left sends and receives nothing, and
what is sent to it is lost, as its neighbours do not know that it has left. A node that has received
nothing has its own update as estimate.

An estimate is a mean of updates with weights that add up to 1. The weights of nodes differ, even at
the end, and in the mean they follow the number of messages that a node receives: a node of many
neighbours has more weight. Estimates are scaled by the number of nodes, those that left included,
so that `alpha` and `floor` mean what they mean in `aggregate`.

All nodes are rows of the same arrays: 1,000 nodes are simulated in milliseconds per iteration.

References
----------
.. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vertibayes.naive_bayes.base import FLOOR, Floats, NaiveBayes, Statistics
from vertibayes_protocols.gossip import ADDS_UP_TO, Estimate, GossipNodes
from vertibayes_protocols.schema import Schema

Places: TypeAlias = NDArray[np.int64]
Peers: TypeAlias = Callable[[Places, np.random.Generator], Places]  # of senders, one each


class Iteration(NamedTuple):
    """The nodes after an iteration."""

    estimates: Estimate  # what each node would send next
    present: NDArray[np.bool_]  # which nodes have not left


# ---- who may send to whom ------------------------------------------------------------------------


def complete(nodes: int) -> Peers:
    """Return the topology in which each node sends to any other node."""

    def draw(senders: Places, generator: np.random.Generator) -> Places:
        return (senders + generator.integers(1, max(nodes, 2), len(senders))) % nodes

    return draw


def along(neighbours: Any, nodes: int) -> Peers:
    """Return the topology in which each node sends to one of its neighbours."""
    places = sorted(neighbours) if hasattr(neighbours, "adj") else list(range(len(neighbours)))
    if places != list(range(nodes)):
        raise ValueError(f"neighbours must be of the nodes 0 to {nodes - 1}, got {len(places)}")
    lists = [np.array([*neighbours[node]], np.int64) for node in places]
    for node, peers in enumerate(lists):
        if not len(peers):
            raise ValueError(f"node {node} has no neighbour: it must have at least one")
        if peers.min() < 0 or peers.max() >= nodes:
            raise ValueError(f"node {node} has a neighbour that is not one of the {nodes} nodes")
    degrees, flat = np.array([len(peers) for peers in lists]), np.concatenate(lists)
    starts = np.cumsum(degrees) - degrees

    def draw(senders: Places, generator: np.random.Generator) -> Places:
        chosen = generator.integers(0, degrees[senders])
        return np.asarray(flat[starts[senders] + chosen])

    return draw


# ---- gossip --------------------------------------------------------------------------------------


def gossip(
    updates: Statistics,
    iterations: int,
    generator: np.random.Generator,
    *,
    neighbours: Any = None,
    slots: int = 1,
    latest: int = 0,
    asleep: float = 0.0,
    leaves: ArrayLike | None = None,
    adds_up_to: int = ADDS_UP_TO,
) -> Iterator[Iteration]:
    """Run gossip among nodes and return their estimates after each iteration, one by one.

    The weight of an estimate adds up to `adds_up_to`, and then grows by 1 in each iteration: 1 is
    Algorithm 4 as printed, and 2**53 is equation 27 alone.
    """
    nodes = GossipNodes(updates, adds_up_to)
    count = len(updates)
    for name, value, least in (("iterations", iterations, 0), ("slots", slots, 1),
                               ("latest", latest, 0), ("adds_up_to", adds_up_to, 1)):  # fmt: skip
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if not 0 <= asleep < 1:
        raise ValueError(f"asleep must be at least 0 and below 1, got {asleep}")
    ends = np.full(count, iterations) if leaves is None else np.asarray(leaves)
    if ends.shape != (count,):
        raise ValueError(f"leaves must be one number for each of {count} nodes, got {ends.shape}")
    if (ends < iterations).all():
        raise ValueError(f"leaves: all {count} nodes drop out before iteration {ends.max()}")
    peers = complete(count) if neighbours is None else along(neighbours, count)
    mail = _Mail(nodes, peers, latest, generator)
    return _run(mail, iterations, slots, asleep, ends)


def _run(
    mail: _Mail, iterations: int, slots: int, asleep: float, leaves: NDArray[Any]
) -> Iterator[Iteration]:
    nodes, generator = len(leaves), mail.generator
    phase = generator.integers(0, slots, nodes)
    for iteration in range(iterations):
        present = leaves > iteration
        awake = present & (generator.random(nodes) >= asleep)
        for slot in range(slots):
            if nodes > 1:
                mail.send(np.flatnonzero(awake & (phase == slot)))
            mail.deliver(present)
        yield Iteration(mail.nodes.estimate(), present)


class _Mail:
    """Messages on their way: a list for each of the next slots."""

    def __init__(
        self, nodes: GossipNodes, peers: Peers, latest: int, generator: np.random.Generator
    ) -> None:
        self.nodes, self.peers, self.generator = nodes, peers, generator
        self.due: list[list[tuple[Places, Estimate]]] = [[] for _ in range(latest + 1)]

    def send(self, senders: Places) -> None:
        """Have nodes send their estimates to random peers."""
        estimates = self.nodes.estimate()
        receivers = self.peers(senders, self.generator)
        late = self.generator.integers(0, len(self.due), len(senders))
        for slot, messages in enumerate(self.due):
            chosen = senders[late == slot]
            messages.append((receivers[late == slot], estimates.rows(chosen)))

    def deliver(self, present: NDArray[np.bool_]) -> None:
        """Let this slot's messages arrive, in random order, at the nodes that are there."""
        messages = self.due.pop(0)
        self.due.append([])
        if not messages:
            return
        receivers = np.concatenate([to for to, _ in messages])
        weights = np.concatenate([sent.weights for _, sent in messages])
        values = np.concatenate([sent.values for _, sent in messages])
        order = self.generator.permutation(len(receivers))
        order = order[present[receivers[order]]]
        self.nodes.receive(receivers[order], Estimate(weights[order], values[order]))


# ---- models --------------------------------------------------------------------------------------


def models_of(
    schema: Schema,
    estimates: Estimate,
    *,
    alpha: float = 1.0,
    floor: float = FLOOR,
    errors: Floats | None = None,
) -> list[NaiveBayes]:
    """Return the model of each node's estimate ([1]_, equation 27)."""
    sums = estimates.values * len(estimates.values)
    return [NaiveBayes(schema, alpha=alpha, floor=floor).fit_sums(row, errors) for row in sums]
