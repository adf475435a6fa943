"""A run: structure, CPTs and scores, with the time that each takes; how sure each edge is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import perf_counter

from vertibayes.choosing import TableChooser
from vertibayes.counting import Counter, PlainCounter
from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.network import Network
from vertibayes.options import Options, check_without_release, checks, how_missing
from vertibayes.parameters.cpt import Scores, fit_cpts, scores
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic, fit_three_steps
from vertibayes.parameters.widening import Widening
from vertibayes.settings import Missing
from vertibayes.structure.equivalence import cpdag_of, fixed_by
from vertibayes.structure.gains import edge_gains
from vertibayes.structure.search import Fits, Progress, silent
from vertibayes.structure.strengths import SAMPLES, Strengths, arc_strengths
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family

# Samples whose number is not given take as long as learning did, between these bounds in seconds.
SECONDS = 2.0, 60.0


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
    structure_seconds: float
    parameters_seconds: float
    pseudo_count: float  # count added to each cell of the CPTs
    missing: Missing = "available"  # how missing values were treated
    strengths: Strengths | None = None  # how sure each edge is; None if that was not computed
    strengths_seconds: float = 0.0  # time that the strengths took, in seconds


def learn(counter: Counter, options: Options, progress: Progress = silent) -> Learned:
    """Learn a network from a counter."""
    check_without_release(options)
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
    network = replace(fitted.network, fixed=fixed_by(structure, options.knowledge))
    synthetic = fitted.synthetic
    if options.write_synthetic and synthetic is None:
        synthetic = draw_synthetic(counter, structure, records=options.synthetic_records)
    as_state = missing == "state"
    measured = scores(counter, structure, missing=as_state)
    gains = edge_gains(counter, structure, missing=as_state)
    return Learned(
        network=network,
        widenings=fitted.widenings,
        synthetic=synthetic if options.write_synthetic else None,
        algorithm=options.by if options.structure is None else None,
        scores=measured,
        gains=gains,
        compelled=frozenset(cpdag_of(structure, options.knowledge).compelled),
        structure_seconds=structure_seconds,
        parameters_seconds=perf_counter() - start,
        pseudo_count=options.pseudo_count,
        missing=missing,
    )


def fit(
    counter: Counter, structure: Structure, options: Options, progress: Progress = silent
) -> Fitted:
    """Fit the CPTs of a structure, by how missing values are treated."""
    missing, pseudo_count = how_missing(counter.variables, options), options.pseudo_count
    tell = partial(progress, "EM")
    if missing == "em":
        fitted = fit_em_from_tables(
            counter,
            structure,
            pseudo_count=pseudo_count,
            wider_cells=options.wider_cells,
            progress=tell,
        )
        return Fitted(fitted.network, fitted.widenings)
    if missing == "synthetic":
        final, synthetic = fit_three_steps(
            counter,
            structure,
            pseudo_count=pseudo_count,
            records=options.synthetic_records,
            restarts=options.em_restarts,
            progress=tell,
        )
        return Fitted(final.network, synthetic=synthetic)
    as_state = missing == "state"
    return Fitted(fit_cpts(counter, structure, pseudo_count=pseudo_count, missing=as_state))


def strengths_of(
    learned: Learned,
    counter: Counter,
    options: Options,
    progress: Progress,
    fits: Fits | None = None,
) -> Strengths | None:
    """Return how sure each edge is: the learner runs on samples of the learned network.

    The sites are asked for nothing. A run by choices learns from the samples by choices too, among
    the candidates that the sites of the study could compare (`fits`).

    A given number of samples is drawn, so that two runs agree, unless `max_seconds` ends them.
    Otherwise a sample follows if it is expected to end before the samples took as long as learning
    did (`SECONDS`): how many they are depends on the machine, but not which. There is always one.
    """
    planned = SAMPLES if options.bootstrap is None else options.bootstrap
    records = options.structure_records or counter.records
    if learned.algorithm is None or not planned or not records:
        return None
    # What the run took from its counter is given; the sites' policies may have lowered the parents.
    ordering = tuple(counter.variables) if options.by == "k2" else None
    again = replace(
        options,
        ordering=options.ordering or ordering,
        max_parents=options.search(counter).max_parents,
        structure_records=None,
    )
    limits = [inf if options.max_seconds is None else options.max_seconds]
    if options.bootstrap is None:
        least, most = SECONDS
        limits.append(min(max(least, learned.structure_seconds + learned.parameters_seconds), most))
    seconds, began, done = min(limits), perf_counter(), 0

    def learn(sample: PlainCounter) -> Structure:
        nonlocal done
        done += 1
        return again.learn_structure(sample if fits is None else _Candidates(sample, fits), silent)

    def tell(stage: str, done: int, most: int) -> None:
        left = (perf_counter() - began) / max(done, 1) * (most - done)
        progress(f"{stage} ({left:.0f} s left)" if done and left >= 1 else stage, done, most)

    return arc_strengths(
        learned.network,
        learn,
        records,
        samples=planned,
        gains=learned.gains,
        constraints=options.knowledge,
        progress=tell,
        time_is_up=lambda: (perf_counter() - began) * (1 + 1 / done) > seconds,
    )


class _Candidates(TableChooser):
    """Chooses between the candidates that the sites of a study could compare."""

    def __init__(self, counter: Counter, fits: Fits) -> None:
        super().__init__(counter)
        self._fits = fits

    def fits(self, family: Family, *, missing: bool = False) -> bool:
        """Whether a family may be a candidate; a sample has no missing cells."""
        del missing
        return self._fits(family)
