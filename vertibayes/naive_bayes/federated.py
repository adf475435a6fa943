"""Federated naive Bayes: nodes send noisy statistics of their records, and a model is their sum.

    node i        exact_updates    n, m, S, Q of its records                      (equations 14, 15)
                  local_updates    the same plus noise: its local update               (Algorithm 2)
    aggregator    aggregate        the sum of the local updates, as a model            (Algorithm 3)
                  `online`         adds the update of a new node to a model  (equations 22 to 24)

In the notation of [1]_, n counts the records of each class and m those of each class and state; S
sums a number over the records of each class, and Q its square. An update is all of these in one
vector of k values.

Every node holds other records of the same variables. With local noise (``laplace``, ``gaussian``) a
node adds a whole copy, which protects its records whatever others do; the sum of n updates then has
n copies. With ``polya`` shares the noise of all nodes together is one copy, 1 / n of that variance,
but only the sum may become known: `vertibayes_protocols.queries.sums.sums` sums without showing a
summand.

The functions here run all nodes in one process.

References
----------
.. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Sections 3.1, 3.2 and 4.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vertibayes.naive_bayes.base import FLOOR, Floats, NaiveBayes, Statistics
from vertibayes_protocols.accounting import Accounting, Privacy, changes_of, noise_of_each
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.schema import Schema, check_declared
from vertibayes_protocols.site.statistics import LocalData, Numeric, parts

SENSITIVITIES = ("declared", "paper")
NOT_PRIVATE = (
    "sensitivity='paper' is not private: the noise is as large as the largest value at the node, "
    "so that the noise reveals this value, and eps promises nothing"
)


class NotPrivateWarning(UserWarning):
    """Noise was drawn that protects nothing."""


class Bytes(Protocol):
    """Where the coins of shares come from; OpenDP draws whole copies by itself."""

    def bytes(self, count: int) -> bytes:
        """Return so many random bytes."""
        ...


# ---- the nodes -----------------------------------------------------------------------------------


def exact_updates(schema: Schema, nodes: Sequence[LocalData]) -> NDArray[np.int64]:
    """Return the statistics of each node's records, without noise.

    Parameters
    ----------
    schema : Schema
        The class and the features.
    nodes : sequence of LocalData
        The records of each node. A node may have no records, or no record of a class.

    Returns
    -------
    updates : ndarray of shape (nodes, k), dtype int64

    Raises
    ------
    ValueError
        If there is no node.
    DataError
        If a node has other states or bounds than declared; the error names the node.
    """
    if not nodes:
        raise ValueError("nodes must have at least one node, got 0")
    for place, data in enumerate(nodes):
        check_declared(f"node {place}", schema, data)
    return np.array([schema.measure(data) for data in nodes])


def local_updates(
    schema: Schema,
    nodes: Sequence[LocalData],
    privacy: Privacy | Sequence[Privacy],
    *,
    sensitivity: str = "declared",
    most_records: int = 1,
    randomness: Bytes | None = None,
) -> NDArray[np.int64]:
    """Return the local update of each node: its statistics plus noise ([1]_, Algorithm 2).

    Parameters
    ----------
    schema : Schema
        With `centred`, if it has numbers.
    nodes : sequence of LocalData
        The records of each node.
    privacy : Privacy or sequence of Privacy
        Of all nodes, or of each node: nodes may have different budgets if the noise is local.
    sensitivity : {"declared", "paper"}, default="declared"
        By how much one record changes a sum of numbers: by as much as the declared bounds permit,
        or by the largest absolute value in the class at the node, as in [1]_. The second one is
        **not private** and emits a `NotPrivateWarning`. It needs bounds about 0; see `about_zero`.
    most_records : int, default=1
        The most records of a node, for a `privacy` that protects parties.
    randomness : Randomness, optional
        Where the coins of shares come from; the operating system, if None.

    Returns
    -------
    updates : ndarray of shape (nodes, k), dtype int64

    Raises
    ------
    ValueError
        If there is no node, the privacies are not one for each node, or a number is not summed
        about the middle of its bounds.
    DataError
        If a node has other states or bounds than declared; the error names the node.
    ImportError
        If copies of noise are drawn and OpenDP is not installed.
    """
    updates = exact_updates(schema, nodes)
    asked = _each(privacy, len(nodes))
    if sensitivity not in SENSITIVITIES:
        raise ValueError(f"sensitivity must be 'declared' or 'paper', got {sensitivity!r}")
    if sensitivity == "paper":
        if not all(each.is_local for each in asked):
            raise ValueError("sensitivity='paper' needs noise='laplace' or noise='gaussian'")
        warnings.warn(NOT_PRIVATE, NotPrivateWarning, stacklevel=2)
        changes = [paper_changes(schema, data) for data in nodes]
    accountings = {each: Accounting(schema, each, most_records) for each in set(asked)}
    for place, each in enumerate(asked):
        accounting = accountings[each]
        if sensitivity == "paper":
            updates[place] += noise_of_each(changes[place], accounting.copy)
        else:
            draw = accounting.noise_of_all(len(nodes), randomness)
            updates[place] += draw(updates.shape[1])
    return updates


def promised(
    schema: Schema,
    privacy: Privacy,
    nodes: int,
    *,
    sensitivity: str = "declared",
    most_records: int = 1,
) -> SumPromise | None:
    """Return what the local update of a node with this `privacy` promises its records.

    Parameters
    ----------
    schema : Schema
        As of `local_updates`.
    privacy : Privacy
        The noise of the node.
    nodes : int
        How many nodes there are.
    sensitivity, most_records
        As of `local_updates`.

    Returns
    -------
    promise : SumPromise or None
        None with ``sensitivity="paper"``, which is not private. With shares of noise, the promise
        is of the sum of all updates.
    """
    if sensitivity == "paper":
        return None
    accounting = Accounting(schema, privacy, most_records)
    if privacy.is_local:
        return accounting.promise([accounting.copy()], nodes)
    return accounting.promise(accounting.noises([nodes] * nodes), nodes, checked=False)


def paper_changes(schema: Schema, data: LocalData) -> NDArray[np.int64]:
    """Return by how much a record changes each value, measured on the node's records as in [1]_.

    A count changes by 1. A sum changes by the largest absolute value in the class, a sum of squares
    by its square ([1]_, section 3.1); by the least step of the grid in a class without records.
    """
    counts = sum(part.cells for part in parts(schema.statistics[0], schema.variables))
    changes = [np.ones(counts, np.int64)]
    classes = data.codes[schema.target.name]
    for name, numeric in schema.numerics.items():
        if numeric.middle:
            raise ValueError(
                f"{name}: sensitivity='paper' needs bounds about 0, got {numeric.low} to "
                f"{numeric.high}; use about_zero"
            )
        places = np.abs(numeric.centred(data.numbers[name]))
        of_class = (places[classes == c] for c in range(len(schema.target.states)))
        largest = np.array([each.max(initial=1) for each in of_class])
        changes += [largest, largest**2]
    return np.concatenate(changes)


def about_zero(schema: Schema, nodes: Sequence[LocalData]) -> tuple[Schema, list[LocalData]]:
    """Return the schema and the nodes with bounds about 0: -M to M, M the larger absolute bound."""
    numerics = {
        name: Numeric(name, -max(abs(low), abs(high)), max(abs(low), abs(high)))
        for name, low, high in schema.numerics.values()
    }
    features = {name: numerics.get(name, feature) for name, feature in schema.features.items()}
    return replace(schema, features=features), [replace(d, numerics=numerics) for d in nodes]


def _each(privacy: Privacy | Sequence[Privacy], nodes: int) -> Sequence[Privacy]:
    if isinstance(privacy, Privacy):
        return [privacy] * nodes
    if len(privacy) != nodes:
        raise ValueError(f"privacy must be one for each of the {nodes} nodes, got {len(privacy)}")
    if len(set(privacy)) > 1 and not all(each.is_local for each in privacy):
        raise ValueError(
            "nodes with different budgets need noise='laplace' or noise='gaussian': the shares of "
            "other noise add up to a copy only if all nodes have the same budget"
        )
    return privacy


# ---- which updates to use ------------------------------------------------------------------------


def relative_error(schema: Schema, updates: Statistics, exact: Statistics) -> Floats:
    """Return the relative error of updates, summed over their values ([1]_, equation 28).

    Where the exact value is 0, equation 28 divides by 0. Here the divisor is then by how much one
    record changes the value at most, as if there were one record: to leave such values out would
    make a node of few records look precise. Only the node itself knows the exact values, and
    may compute this; see `precise_updates`.
    """
    divisors = np.where(exact == 0, changes_of(schema), np.abs(exact))
    return np.asarray((np.abs(updates - exact) / divisors).sum(axis=-1))


def precise_updates(updates: Statistics, errors: Floats, threshold: float) -> Statistics:
    """Return the updates whose relative error is at most a threshold ([1]_, section 4.2).

    Whether a node stays out depends on its exact values, and is not covered by eps: a node that
    stays out shows that its noise is large compared with its counts, so roughly how few records it
    has.
    """
    kept = errors <= threshold
    if not kept.any():
        raise ValueError(
            f"threshold must be at least {errors.min():.4g} (the smallest relative error), got "
            f"{threshold}: no update is left"
        )
    return updates[kept]


# ---- the aggregator ------------------------------------------------------------------------------


def aggregate(
    schema: Schema,
    updates: Statistics,
    *,
    alpha: float = 1.0,
    floor: float = FLOOR,
    errors: Floats | None = None,
) -> NaiveBayes:
    """Return the model of the sum of local updates ([1]_, Algorithm 3).

    Parameters
    ----------
    schema : Schema
        The class and the features.
    updates : ndarray of shape (nodes, k)
        One row for each node.
    alpha, floor : float
        As of `NaiveBayes`. `floor` is a number of records for counts, and a share of the square of
        half the range for variances.
    errors : ndarray of shape (k,), dtype float64, optional
        The standard errors of the sums under their noise; see `NaiveBayes.fit_sums`. The paper has
        `floor` alone.

    Raises
    ------
    ValueError
        If there is no update, an update has too few or too many values, or one is not finite.
    """
    if updates.ndim != 2 or not len(updates):
        raise ValueError(f"updates must be one row for each node, got the shape {updates.shape}")
    model = NaiveBayes(schema, alpha=alpha, floor=floor)
    return model.fit_sums(updates.sum(axis=0), errors)
