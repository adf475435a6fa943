"""Prediction of one variable from what is known of the others, and the records' likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from vertibayes.inference.algebra import Array
from vertibayes.inference.blocks import batches
from vertibayes.inference.elimination import eliminated
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import check_codes
from vertibayes.inference.relevance import parts
from vertibayes.network import Network
from vertibayes.parameters.cpt import has_missing_state

FEW_RECORDS = 20  # with one part of the network that matters
MANY_PARTS = 50  # with few records each: a junction tree computes them together
SMALL_TREE = 20_000  # states of all cliques
MIXED = 1e-9  # the share of the uniform distribution by which impossible records are predicted


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
    check_codes(network.cardinalities, codes)
    if target not in network.variables:
        raise ValueError(f"the network has no variable {target!r}")
    records = len(next(iter(codes.values()))) if codes else 1
    states = network.cardinalities
    unknown = np.zeros(records, np.bool_)
    known = {n: codes[n] < states[n] if n in codes else unknown for n in network.variables}
    found = np.zeros((records, states[target]))
    groups = list(parts(network.structure, known, target))
    few = [part for part in groups if len(part.records) < FEW_RECORDS and len(part.open) > 1]
    if len(few) >= MANY_PARTS:
        _propagate(network, np.concatenate([part.records for part in few]), codes, target, found)
    for part in groups:
        if not found[part.records].any(axis=1).all():
            found[part.records] = eliminated(network, part, codes, target)
    return found


def _propagate(
    network: Network,
    records: NDArray[np.intp],
    codes: Mapping[str, NDArray[np.integer]],
    target: str,
    found: Array,
) -> None:
    """Fill in the records' distributions by a junction tree, if it is small.

    Records that differ in what is missing share most of its computations.
    """
    states = network.cardinalities
    try:
        tree = JunctionTree.of(network.structure, states, SMALL_TREE)
    except ValueError:
        return
    own = {name: column[records] for name, column in codes.items()}
    own[target] = np.full(len(records), states[target])
    each = [b.propagate(network).marginal((target,)) for b in batches(tree, states, own)]
    found[records] = np.concatenate(each)


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


class Prediction(NamedTuple):
    """The distribution of a target for each record.

    Parameters
    ----------
    probabilities : ndarray of shape (n, states of the target)
        Columns in the order of ``network.variables[target].states``; each row sums to 1.
    impossible : ndarray of shape (n,), dtype bool
        The records that have a combination of values with probability zero under the network,
        among the values that matter for the target. `predicted` says what they are predicted by.
    """

    probabilities: Array
    impossible: NDArray[np.bool_]


def predicted(network: Network, data: SiteData, target: str) -> Prediction:
    """Return the distribution of a target for each record, and which records are impossible.

    An impossible record is predicted by a network whose CPTs are each mixed with a share of 1e-9 of
    the uniform distribution: the states of the target that need the fewest impossible values
    remain, in the proportions that the possible values give them. If the target's parents are all
    known, and a child's value is impossible whatever the target, that is P(target | parents).

    Parameters
    ----------
    network : Network
    data : SiteData
        Columns of any of the network's variables; the target's own is not looked at.
    target : str

    Returns
    -------
    prediction : Prediction

    Raises
    ------
    ValueError
        If the target is none of the network's, a variable's states are not the network's, or a
        record lacks so many values that the sums over them are too large.
    """
    codes = known_codes(network, data)
    found = posterior(network, codes, target)
    impossible = np.asarray(~found.any(axis=1))
    if impossible.any():
        own = {name: column[impossible] for name, column in codes.items()}
        found[impossible] = posterior(_mixed(network), own, target)
    if not codes:  # one row for all
        return Prediction(found.repeat(data.records, axis=0), impossible.repeat(data.records))
    return Prediction(found, impossible)


def _mixed(network: Network) -> Network:
    """Return a network in which nothing is impossible."""
    cpts = {n: (1 - MIXED) * cpt + MIXED / len(cpt) for n, cpt in network.cpts.items()}
    return replace(network, cpts=cpts)


def predict_proba(network: Network, data: SiteData, target: str) -> Array:
    """Return the distribution of a target for each record.

    Parameters
    ----------
    network, data, target
        As `predicted`, which also tells which records the network calls impossible.

    Returns
    -------
    probabilities : ndarray of shape (n, states of the target)
        Columns in the order of ``network.variables[target].states``.

    Raises
    ------
    ValueError
        As `predicted`.
    """
    return predicted(network, data, target).probabilities


def predict(network: Network, data: SiteData, target: str) -> NDArray[np.str_]:
    """Return the most probable state of a target, the first of equals, for each record.

    Returns
    -------
    states : ndarray of shape (n,), dtype str

    Raises
    ------
    ValueError
        As `predicted`.
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
