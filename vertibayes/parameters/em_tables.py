"""CPTs from tables with missing cells: EM on a composite likelihood, without any record.

The tables of the families, missing as a last state, are all that is opened: what a fit that treats
missing as a state opens too. A cell whose record misses some members of the family is spread over
their states by the family's distribution under the current network, and the CPTs are those of the
filled tables. What a record says of variables outside the family is not used: where cells are
missing completely at random that costs little precision. Where they are missing depending on other
variables, a node's CPT is right only if the tables of its family, and those that give the
distribution of its parents, show these. Tables widened by neighbours of the family (`widening`)
use more of what a record says, for more opened cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from protocols.variables import Family, Rows, Variable
from vertibayes.counting import Counter, Table
from vertibayes.inference.algebra import PLAIN, Array
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.marginals import Marginals
from vertibayes.network import Network, Structure
from vertibayes.parameters.climbing import Counts, NoValueError, climb
from vertibayes.parameters.cpt import PSEUDO_COUNT, check_pseudo_count, network_from, without_gaps
from vertibayes.parameters.widening import Widening, widen


@dataclass(frozen=True)
class TableFit:
    """A network fitted to tables with missing cells.

    Attributes
    ----------
    network : Network
    trace : tuple of float
        The composite log-likelihood before each iteration, in nats: the sum over tables of that
        of their known cells. With wider tables, of the iterations over these. It may fall a
        little: each CPT is fitted to its own table.
    converged : bool
        Whether the filled tables came to rest.
    widenings : tuple of Widening
        By which neighbours tables were widened, in the order of their choice.
    """

    network: Network = field(repr=False)
    trace: tuple[float, ...]
    converged: bool
    widenings: tuple[Widening, ...] = ()


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
) -> TableFit:
    """Fit the CPTs of a structure to records with missing cells: one call, two if wider.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    pseudo_count : float, default=0.5
        Added to each cell of the filled tables; 0 for maximum likelihood.
    wider_cells : int, default=0
        How many cells may be opened beyond those of the families' tables, in tables wider by the
        neighbours that tell most (`widen`); none if 0.
    rows : Rows
        The records to learn from; all by default.
    tolerance : float, default=1e-6
        Stop when no cell of a filled table changes by more than this share of the records.
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
        If a number is out of range, a node is unknown, or the structure's cliques are too large:
        then nothing is opened.
    NoValueError
        If a variable has no value in any record.
    """
    check_pseudo_count(pseudo_count)
    if not tolerance > 0 or most_iterations < 1 or wider_cells < 0:
        raise ValueError("a tolerance above 0, iterations from 1, wider cells from 0 are wanted")
    variables = {node: without_gaps(counter.variables[node]) for node in structure.nodes}
    states = {node: len(variable.states) for node, variable in variables.items()}
    tree = JunctionTree.of(structure, states)  # before anything is opened

    def told(iteration: int) -> None:
        if progress is not None:
            progress(iteration, most_iterations)

    def fit(tables: Sequence[_Table], start: Network) -> TableFit:
        complete = all(len(table.patterns) == 1 for table in tables)
        most_moved = tolerance * rows.count(counter.records)
        return TableFit(
            *climb(
                lambda network: _expected(tables, Marginals.of(network, tree)),
                start,
                pseudo_count=pseudo_count,
                settled=lambda _, moved: complete or moved <= most_moved,
                most_iterations=most_iterations,
                told=told,
            )
        )

    tables = _opened(counter, structure, {}, rows)
    first = [table.complete + 1.0 for table in tables]  # no state without a chance
    found = fit(tables, network_from(structure, variables, first))
    if not wider_cells:
        return found
    missing = {family.child: table.missing for family, table in _pairs(structure, tables)}
    steps = widen(found.network, counter.variables, missing, wider_cells, counter.most_variables)
    tables = _opened(counter, structure, _neighbours(steps), rows) if steps else tables
    return replace(fit(tables, found.network), widenings=steps)


def _pairs(structure: Structure, tables: Sequence[_Table]) -> Sequence[tuple[Family, _Table]]:
    return list(zip(structure.families, tables, strict=True))


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


def _expected(tables: Sequence[_Table], marginals: Marginals) -> tuple[float, Counts]:
    """Fill all tables; return the composite log-likelihood and the families' counts."""
    filled = [table.filled(marginals.joint(table.members)) for table in tables]
    return sum(likelihood for likelihood, _ in filled), [counts for _, counts in filled]


class _Table:
    """A table of a family and neighbours, taken apart by which of them are missing."""

    def __init__(
        self, variables: Mapping[str, Variable], asked: Family, own: int, counts: Table
    ) -> None:
        self.members, self._own = asked.members, own
        gaps = [variables[name].missing for name in self.members]
        self.patterns: list[tuple[tuple[int, ...], Array]] = []
        for lost in product(*((False, True) if gap else (False,) for gap in gaps)):
            index = tuple(
                slice(-1, None) if is_lost else slice(-1 if gap else None)
                for is_lost, gap in zip(lost, gaps, strict=True)
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
        """Spread the cells with missing members over their states, by their distribution.

        Returns
        -------
        log_likelihood : float
            Of the known members of all records, in nats.
        counts : ndarray
            The family's.
        """
        log_likelihood, total = 0.0, np.zeros_like(joint)
        for axes, counts in self.patterns:
            known = joint.sum(axis=axes, keepdims=True) if axes else joint
            seen = counts > 0
            with np.errstate(divide="ignore"):
                log_likelihood += float((counts[seen] * np.log(known[seen])).sum())
            total += counts * _share(joint, known, axes) if axes else counts
        return log_likelihood, np.asarray(total.sum(axis=tuple(range(self._own, total.ndim))))


def _share(joint: Array, known: Array, axes: tuple[int, ...]) -> Array:
    """Return the distribution along some axes, given the others; even where it has none."""
    share = PLAIN.over(joint, known)
    nowhere = known == 0
    if nowhere.any():
        share += nowhere / np.prod([joint.shape[axis] for axis in axes])
    return share
