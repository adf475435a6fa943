"""CPTs from tables with missing values: EM on a composite likelihood, without records.

Only the tables of the families are revealed, with missing values as a last state, as in a fit that
treats missing values as a state. Each EM step distributes the counts of incomplete cells over the
states of the missing members, by the family's distribution under the current network. The new CPTs
are those of the completed tables. The values of variables outside the family are not used. If
values are missing completely at random, this costs little precision. If a missing value depends on
other variables, a node's CPT is correct only if these are in the table of its family, or in the
tables that determine the distribution of its parents. Tables that also have neighbours of the
family (`widening`) use more of each record, and reveal more cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Counter, Table
from vertibayes.dag import Structure
from vertibayes.inference.algebra import PLAIN, Array
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.marginals import Marginals
from vertibayes.model import without_missing
from vertibayes.network import Network
from vertibayes.parameters.cpt import check_pseudo_count, network_from
from vertibayes.parameters.em import Counts, EmFit, NoValueError, check_steps, em_steps
from vertibayes.parameters.widening import widen
from vertibayes.settings import PSEUDO_COUNT
from vertibayes_protocols.variables import Family, Rows, Variable


def fit_em_from_tables(
    counter: Counter,
    structure: Structure,
    *,
    pseudo_count: float = PSEUDO_COUNT,
    wider_cells: int = 0,
    rows: Rows = Rows(),
    tolerance: float = 1e-6,
    most_iterations: int = 200,
    progress: Callable[[int, int], None] | None = None,
) -> EmFit:
    """Fit the CPTs of a structure to records with missing values: one call, two with wider tables.

    Parameters
    ----------
    counter, structure, pseudo_count, rows
        As `fit_cpts`.
    wider_cells : int, default=0
        The number of cells that may be revealed in addition to the families' tables, in tables
        widened by the most informative neighbours (`widen`); no wider tables if 0.
    tolerance : float, default=1e-6
        EM stops when no cell of a completed table changes by more than this share of the records.
    most_iterations : int, default=200
        The largest number of steps.
    progress : callable, optional
        Called with (steps done, steps at most) before each step.

    Returns
    -------
    fit : EmFit
        The fit; without missing values, the network of `fit_cpts` after one step.

    Raises
    ------
    ValueError
        If a number is out of range, a node is unknown, or the structure's cliques are too large.
        No table is then revealed.
    NoValueError
        If a variable has no value in any record.
    """
    check_pseudo_count(pseudo_count)
    check_steps(tolerance, most_iterations, "wider_cells", wider_cells)
    variables = {node: without_missing(counter.variables[node]) for node in structure.nodes}
    states = {node: len(variable.states) for node, variable in variables.items()}
    tree = JunctionTree.of(structure, states)  # before any table is revealed

    def reveal(wider: Mapping[str, Sequence[str]]) -> list[_Table]:
        """Reveal the families' tables, each with the neighbours by which it is widened."""
        asked = [Family(f.child, (*f.parents, *wider.get(f.child, ()))) for f in structure.families]
        counts = counter.tables(asked, missing=True, rows=rows)
        return [
            _Table(counter.variables, family, len(own.members), table)
            for family, own, table in zip(asked, structure.families, counts, strict=True)
        ]

    def fit(tables: Sequence[_Table], start: Network) -> EmFit:
        complete = all(len(table.patterns) == 1 for table in tables)
        most_moved = tolerance * rows.count(counter.records)
        return em_steps(
            lambda network: _expected(tables, Marginals.of(network, tree)),
            start,
            pseudo_count=pseudo_count,
            settled=lambda _, moved: complete or moved <= most_moved,
            most_iterations=most_iterations,
            progress=progress,
        )

    tables = reveal({})
    first = [table.complete + 1.0 for table in tables]  # each state has positive probability
    narrow = fit(tables, network_from(structure, variables, first))
    if not wider_cells:
        return narrow
    missing = {table.members[0]: table.missing for table in tables}
    steps = widen(narrow.network, counter.variables, missing, wider_cells, counter.most_variables)
    neighbours = {
        child: [step.neighbour for step in steps if step.child == child] for child in missing
    }
    tables = reveal(neighbours) if steps else tables
    return replace(fit(tables, narrow.network), widenings=steps)


def _expected(tables: Sequence[_Table], marginals: Marginals) -> tuple[float, Counts]:
    """Complete all tables; return the composite log-likelihood and the families' counts."""
    filled = [table.filled(marginals.joint(table.members)) for table in tables]
    return sum(likelihood for likelihood, _ in filled), [counts for _, counts in filled]


class _Table:
    """A table of a family and its neighbours, divided by which of them are missing."""

    def __init__(
        self, variables: Mapping[str, Variable], asked: Family, own: int, counts: Table
    ) -> None:
        self.members, self._own = asked.members, own
        missing = [variables[name].missing for name in self.members]
        self.patterns: list[tuple[tuple[int, ...], Array]] = []
        for lost in product(*((False, True) if may else (False,) for may in missing)):
            index = tuple(
                slice(-1, None) if is_lost else slice(-1 if may else None)
                for is_lost, may in zip(lost, missing, strict=True)
            )
            axes = tuple(axis for axis, is_lost in enumerate(lost) if is_lost)
            if not axes or counts[index].any():
                self.patterns.append((axes, counts[index].astype(float)))
        self.complete = self.patterns[0][1]
        known = sum(cells.sum() for axes, cells in self.patterns if 0 not in axes)
        if not known:
            raise NoValueError(f"{asked.child} has no value in any record: leave it out")
        self.missing = 1 - float(known / counts.sum())

    def filled(self, joint: Array) -> tuple[float, NDArray[np.float64]]:
        """Distribute the counts of incomplete cells over the states of the missing members."""
        log_likelihood, total = 0.0, np.zeros_like(joint)
        for axes, counts in self.patterns:
            known = joint.sum(axis=axes, keepdims=True) if axes else joint
            seen = counts > 0
            with np.errstate(divide="ignore"):
                log_likelihood += float((counts[seen] * np.log(known[seen])).sum())
            total += counts * _share(joint, known, axes) if axes else counts
        return log_likelihood, np.asarray(total.sum(axis=tuple(range(self._own, total.ndim))))


def _share(joint: Array, known: Array, axes: tuple[int, ...]) -> Array:
    """Return the distribution along axes given the others; uniform where it is not defined."""
    share = PLAIN.over(joint, known)
    nowhere = known == 0
    if nowhere.any():
        share += nowhere / np.prod([joint.shape[axis] for axis in axes])
    return share
