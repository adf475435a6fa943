"""CPTs from tables with missing cells: EM on a composite likelihood, without any record.

The tables of the families, missing as a last state, are all that is opened: what a fit that treats
missing as a state opens too. A cell whose record misses some members of the family is spread over
their states by the family's distribution under the current network, and the CPTs are those of the
filled tables. What a record says of variables outside the family is not used: where cells are
missing completely at random that costs little precision; where they are missing depending on
another variable, a node's CPT is right only if its own family tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from protocols.variables import Rows
from vertibayes.counting import Counter, Table
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import Batch
from vertibayes.network import Network, Structure
from vertibayes.parameters.cpt import check_pseudo_count, network_from, without_gaps


@dataclass(frozen=True)
class TableFit:
    """A network fitted to tables with missing cells.

    Attributes
    ----------
    network : Network
    trace : tuple of float
        The composite log-likelihood before each iteration, in nats: the sum over families of that
        of their tables' known cells.
    converged : bool
        Whether its relative change fell below the tolerance.
    """

    network: Network
    trace: tuple[float, ...]
    converged: bool


def fit_em_from_tables(
    counter: Counter,
    structure: Structure,
    *,
    pseudo_count: float = 0.0,
    rows: Rows = Rows(),
    tolerance: float = 1e-7,
    most_iterations: int = 200,
    progress: Callable[[int, int], None] | None = None,
) -> TableFit:
    """Fit the CPTs of a structure to records with missing cells: one call.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    pseudo_count : float, default=0
        Added to each cell of the filled tables.
    rows : Rows
        The records to learn from; all by default.
    tolerance : float, default=1e-7
        Stop when the composite log-likelihood changes by less, relatively.
    most_iterations : int, default=200
    progress : callable, optional
        Called with (iteration, most_iterations).

    Returns
    -------
    fit : TableFit
        Without missing cells, the network of `fit_cpts`, after one iteration.

    Raises
    ------
    ValueError
        If a number is out of range, a node is unknown, a variable has no value in any record, or
        the structure's cliques are too large.
    """
    check_pseudo_count(pseudo_count)
    if not tolerance > 0 or most_iterations < 1:
        raise ValueError("a tolerance above 0 and at least one iteration are wanted")
    tables = counter.tables(structure.families, missing=True, rows=rows)
    variables = {node: without_gaps(counter.variables[node]) for node in structure.nodes}
    members = [family.members for family in structure.families]
    families = [_Family(counter, names, t) for names, t in zip(members, tables, strict=True)]
    states = {node: len(variable.states) for node, variable in variables.items()}
    nothing_known = Batch(JunctionTree.of(structure, states), states, {})
    start = [family.complete + 1.0 for family in families]  # no state without a chance
    network = network_from(structure, variables, start)
    trace: list[float] = []
    for iteration in range(most_iterations):
        if progress is not None:
            progress(iteration, most_iterations)
        joints = _joints(nothing_known, network)
        trace.append(sum(f.log_likelihood(j) for f, j in zip(families, joints, strict=True)))
        filled = [f.filled(j) for f, j in zip(families, joints, strict=True)]
        network = network_from(structure, variables, filled, pseudo_count)
        if _settled(trace, tolerance) or all(len(f.patterns) == 1 for f in families):
            return TableFit(network, tuple(trace), True)
    return TableFit(network, tuple(trace), False)


def _settled(trace: Sequence[float], tolerance: float) -> bool:
    return len(trace) > 1 and abs(trace[-1] - trace[-2]) <= tolerance * abs(trace[-2])


def _joints(nothing_known: Batch, network: Network) -> list[NDArray[np.float64]]:
    """Return the distribution of each family under a network."""
    beliefs = nothing_known.propagate(network)
    return [beliefs.expected_counts(family.members) for family in network.structure.families]


class _Family:
    """A family's table, taken apart by which members are missing."""

    def __init__(self, counter: Counter, members: tuple[str, ...], table: Table) -> None:
        gaps = [counter.variables[name].missing for name in members]
        self.patterns: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
        for missing in product(*((False, True) if gap else (False,) for gap in gaps)):
            index = tuple(
                slice(-1, None) if m else slice(-1 if gap else None)
                for m, gap in zip(missing, gaps, strict=True)
            )
            axes = tuple(axis for axis, m in enumerate(missing) if m)
            self.patterns.append((axes, table[index].astype(float)))
        self.complete = self.patterns[0][1]
        known = sum(counts.sum() for axes, counts in self.patterns if 0 not in axes)
        if not known:
            raise ValueError(f"{members[0]} has no value in any record: leave it out")

    def filled(self, joint: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spread the cells with missing members over their states, by the family's distribution."""
        total = np.zeros_like(joint)
        for axes, counts in self.patterns:
            if not axes:
                total += counts
                continue
            known = joint.sum(axis=axes, keepdims=True)
            even = np.full_like(joint, 1 / np.prod([joint.shape[axis] for axis in axes]))
            total += counts * np.divide(joint, known, out=even, where=known > 0)
        return total

    def log_likelihood(self, joint: NDArray[np.float64]) -> float:
        """Return the log-likelihood of the known members of all records, in nats."""
        total = 0.0
        for axes, counts in self.patterns:
            known = joint.sum(axis=axes, keepdims=True) if axes else joint
            seen = counts > 0
            with np.errstate(divide="ignore"):
                total += float((counts[seen] * np.log(known[seen])).sum())
        return total
