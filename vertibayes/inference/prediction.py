"""Prediction of one variable from the known values of the others, and likelihoods of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import Array
from vertibayes.inference.elimination import eliminated, parts
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import batches, check_codes
from vertibayes.model import Model
from vertibayes_protocols.site.data import SiteData

FEW_RECORDS = 20  # for which the same part of the network matters
MANY_PARTS = 50  # with few records each: a junction tree computes these records together
SMALL_TREE = 20_000  # states of all cliques
MIXED = 1e-9  # share of the uniform distribution in the CPTs that predict impossible records


def posterior(network: Model, codes: Mapping[str, NDArray[np.integer]], target: str) -> Array:
    """Return the distribution of a target given the known values of each record."""
    check_codes(network.cardinalities, codes)
    if target not in network.variables:
        raise ValueError(f"the network has no variable {target!r}")
    records = len(next(iter(codes.values()))) if codes else 1
    states = network.cardinalities
    unknown = np.zeros(records, np.bool_)
    known = {n: codes[n] < states[n] if n in codes else unknown for n in network.variables}
    result = np.zeros((records, states[target]))
    groups = list(parts(network.structure, known, target))
    few = [part for part in groups if len(part.records) < FEW_RECORDS and len(part.open) > 1]
    if len(few) >= MANY_PARTS:
        _propagate(network, np.concatenate([part.records for part in few]), codes, target, result)
    for part in groups:
        if not result[part.records].any(axis=1).all():
            result[part.records] = eliminated(network, part, codes, target)
    return result


def _propagate(
    network: Model,
    records: NDArray[np.intp],
    codes: Mapping[str, NDArray[np.integer]],
    target: str,
    result: Array,
) -> None:
    """Fill in the records' distributions with a junction tree, if it is small.

    Records that miss different values share most of its computations.
    """
    states = network.cardinalities
    try:
        tree = JunctionTree.of(network.structure, states, SMALL_TREE)
    except ValueError:
        return
    own = {name: column[records] for name, column in codes.items()}
    own[target] = np.full(len(records), states[target])
    each = [b.propagate(network).marginal((target,)) for b in batches(tree, states, own)]
    result[records] = np.concatenate(each)


class Prediction(NamedTuple):
    """The distribution of a target for each record."""

    probabilities: Array  # columns in the order of ``network.variables[target].states``
    impossible: NDArray[np.bool_]


def predicted(network: Model, data: SiteData, target: str) -> Prediction:
    """Return the distribution of a target for each record, and which records are impossible.

    An impossible record is predicted with a network whose CPTs are mixed with a share of 1e-9 of
    the uniform distribution. Only the states of the target that need the fewest impossible values
    then keep probability, in the proportions that the possible values give them. If all parents of
    the target are known, and the value of a child is impossible for every state of the target, the
    result is P(target | parents).
    """
    codes = known_codes(network, data)
    probabilities = posterior(network, codes, target)
    impossible = np.asarray(~probabilities.any(axis=1))
    if impossible.any():
        own = {name: column[impossible] for name, column in codes.items()}
        probabilities[impossible] = posterior(_mixed(network), own, target)
    if not codes:  # one row for all records
        probabilities = probabilities.repeat(data.records, axis=0)
        impossible = impossible.repeat(data.records)
    return Prediction(probabilities, impossible)


def _mixed(network: Model) -> Model:
    """Return a network in which nothing is impossible."""
    cpts = {n: (1 - MIXED) * cpt + MIXED / len(cpt) for n, cpt in network.cpts.items()}
    return replace(network, cpts=cpts)


def predict_proba(network: Model, data: SiteData, target: str) -> Array:
    """Return the distribution of a target for each record.

    Parameters
    ----------
    network, data, target
        As `predicted`, which also returns the records that are impossible under the network.

    Returns
    -------
    probabilities : ndarray of shape (n, states of the target)
        Columns in the order of ``network.variables[target].states``.

    Raises
    ------
    ValueError
        As `predicted`.

    Examples
    --------
    >>> from vertibayes import read_bif
    >>> network = read_bif('''
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable wet { type discrete [ 2 ] { no, yes }; }
    ... probability ( rain ) { table 0.75, 0.25; }
    ... probability ( wet | rain ) { (no) 1.0, 0.0; (yes) 0.5, 0.5; }''')
    >>> data = SiteData({"wet": network.variables["wet"]}, {"wet": np.array([0, 1], np.uint8)})
    >>> predict_proba(network, data, "rain").round(3)
    array([[0.857, 0.143],
           [0.   , 1.   ]])
    >>> predict(network, data, "rain").tolist()
    ['no', 'yes']
    """
    return predicted(network, data, target).probabilities


def predict(network: Model, data: SiteData, target: str) -> NDArray[np.str_]:
    """Return the most probable state of a target, the first of equals, for each record.

    Parameters
    ----------
    network, data, target
        As `predicted`; errors and an example are those of `predict_proba`.

    Returns
    -------
    states : ndarray of shape (n,), dtype str
        The state of the target for each record.
    """
    best = predict_proba(network, data, target).argmax(axis=1)
    names: NDArray[np.str_] = np.array(network.variables[target].states)[best]
    return names


def known_codes(network: Model, data: SiteData) -> dict[str, NDArray[np.integer]]:
    """Return the codes of the columns that are variables of a network.

    If the last state of a variable of the network is that of missing values, a missing value of the
    data has this state.
    """
    known = [variable for name, variable in data.variables.items() if name in network.variables]
    for variable in known:
        network.check_states(variable, "in the data")
    return {variable.name: data.codes[variable.name] for variable in known}
