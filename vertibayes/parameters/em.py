"""Exact EM for records with missing cells (Dempster, Laird and Rubin 1977; Lauritzen 1995).

It needs the records: those of one site, pooled ones, or synthetic ones. Over a federation,
`fit_em_from_tables` needs tables only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from protocols.site.data import SiteData
from protocols.variables import Variable
from vertibayes.counting import PlainCounter
from vertibayes.inference.blocks import batches, expectation
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.network import Network, Structure
from vertibayes.parameters.climbing import Climbed, Counts, NoValueError, climb
from vertibayes.parameters.cpt import PSEUDO_COUNT, check_pseudo_count, network_from, without_gaps


@dataclass(frozen=True)
class EmFit:
    """A network fitted to records with missing cells.

    Attributes
    ----------
    network : Network
    trace : tuple of float
        What EM maximizes, before each iteration, in nats: the log-likelihood of the records, and
        with pseudo-counts their weight times the logarithms of all probabilities.
    converged : bool
        Whether its relative change fell below the tolerance.
    traces : tuple of tuple of float
        Those of all starts.
    """

    network: Network = field(repr=False)
    trace: tuple[float, ...]
    converged: bool
    traces: tuple[tuple[float, ...], ...] = field(default=(), repr=False)


def fit_em(
    data: SiteData,
    structure: Structure,
    *,
    pseudo_count: float = PSEUDO_COUNT,
    restarts: int = 0,
    seed: int = 0,
    start: Network | None = None,
    tolerance: float = 1e-7,
    most_iterations: int = 500,
    progress: Callable[[int, int], None] | None = None,
) -> EmFit:
    """Fit the CPTs of a structure to records with missing cells.

    Parameters
    ----------
    data : SiteData
    structure : Structure
    pseudo_count : float, default=0.5
        Added to each expected count; 0 for maximum likelihood.
    restarts : int, default=0
        Further starts, from random CPTs; the fit of the highest trace is returned.
    seed : int, default=0
        Of these.
    start : Network, optional
        The first start; that of available cases, each cell one count more, if None.
    tolerance : float, default=1e-7
        Stop when the trace changes by less, relatively.
    most_iterations : int, default=500
    progress : callable, optional
        Called with (iterations, most_iterations times the starts) before each.

    Returns
    -------
    fit : EmFit

    Raises
    ------
    ValueError
        If a number is out of range, there are no records, a node is unknown, the start has another
        structure or other states, or the structure's cliques are too large.
    NoValueError
        If a variable has no value in any record.
    """
    check_pseudo_count(pseudo_count)
    if not tolerance > 0 or most_iterations < 1 or restarts < 0:
        raise ValueError("a tolerance above 0, iterations from 1 and restarts from 0 are wanted")
    _check_values(data, structure)
    variables = {node: without_gaps(data.variables[node]) for node in structure.nodes}
    if start is not None and (start.structure, start.variables) != (structure, variables):
        raise ValueError("a start of the same structure and states is wanted")
    states = {node: len(variable.states) for node, variable in variables.items()}
    codes = {node: data.codes[node] for node in structure.nodes}
    records = batches(JunctionTree.of(structure, states), states, codes)

    def expect(network: Network) -> tuple[float, Counts]:
        log_likelihood, counts = expectation(records, network)
        return log_likelihood + _prior(network, pseudo_count), counts

    def settled(trace: Sequence[float], moved: float) -> bool:
        del moved
        return len(trace) > 1 and abs(trace[-1] - trace[-2]) <= tolerance * abs(trace[-2])

    def told(iteration: int) -> None:
        if progress is not None:
            progress(len(fits) * most_iterations + iteration, (1 + restarts) * most_iterations)

    generator = np.random.default_rng(seed)
    starts = [start or _available(data, structure)]
    starts += [_random(structure, variables, generator) for _ in range(restarts)]
    fits: list[Climbed] = []
    for first in starts:
        fits.append(
            climb(
                expect,
                first,
                pseudo_count=pseudo_count,
                settled=settled,
                most_iterations=most_iterations,
                told=told,
            )
        )
    best = max(fits, key=lambda fit: fit.trace[-1])
    return EmFit(*best, tuple(fit.trace for fit in fits))


def _prior(network: Network, pseudo_count: float) -> float:
    """Return the logarithm of the Dirichlet prior that pseudo-counts are, up to a constant."""
    if not pseudo_count:
        return 0.0
    with np.errstate(divide="ignore"):
        logs = sum(float(np.log(cpt).sum()) for cpt in network.cpts.values())
    return pseudo_count * logs


def _check_values(data: SiteData, structure: Structure) -> None:
    if not data.records:
        raise ValueError("no records: one at least is wanted")
    for node in structure.nodes:
        if node not in data.variables:
            raise ValueError(f"the data have no variable {node!r}")
        if (data.codes[node] == len(data.variables[node].states)).all():
            raise NoValueError(f"{node} has no value in any record: leave it out")


def _available(data: SiteData, structure: Structure) -> Network:
    """Return the network of available cases, each cell one count more."""
    tables = PlainCounter(data).tables(structure.families)
    variables = {node: without_gaps(data.variables[node]) for node in structure.nodes}
    return network_from(structure, variables, tables, 1.0)


def _random(
    structure: Structure, variables: Mapping[str, Variable], generator: np.random.Generator
) -> Network:
    """Return a network of CPTs drawn uniformly."""
    shapes = [[len(variables[name].states) for name in f.members] for f in structure.families]
    counts = [generator.exponential(size=shape) for shape in shapes]
    return network_from(structure, variables, counts)
