"""CPTs from tables with missing cells: EM on a composite likelihood, without any record.

The tables of the families, missing as a last state, are all that is opened: what a fit that treats
missing as a state opens too. A cell whose record misses some members of the family is spread over
their states by the family's distribution under the current network, and the CPTs are those of the
filled tables. What a record says of variables outside the family is not used: where cells are
missing completely at random that costs little precision; where they are missing depending on
another variable, a node's CPT is right only if its own family tells of it. Tables widened by
neighbours of the family (`widening`) use more of what a record says, for more opened cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from protocols.variables import Family, Rows, Variable
from vertibayes.counting import Counter, Table
from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network, Structure
from vertibayes.parameters.cpt import check_pseudo_count, network_from, without_gaps
from vertibayes.parameters.widening import Widening, widen


@dataclass(frozen=True)
class TableFit:
    """A network fitted to tables with missing cells.

    Attributes
    ----------
    network : Network
    trace : tuple of float
        The composite log-likelihood before each iteration, in nats: the sum over tables of that
        of their known cells. With wider tables, of the iterations over these; it may then fall a
        little, as each CPT is fitted to its own table.
    converged : bool
        Whether its relative change fell below the tolerance.
    widenings : tuple of Widening
        By which neighbours tables were widened, in the order of their choice.
    """

    network: Network
    trace: tuple[float, ...]
    converged: bool
    widenings: tuple[Widening, ...] = ()


def fit_em_from_tables(
    counter: Counter,
    structure: Structure,
    *,
    pseudo_count: float = 0.0,
    wider_cells: int = 0,
    rows: Rows = Rows(),
    tolerance: float = 1e-7,
    most_iterations: int = 200,
    progress: Callable[[int, int], None] | None = None,
) -> TableFit:
    """Fit the CPTs of a structure to records with missing cells: one call, two if wider.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    pseudo_count : float, default=0
        Added to each cell of the filled tables.
    wider_cells : int, default=0
        How many cells may be opened beyond those of the families' tables, in tables wider by the
        neighbours that tell most (`widen`); none if 0.
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
    if not tolerance > 0 or most_iterations < 1 or wider_cells < 0:
        raise ValueError("a tolerance above 0, iterations from 1, wider cells from 0 are wanted")
    tables = _opened(counter, structure, {}, rows)
    variables = {node: without_gaps(counter.variables[node]) for node in structure.nodes}
    climb = _Climb(structure, variables, pseudo_count, tolerance, most_iterations, progress)
    start = [table.complete + 1.0 for table in tables]  # no state without a chance
    fit = climb.run(tables, network_from(structure, variables, start))
    missing = {f.child: t.missing for f, t in zip(structure.families, tables, strict=True)}
    steps = widen(fit.network, missing, wider_cells, counter.most_variables)
    if not steps:
        return fit
    tables = _opened(counter, structure, _neighbours(steps), rows)
    return replace(climb.run(tables, fit.network), widenings=steps)


def _neighbours(steps: Sequence[Widening]) -> dict[str, tuple[str, ...]]:
    """Return, of each child, the neighbours that its table is widened by."""
    found: dict[str, tuple[str, ...]] = {}
    for step in steps:
        found[step.child] = (*found.get(step.child, ()), step.neighbour)
    return found


def _opened(
    counter: Counter, structure: Structure, wider: Mapping[str, tuple[str, ...]], rows: Rows
) -> list[_Table]:
    """Open the families' tables, some wider."""
    asked = [Family(f.child, (*f.parents, *wider.get(f.child, ()))) for f in structure.families]
    counts = counter.tables(asked, missing=True, rows=rows)
    return [
        _Table(counter.variables, family, len(own.members), table)
        for family, own, table in zip(asked, structure.families, counts, strict=True)
    ]


@dataclass(frozen=True)
class _Climb:
    """EM over tables: what stays the same from one set of tables to the next."""

    structure: Structure
    variables: Mapping[str, Variable]
    pseudo_count: float
    tolerance: float
    most_iterations: int
    progress: Callable[[int, int], None] | None

    def run(self, tables: Sequence[_Table], network: Network) -> TableFit:
        """Iterate until the composite log-likelihood settles."""
        states = {node: len(variable.states) for node, variable in self.variables.items()}
        marginals = Marginals(self.structure, states)
        trace: list[float] = []
        complete = all(len(table.patterns) == 1 for table in tables)
        for iteration in range(self.most_iterations):
            if self.progress is not None:
                self.progress(iteration, self.most_iterations)
            marginals.under(network)
            joints = [marginals.joint(table.members) for table in tables]
            trace.append(sum(t.log_likelihood(j) for t, j in zip(tables, joints, strict=True)))
            filled = [t.filled(j) for t, j in zip(tables, joints, strict=True)]
            network = network_from(self.structure, self.variables, filled, self.pseudo_count)
            if complete or _settled(trace, self.tolerance):
                return TableFit(network, tuple(trace), True)
        return TableFit(network, tuple(trace), False)


def _settled(trace: Sequence[float], tolerance: float) -> bool:
    return len(trace) > 1 and abs(trace[-1] - trace[-2]) <= tolerance * abs(trace[-2])


class _Table:
    """A table of a family and neighbours, taken apart by which of them are missing."""

    def __init__(
        self, variables: Mapping[str, Variable], asked: Family, own: int, counts: Table
    ) -> None:
        self.members, self._own = asked.members, own
        gaps = [variables[name].missing for name in self.members]
        self.patterns: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
        for lost in product(*((False, True) if gap else (False,) for gap in gaps)):
            index = tuple(
                slice(-1, None) if is_lost else slice(-1 if gap else None)
                for is_lost, gap in zip(lost, gaps, strict=True)
            )
            axes = tuple(axis for axis, is_lost in enumerate(lost) if is_lost)
            self.patterns.append((axes, counts[index].astype(float)))
        self.complete = self.patterns[0][1]
        known = sum(cells.sum() for axes, cells in self.patterns if 0 not in axes)
        if not known:
            raise ValueError(f"{asked.child} has no value in any record: leave it out")
        self.missing = 1 - float(known / counts.sum())

    def filled(self, joint: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spread the cells with missing members over their states; count the family's."""
        total = np.zeros_like(joint)
        for axes, counts in self.patterns:
            if not axes:
                total += counts
                continue
            known = joint.sum(axis=axes, keepdims=True)
            even = np.full_like(joint, 1 / np.prod([joint.shape[axis] for axis in axes]))
            total += counts * np.divide(joint, known, out=even, where=known > 0)
        return np.asarray(total.sum(axis=tuple(range(self._own, total.ndim))))

    def log_likelihood(self, joint: NDArray[np.float64]) -> float:
        """Return the log-likelihood of the known members of all records, in nats."""
        total = 0.0
        for axes, counts in self.patterns:
            known = joint.sum(axis=axes, keepdims=True) if axes else joint
            seen = counts > 0
            with np.errstate(divide="ignore"):
                total += float((counts[seen] * np.log(known[seen])).sum())
        return total
