"""Conditional probability tables from counts, and the scores of a network.

The pseudo-count is added to each count of a CPT's column, and the column is divided by its sum.
With pseudo-count 0, this is maximum likelihood: a combination that no record has gets probability
zero, and a new record with this combination is impossible. The default of one half is Jeffreys'
prior for each column, which predicts held-out records best (docs/missing.md has the measurements).
A weight that is spread over the cells of a CPT, as in BDeu, is too small if the CPT has many cells.

References
----------
Jeffreys (1946), "An invariant form for the prior probability in estimation problems".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Counter
from vertibayes.dag import Structure
from vertibayes.model import with_missing_state, without_missing
from vertibayes.network import Network
from vertibayes.settings import PSEUDO_COUNT
from vertibayes.table_scores import free_parameters, k2_scores, log_likelihoods
from vertibayes_protocols.variables import Rows, Variable


def fit_cpts(
    counter: Counter,
    structure: Structure,
    *,
    pseudo_count: float = PSEUDO_COUNT,
    missing: bool = False,
    rows: Rows = Rows(),
) -> Network:
    """Fit the CPTs of a structure from the tables of its families: one call.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    pseudo_count : float, default=0.5
        The number that is added to each cell; 0 for maximum likelihood.
    missing : bool, default=False
        Whether a missing value is a state, named "missing"; otherwise each family counts the
        records that are complete in it.
    rows : Rows
        The records to learn from; all by default.

    Returns
    -------
    network : Network
        Distributions given parent states that no record has are uniform; `Network.unseen` counts
        them.

    Raises
    ------
    ValueError
        If the pseudo-count is negative or not finite, or a node is unknown.
    """
    check_pseudo_count(pseudo_count)
    tables = counter.tables(structure.families, missing=missing, rows=rows)
    named = with_missing_state if missing else without_missing
    variables = {node: named(counter.variables[node]) for node in structure.nodes}
    network = network_from(structure, variables, tables, pseudo_count)
    nodes = {node for node in structure.nodes if missing and counter.variables[node].missing}
    return replace(network, missing_states=frozenset(nodes))


def check_pseudo_count(pseudo_count: float) -> None:
    """Refuse a pseudo-count that is negative or not finite."""
    if not 0 <= pseudo_count < np.inf:
        raise ValueError(
            f"the pseudo-count must be a finite number of at least 0, got {pseudo_count}"
        )


def network_from(
    structure: Structure,
    variables: Mapping[str, Variable],
    counts: Sequence[NDArray[Any]],
    pseudo_count: float = 0.0,
) -> Network:
    """Return the network whose CPTs are observed or expected counts, divided by their sums."""
    cpts: dict[str, NDArray[np.float64]] = {}
    unseen: dict[str, int] = {}
    for node, table in zip(structure.nodes, counts, strict=True):
        cpts[node] = conditional(table, pseudo_count)
        unseen[node] = int((table.sum(axis=0) == 0).sum())
    return Network(structure, variables, cpts, unseen)


def conditional(table: NDArray[Any], pseudo_count: float) -> NDArray[np.float64]:
    """Return P(child | parents) from counts; columns of zeros become uniform.

    Examples
    --------
    >>> conditional(np.array([[3, 0], [1, 0]]), pseudo_count=0.0)
    array([[0.75, 0.5 ],
           [0.25, 0.5 ]])
    """
    counts = table + float(pseudo_count)
    totals = counts.sum(axis=0, keepdims=True)
    uniform = np.full_like(counts, 1 / counts.shape[0])
    return np.asarray(np.divide(counts, totals, out=uniform, where=totals > 0))


class Scores(NamedTuple):
    """Scores of a structure with its maximum-likelihood CPTs, in nats; higher is better.

    AIC is the log-likelihood minus the number k of free parameters, and BIC the log-likelihood
    minus k / 2 times ln n.
    """

    log_likelihood: float
    k2: float
    aic: float
    bic: float
    free_parameters: int

    def as_json(self) -> Mapping[str, float]:
        """Return the scores as JSON data."""
        return self._asdict()


def scores(
    counter: Counter, structure: Structure, *, missing: bool = False, rows: Rows = Rows()
) -> Scores:
    """Score a structure from the tables of its families, which the CPTs also need.

    Each family is scored over the records that are complete in it.

    Parameters
    ----------
    counter, structure, missing, rows
        As `fit_cpts`.

    Returns
    -------
    scores : Scores
    """
    tables = counter.tables(structure.families, missing=missing, rows=rows)
    likelihood = sum(log_likelihoods(tables))
    parameters = sum(free_parameters(table.shape) for table in tables)
    records = max(rows.count(counter.records), 1)
    return Scores(
        likelihood,
        sum(k2_scores(tables)),
        likelihood - parameters,
        likelihood - parameters * float(np.log(records)) / 2,
        parameters,
    )
