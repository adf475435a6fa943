"""Prediction of one variable from what is known of the others, and the records' likelihoods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from vertibayes.inference.algebra import Array
from vertibayes.inference.blocks import batches
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.network import Network
from vertibayes.parameters.cpt import has_missing_state


def posterior(network: Network, codes: Mapping[str, NDArray[np.integer]], target: str) -> Array:
    """Return the distribution of a target given what is known of each record.

    Parameters
    ----------
    network : Network
    codes : mapping of str to ndarray of shape (n,), dtype int
        Of any of the variables, codes in the order of their states; ``len(states)`` where missing.
        The target's own codes are not looked at.
    target : str

    Returns
    -------
    probabilities : ndarray of shape (n, states of the target)
        Columns in the order of the target's states; zeros where what is known has probability zero.
        One row if there are no codes.

    Raises
    ------
    ValueError
        If the target or a variable is none of the network's, or the network's cliques are too
        large.
    TypeError
        If codes are no integers.
    """
    if target not in network.variables:
        raise ValueError(f"the network has no variable {target!r}")
    states = network.cardinalities
    records = len(next(iter(codes.values()))) if codes else 1
    known = {**codes, target: np.full(records, states[target])}
    tree = JunctionTree.of(network.structure, states)
    found = [b.propagate(network).marginal((target,)) for b in batches(tree, states, known)]
    return np.concatenate(found)


def log_likelihoods(network: Network, data: SiteData) -> Array:
    """Return the log-likelihood of each record, in nats; its missing cells are summed over.

    Parameters
    ----------
    network : Network
    data : SiteData
        Columns of the network's variables, and maybe others.

    Returns
    -------
    log_likelihoods : ndarray of shape (n,)
        Minus infinity where a record has probability zero.

    Raises
    ------
    ValueError
        If a variable's states are not the network's: it names the variable.
    """
    tree = JunctionTree.of(network.structure, network.cardinalities)
    parts = batches(tree, network.cardinalities, known_codes(network, data))
    return np.concatenate([batch.propagate(network).log_likelihoods for batch in parts])


def predict_proba(network: Network, data: SiteData, target: str) -> Array:
    """Return the distribution of a target for each record.

    Parameters
    ----------
    network : Network
    data : SiteData
        Columns of any of the network's variables; the target's own is not looked at.
    target : str

    Returns
    -------
    probabilities : ndarray of shape (n, states of the target)
        Columns in the order of ``network.variables[target].states``.

    Raises
    ------
    ValueError
        If the target is none of the network's, a variable's states are not the network's, or what
        is known of a record has probability zero: it names the first.
    """
    codes = known_codes(network, data)
    found = posterior(network, codes, target)
    if not codes:
        found = np.repeat(found, data.records, axis=0)
    impossible = np.flatnonzero(found.sum(axis=1) == 0)
    if len(impossible):
        raise ValueError(
            f"record {impossible[0] + 1}: what is known of it has probability zero under the "
            f"network ({len(impossible)} such records); learn it with a pseudo-count"
        )
    return found


def predict(network: Network, data: SiteData, target: str) -> NDArray[np.str_]:
    """Return the most probable state of a target, the first of equals, for each record.

    Returns
    -------
    states : ndarray of shape (n,), dtype str

    Raises
    ------
    ValueError
        As `predict_proba`.
    """
    best = predict_proba(network, data, target).argmax(axis=1)
    names: NDArray[np.str_] = np.array(network.variables[target].states)[best]
    return names


def known_codes(network: Network, data: SiteData) -> dict[str, NDArray[np.integer]]:
    """Return the codes of those columns that are variables of a network.

    A network that has the missing cell as its last state takes it for that.

    Raises
    ------
    ValueError
        If a variable's states are not the network's: it names the variable.
    """
    names = [name for name in data.variables if name in network.variables]
    for name in names:
        states, wanted = data.variables[name].states, network.variables[name]
        appended = has_missing_state(wanted) and states == wanted.states[:-1]
        if states != wanted.states and not appended:
            raise ValueError(
                f"{name} has other states in the data than in the network, or in another order"
            )
    return {name: data.codes[name] for name in names}
