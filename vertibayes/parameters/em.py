"""Exact EM for records with missing values (Dempster, Laird and Rubin 1977; Lauritzen 1995).

Exact EM needs the records: those of one site, pooled records, or synthetic records. In a
federation, use `fit_em_from_tables`, which needs tables only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import Batch, batches
from vertibayes.model import without_missing
from vertibayes.network import Network
from vertibayes.parameters.cpt import check_pseudo_count, network_from
from vertibayes.parameters.widening import Widening
from vertibayes.settings import PSEUDO_COUNT
from vertibayes_protocols.site.data import SiteData

Counts: TypeAlias = list[NDArray[np.float64]]


class NoValueError(ValueError):
    """A variable has no value in any of the records."""


@dataclass(frozen=True)
class EmFit:
    """A network fitted by EM, to records or to tables with missing values."""

    network: Network = field(repr=False)
    trace: tuple[float, ...]  # the objective of EM before each step, in nats
    converged: bool  # whether EM has stopped before the largest number of steps
    traces: tuple[tuple[float, ...], ...] = field(default=(), repr=False)  # of all starts
    widenings: tuple[Widening, ...] = ()


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
    """Fit the CPTs of a structure to records with missing values.

    Parameters
    ----------
    data : SiteData
    structure : Structure
    pseudo_count : float, default=0.5
        The number that is added to each expected count; 0 for maximum likelihood.
    restarts : int, default=0
        The number of further starts from random CPTs; the fit with the highest trace is returned.
    seed : int, default=0
        The seed of the random CPTs.
    start : Network, optional
        The first start; if None, the CPTs of the available cases with pseudo-count 1.
    tolerance : float, default=1e-7
        EM stops when the relative change of the trace is at most this number.
    most_iterations : int, default=500
        The largest number of steps from each start.
    progress : callable, optional
        Called with (steps done, steps at most) before each step.

    Returns
    -------
    fit : EmFit
        The network, and the trace of its log-likelihoods.

    Raises
    ------
    ValueError
        If a number is out of range, there are no records, a node is unknown, the start has another
        structure or other states, or the structure's cliques are too large.
    NoValueError
        If a variable has no value in any record.
    """
    check_pseudo_count(pseudo_count)
    check_steps(tolerance, most_iterations, "restarts", restarts)
    _check_values(data, structure)
    variables = {node: without_missing(data.variables[node]) for node in structure.nodes}
    if start is not None and (start.structure, start.variables) != (structure, variables):
        raise ValueError("the start must have the same structure and states as the fit")
    states = {node: len(variable.states) for node, variable in variables.items()}
    codes = {node: data.codes[node] for node in structure.nodes}
    records = batches(JunctionTree.of(structure, states), states, codes)

    def expect(network: Network) -> tuple[float, Counts]:
        log_likelihood, counts = expectation(records, network)
        return log_likelihood + _prior(network, pseudo_count), counts

    def step(iteration: int, _: int) -> None:
        if progress is not None:
            progress(len(fits) * most_iterations + iteration, (1 + restarts) * most_iterations)

    if start is None:
        available = PlainCounter(data).tables(structure.families)
        start = network_from(structure, variables, available, 1.0)
    starts = [start]
    generator = np.random.default_rng(seed)
    shapes = [[states[name] for name in family.members] for family in structure.families]
    for _ in range(restarts):
        drawn = [generator.exponential(size=shape) for shape in shapes]
        starts.append(network_from(structure, variables, drawn))
    fits: list[EmFit] = []
    for first in starts:
        fits.append(
            em_steps(
                expect,
                first,
                pseudo_count=pseudo_count,
                settled=lambda trace, _: (
                    len(trace) > 1 and abs(trace[-1] - trace[-2]) <= tolerance * abs(trace[-2])
                ),
                most_iterations=most_iterations,
                progress=step,
            )
        )
    best = max(fits, key=lambda fit: fit.trace[-1])
    return replace(best, traces=tuple(fit.trace for fit in fits))


def check_steps(tolerance: float, most_iterations: int, name: str, number: int) -> None:
    """Refuse numbers that are out of range; `name` is the option with the third number."""
    if not tolerance > 0 or most_iterations < 1 or number < 0:
        raise ValueError(
            f"tolerance must be above 0, most_iterations at least 1 and {name} at least 0, got "
            f"{tolerance}, {most_iterations} and {number}"
        )


def em_steps(
    expect: Callable[[Network], tuple[float, Counts]],
    network: Network,
    *,
    pseudo_count: float,
    settled: Callable[[Sequence[float], float], bool],
    most_iterations: int,
    progress: Callable[[int, int], None] | None,
) -> EmFit:
    """Repeat EM steps; `settled` gets the trace and the largest change of an expected count."""
    trace: list[float] = []
    last: Counts | None = None
    for iteration in range(most_iterations):
        if progress is not None:
            progress(iteration, most_iterations)
        value, counts = expect(network)
        trace.append(value)
        network = network_from(network.structure, network.variables, counts, pseudo_count)
        pairs = zip(last or [], counts, strict=last is not None)
        if settled(trace, max((float(np.abs(a - b).max()) for a, b in pairs), default=np.inf)):
            return EmFit(network, tuple(trace), True)
        last = counts
    return EmFit(network, tuple(trace), False)


def expectation(records: Sequence[Batch], network: Network) -> tuple[float, Counts]:
    """Return the log-likelihood of records, and the expected counts of the families: the E step."""
    families = network.structure.families
    total, counts = 0.0, [np.zeros(network.cpts[family.child].shape) for family in families]
    for batch in records:
        beliefs = batch.propagate(network)
        total += beliefs.log_likelihood
        for count, family in zip(counts, families, strict=True):
            count += beliefs.expected_counts(family.members)
    return total, counts


def _prior(network: Network, pseudo_count: float) -> float:
    """Return the logarithm of the Dirichlet prior of the pseudo-count, up to a constant."""
    if not pseudo_count:
        return 0.0
    with np.errstate(divide="ignore"):
        logs = sum(float(np.log(cpt).sum()) for cpt in network.cpts.values())
    return pseudo_count * logs


def _check_values(data: SiteData, structure: Structure) -> None:
    if not data.records:
        raise ValueError("there are no records; expected at least one")
    for node in structure.nodes:
        if node not in data.variables:
            raise ValueError(f"the data have no variable {node!r}")
        if (data.codes[node] == len(data.variables[node].states)).all():
            raise NoValueError(f"{node} has no value in any record: leave it out")
