"""Prediction of one variable from what is known of the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import Array, Batch
from vertibayes.network import Network


def posterior(network: Network, codes: Mapping[str, NDArray[np.integer]], target: str) -> Array:
    """Return the distribution of a target given what is known of each record.

    Parameters
    ----------
    network : Network
    codes : mapping of str to ndarray of shape (n,), dtype int
        Of any of the other variables, codes in the order of their states; ``len(states)`` where
        missing. The target's own codes are not looked at.
    target : str

    Returns
    -------
    probabilities : ndarray of shape (n, states of the target)
        Zeros where what is known has probability zero.

    Raises
    ------
    ValueError
        If the target or a variable is none of the network's, or the network's cliques are too
        large.
    """
    if target not in network.variables:
        raise ValueError(f"the network has no variable {target!r}")
    states = {name: len(variable.states) for name, variable in network.variables.items()}
    records = len(next(iter(codes.values()), ()))
    known = {name: column for name, column in codes.items() if name != target}
    known[target] = np.full(records if codes else 1, states[target])
    batch = Batch(JunctionTree.of(network.structure, states), states, known)
    return batch.propagate(network).marginal((target,))


def predict_proba(network: Network, codes: Mapping[str, NDArray[np.integer]], target: str) -> Array:
    """Return the distribution of a target, as `posterior`, refusing contradictory records.

    Raises
    ------
    ValueError
        Also if what is known of a record has probability zero: it names the first.
    """
    found = posterior(network, codes, target)
    impossible = np.flatnonzero(found.sum(axis=1) == 0)
    if len(impossible):
        raise ValueError(
            f"record {impossible[0] + 1}: what is known of it has probability zero under the "
            f"network ({len(impossible)} such records); learn it with a pseudo-count"
        )
    return found


def predict(
    network: Network, codes: Mapping[str, NDArray[np.integer]], target: str
) -> NDArray[np.str_]:
    """Return the most probable state of a target, the first of equals, for each record.

    Raises
    ------
    ValueError
        As `predict_proba`.
    """
    best = predict_proba(network, codes, target).argmax(axis=1)
    names: NDArray[np.str_] = np.array(network.variables[target].states)[best]
    return names
