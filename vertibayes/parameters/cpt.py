"""Conditional probability tables from counts, and the scores of a network.

A CPT's column is its counts, each with the pseudo-count added, divided by their sum. With none (0)
that is maximum likelihood: a combination that no record has gets probability zero, and a new record
that has it is impossible. The default is a half: Jeffreys' prior of each column, which predicts
records that were left out best (docs/missing.md has the measurements; a weight that is spread over
the cells of a CPT, as BDeu's, is too small where there are many).

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

from protocols.variables import Rows, Variable
from vertibayes.counting import Counter
from vertibayes.network import Network, Structure
from vertibayes.structure.scores import free_parameters, k2_scores, log_likelihood

MISSING_STATE = "missing"

PSEUDO_COUNT = 0.5  # added to each cell of a CPT by default


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
        Added to each cell; 0 for maximum likelihood. The counts themselves stay exact.
    missing : bool, default=False
        Whether missing is a state, named "missing"; else a family counts the records that are
        complete in it.
    rows : Rows
        The records to learn from; all by default.

    Returns
    -------
    network : Network
        Parent configurations without a record are uniform; `Network.unseen` counts them.

    Raises
    ------
    ValueError
        If the pseudo-count is negative or not finite, or a node is unknown.
    """
    check_pseudo_count(pseudo_count)
    tables = counter.tables(structure.families, missing=missing, rows=rows)
    named = with_missing_state if missing else without_gaps
    variables = {node: named(counter.variables[node]) for node in structure.nodes}
    network = network_from(structure, variables, tables, pseudo_count)
    gaps = {node for node in structure.nodes if missing and counter.variables[node].missing}
    return replace(network, missing_states=frozenset(gaps))


def check_pseudo_count(pseudo_count: float) -> None:
    """Refuse a pseudo-count that is negative or not finite.

    Raises
    ------
    ValueError
        It names the number.
    """
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
    """Return the network whose CPTs are counts, observed or expected, divided by their sums.

    Parameters
    ----------
    structure : Structure
    variables : mapping of str to Variable
    counts : sequence of ndarray
        Of each node's family, in the order of the structure's nodes; axis 0 the node.
    pseudo_count : float, default=0
        Added to each cell.
    """
    cpts: dict[str, NDArray[np.float64]] = {}
    unseen: dict[str, int] = {}
    for node, table in zip(structure.nodes, counts, strict=True):
        cpts[node] = conditional(table, pseudo_count)
        unseen[node] = int((table.sum(axis=0) == 0).sum())
    return Network(structure, variables, cpts, unseen)


def conditional(table: NDArray[Any], pseudo_count: float) -> NDArray[np.float64]:
    """Return P(child | parents) from counts; columns of zeros become uniform."""
    counts = table + float(pseudo_count)
    totals = counts.sum(axis=0, keepdims=True)
    uniform = np.full_like(counts, 1 / counts.shape[0])
    return np.asarray(np.divide(counts, totals, out=uniform, where=totals > 0))


def without_gaps(variable: Variable) -> Variable:
    """Return a variable all of whose cells are known."""
    return Variable(variable.name, variable.states)


def with_missing_state(variable: Variable) -> Variable:
    """Return a variable whose missing cells are a state of their own."""
    if not variable.missing:
        return variable
    name = MISSING_STATE
    while name in variable.states:
        name += "_"
    return Variable(variable.name, (*variable.states, name))


def has_missing_state(variable: Variable) -> bool:
    """Whether a variable's last state looks like that of its missing cells."""
    return variable.states[-1].rstrip("_") == MISSING_STATE


class Scores(NamedTuple):
    """Scores of a structure with its maximum-likelihood CPTs, in nats; higher is better.

    AIC and BIC are on the scale of the log-likelihood: less the number of free parameters, and
    less half of it times ln n.
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
    """Score a structure from the tables of its families, which CPTs need anyway.

    With missing cells each family is scored over the records that are complete in it.
    """
    tables = counter.tables(structure.families, missing=missing, rows=rows)
    likelihood = sum(map(log_likelihood, tables))
    parameters = sum(free_parameters(table.shape) for table in tables)
    records = max(rows.count(counter.records), 1)
    return Scores(
        likelihood,
        sum(k2_scores(tables)),
        likelihood - parameters,
        likelihood - parameters * float(np.log(records)) / 2,
        parameters,
    )
