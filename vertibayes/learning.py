"""A run: structure, CPTs and scores, with the time that each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeAlias

from vertibayes.counting import Counter
from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.network import Network
from vertibayes.options import Options, checks, how_missing
from vertibayes.parameters.cpt import Scores, fit_cpts, scores
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic, fit_three_steps
from vertibayes.parameters.widening import Widening
from vertibayes.settings import Missing
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.structure.gains import edge_gains
from vertibayes.structure.search import Progress, silent
from vertibayes.structure.strengths import Strengths
from vertibayes_protocols.site.data import SiteData

Steps: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Fitted:
    """A network with fitted CPTs, and what else the fit returned."""

    network: Network  # the structure with its CPTs
    widenings: tuple[Widening, ...] = ()
    synthetic: SiteData | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Learned(Fitted):
    """What was learned, and how long it took; `synthetic` is None unless it is kept."""

    algorithm: str | None  # what learned the structure; None if the structure was given
    scores: Scores  # the scores of the structure on the records
    gains: Mapping[Edge, float]
    compelled: frozenset[Edge]
    structure_seconds: float  # time that the structure and the CPTs took, in seconds
    parameters_seconds: float  # time that the structure and the CPTs took, in seconds
    pseudo_count: float  # count added to each cell of the CPTs
    missing: Missing = "available"  # how missing values were treated
    strengths: Strengths | None = None  # how sure each edge is; None if that was not computed
    strengths_seconds: float = 0.0  # time that the strengths took, in seconds


def learn(counter: Counter, options: Options, progress: Progress = silent) -> Learned:
    """Learn a network from a counter."""
    if options.most_bits is not None:
        raise ValueError(
            "`most_bits` limits what the winners of choices reveal: remove it, or learn with a "
            "release"
        )
    for check in checks(counter, options).values():
        check()
    start = perf_counter()
    structure = options.structure
    if structure is None:
        structure = options.learn_structure(counter, progress)
    return learn_cpts(counter, structure, options, perf_counter() - start, progress)


def learn_cpts(
    counter: Counter,
    structure: Structure,
    options: Options,
    structure_seconds: float,
    progress: Progress = silent,
) -> Learned:
    """Learn the CPTs and the scores of a structure."""
    start = perf_counter()
    missing = how_missing(counter.variables, options)
    progress("CPTs", 0, 1)
    fitted = fit(counter, structure, options, progress)
    synthetic = fitted.synthetic
    if options.write_synthetic and synthetic is None:
        synthetic = draw_synthetic(counter, structure, records=options.synthetic_records)
    as_state = missing == "state"
    measured = scores(counter, structure, missing=as_state)
    gains = edge_gains(counter, structure, missing=as_state)
    return Learned(
        network=fitted.network,
        widenings=fitted.widenings,
        synthetic=synthetic if options.write_synthetic else None,
        algorithm=options.by if options.structure is None else None,
        scores=measured,
        gains=gains,
        compelled=frozenset(cpdag_of(structure, options.constraints).compelled),
        structure_seconds=structure_seconds,
        parameters_seconds=perf_counter() - start,
        pseudo_count=options.pseudo_count,
        missing=missing,
    )


def fit(
    counter: Counter, structure: Structure, options: Options, progress: Progress = silent
) -> Fitted:
    """Fit the CPTs of a structure."""
    how = FITS[how_missing(counter.variables, options)]
    return how(counter, structure, options, partial(progress, "EM"))


def _by_em(counter: Counter, structure: Structure, options: Options, progress: Steps) -> Fitted:
    fitted = fit_em_from_tables(
        counter,
        structure,
        pseudo_count=options.pseudo_count,
        wider_cells=options.wider_cells,
        progress=progress,
    )
    return Fitted(fitted.network, fitted.widenings)


def _by_three_steps(
    counter: Counter, structure: Structure, options: Options, progress: Steps
) -> Fitted:
    final, synthetic = fit_three_steps(
        counter,
        structure,
        pseudo_count=options.pseudo_count,
        records=options.synthetic_records,
        restarts=options.em_restarts,
        progress=progress,
    )
    return Fitted(final.network, synthetic=synthetic)


def _by_counts(
    counter: Counter, structure: Structure, options: Options, _: Steps, *, missing: bool
) -> Fitted:
    pseudo_count = options.pseudo_count
    return Fitted(fit_cpts(counter, structure, pseudo_count=pseudo_count, missing=missing))


FITS: Mapping[Missing, Callable[[Counter, Structure, Options, Steps], Fitted]] = {
    "em": _by_em,
    "synthetic": _by_three_steps,
    "available": partial(_by_counts, missing=False),
    "state": partial(_by_counts, missing=True),
}  # by how missing values are treated
