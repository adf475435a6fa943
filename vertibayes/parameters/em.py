"""Exact EM for records with missing values (Dempster, Laird and Rubin 1977; Lauritzen 1995).

Exact EM needs the records: those of one site, pooled records, or synthetic records. In a
federation, use `fit_em_from_tables`, which needs tables only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.blocks import batches, expectation
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.model import without_missing
from vertibayes.network import Network
from vertibayes.parameters.cpt import PSEUDO_COUNT, check_pseudo_count, network_from
from vertibayes.parameters.em_steps import (
    Counts,
    EmSteps,
    NoValueError,
    check_steps,
    em_steps,
)
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable


@dataclass(frozen=True)
class EmFit:
    """A network fitted to records with missing values."""

    network: Network = field(repr=False)  # the network
    trace: tuple[float, ...]  # the objective of EM before each step, in nats
    converged: bool  # whether the relative change of the trace fell below the tolerance
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
    """Fit the CPTs of a structure to records with missing values.

    Parameters
    ----------
    data : SiteData
        The records.
    structure : Structure
        The structure.
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

    def settled(trace: Sequence[float], _: float) -> bool:
        return len(trace) > 1 and abs(trace[-1] - trace[-2]) <= tolerance * abs(trace[-2])

    def step(iteration: int, _: int) -> None:
        if progress is not None:
            progress(len(fits) * most_iterations + iteration, (1 + restarts) * most_iterations)

    generator = np.random.default_rng(seed)
    starts = [start or _available(data, structure)]
    starts += [_random(structure, variables, generator) for _ in range(restarts)]
    run = partial(em_steps, pseudo_count=pseudo_count, settled=settled, progress=step)
    fits: list[EmSteps] = []
    for first in starts:
        fits.append(run(expect, first, most_iterations=most_iterations))
    best = max(fits, key=lambda fit: fit.trace[-1])
    return EmFit(*best, tuple(fit.trace for fit in fits))


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


def _available(data: SiteData, structure: Structure) -> Network:
    """Return the network of the available cases, with pseudo-count 1."""
    tables = PlainCounter(data).tables(structure.families)
    variables = {node: without_missing(data.variables[node]) for node in structure.nodes}
    return network_from(structure, variables, tables, 1.0)


def _random(
    structure: Structure, variables: Mapping[str, Variable], generator: np.random.Generator
) -> Network:
    """Return a network whose CPTs are drawn uniformly."""
    shapes = [[len(variables[name].states) for name in f.members] for f in structure.families]
    counts = [generator.exponential(size=shape) for shape in shapes]
    return network_from(structure, variables, counts)
