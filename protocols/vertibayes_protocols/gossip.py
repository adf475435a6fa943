"""Gossip averaging: nodes pass estimates on, each adding its own update and the last estimate.

    node i, each iteration    theta = merge(previous, received, update)
                              t = min(t of previous + t of received + 1,
                                      max(100, t of received + 1))
                              sends (t, theta) to a random peer
    on receipt                previous <- received;  received <- what came

t is the weight of an estimate in the next merge. Equation 25 adds both estimates, so that t should
add up too, as t_tot of equation 27; Algorithm 4 prints t of received + 1, with which a node's own
update keeps too much weight. A t that always adds up grows by half in each iteration, soon leaves
own updates without weight, and freezes the weights as they then are. So t adds up to 100, and then
grows by 1.

All nodes are vectorized: row i of each array is node i. A party between machines is one node.

Security: none of its own. What travels is the mean of updates that their nodes have already
protected by whole copies of noise (`vertibayes_protocols.accounting`); each is as private as its
noise. Leakage: an estimate of small weight shows few updates; the first of a node is its update.

References
----------
.. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Algorithms 4 and 5, equations 26 and 27.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

ADDS_UP_TO = 100


class Estimate(NamedTuple):
    """Estimates of the mean update of all nodes."""

    weights: NDArray[np.int64]  # t, of each estimate in a merge; 0: none came yet
    values: Floats  # theta

    def rows(self, places: NDArray[np.integer]) -> Estimate:
        """Return the estimates of some nodes."""
        return Estimate(self.weights[places], self.values[places])


def merge(
    previous: Estimate, received: Estimate, update: Floats, adds_up_to: int = ADDS_UP_TO
) -> Estimate:
    """Return the nodes' new estimates ([1]_, equation 26); Algorithm 4 has an `adds_up_to` of 1."""
    total = previous.weights + received.weights + 1
    sums = previous.weights[:, None] * previous.values + received.weights[:, None] * received.values
    weights = np.minimum(total, np.maximum(adds_up_to, received.weights + 1))
    return Estimate(weights, (sums + update) / total[:, None])


class GossipNodes:
    """Nodes, each with its update and the last two estimates that it has received."""

    def __init__(self, updates: NDArray[np.int64] | Floats, adds_up_to: int = ADDS_UP_TO) -> None:
        if updates.ndim != 2 or not len(updates) or not np.isfinite(updates).all():
            raise ValueError(
                f"updates must be finite, in one row per node, got the shape {updates.shape}"
            )
        self.updates, self.adds_up_to = updates.astype(np.float64), adds_up_to
        nothing = Estimate(np.zeros(len(updates), np.int64), np.zeros_like(self.updates))
        self.previous, self.received = nothing, nothing

    def estimate(self) -> Estimate:
        """Return the estimates that the nodes send in this iteration."""
        return merge(self.previous, self.received, self.updates, self.adds_up_to)

    def receive(self, receivers: NDArray[np.integer], sent: Estimate) -> None:
        """Let messages arrive, those to the same node in the order given."""
        order = np.argsort(receivers, kind="stable")
        to = receivers[order]
        ends = np.flatnonzero(np.append(to[1:] != to[:-1], True)[: len(to)])
        starts = np.append(0, ends[:-1] + 1)[: len(ends)]
        several = ends > starts
        nodes, last, before = to[ends], order[ends], order[ends - several]
        self.previous = _replaced(self.previous, nodes, *self.received.rows(nodes))
        self.previous = _replaced(self.previous, nodes[several], *sent.rows(before[several]))
        self.received = _replaced(self.received, nodes, *sent.rows(last))


def _replaced(
    old: Estimate, nodes: NDArray[np.integer], weights: NDArray[np.int64], values: Floats
) -> Estimate:
    """Return estimates with those of some nodes replaced."""
    new = Estimate(old.weights.copy(), old.values.copy())
    new.weights[nodes], new.values[nodes] = weights, values
    return new
