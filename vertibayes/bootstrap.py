"""How sure a run is of each edge: its learner on samples of the learned network (`arc_strengths`).

The sites are asked for nothing. A run by choices learns from the samples by choices too, among the
candidates that the sites of the study could compare.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from vertibayes.choosing import TableChooser
from vertibayes.counting import Counter, PlainCounter
from vertibayes.dag import Structure
from vertibayes.learning import Learned
from vertibayes.options import Options
from vertibayes.structure.algorithms import algorithm_of
from vertibayes.structure.search import Fits, Progress, silent
from vertibayes.structure.strengths import SAMPLES, Strengths, arc_strengths
from vertibayes_protocols.variables import Family

SECONDS = 60.0  # for the samples, unless their number is given


def strengths_of(
    learned: Learned,
    counter: Counter,
    options: Options,
    progress: Progress,
    fits: Fits | None = None,
) -> Strengths | None:
    """Return how sure each edge of a learned network is."""
    planned = SAMPLES if options.bootstrap is None else options.bootstrap
    records = options.structure_records or counter.records
    if learned.algorithm is None or not planned or not records:
        return None
    again = _again(counter, options)
    seconds = SECONDS if options.bootstrap is None else None
    seconds = options.max_seconds or seconds
    began = perf_counter()

    def learn(sample: PlainCounter) -> Structure:
        left = None if seconds is None else max(began + seconds - perf_counter(), 1e-3)
        source = sample if fits is None else _Candidates(sample, fits)
        ends = algorithm_of(again.by).ends_in_time
        limited = replace(again, max_seconds=left) if ends else again
        return limited.learn_structure(source, silent)

    def tell(stage: str, done: int, most: int) -> None:
        left = (perf_counter() - began) / max(done, 1) * (most - done)
        progress(f"{stage} ({left:.0f} s left)" if done and left >= 1 else stage, done, most)

    return arc_strengths(
        learned.network,
        learn,
        records,
        samples=planned,
        gains=learned.gains,
        constraints=options.constraints,
        progress=tell,
        time_is_up=lambda: seconds is not None and perf_counter() > began + seconds,
    )


def _again(counter: Counter, options: Options) -> Options:
    """Return the options for a sample: what the run took from its counter is given."""
    ordering = options.ordering
    if options.by == "k2" and ordering is None:
        ordering = tuple(counter.variables)
    most = options.search(counter).max_parents  # the sites' policies may have lowered it
    return replace(options, ordering=ordering, max_parents=most, structure_records=None)


class _Candidates(TableChooser):
    """Chooses between the candidates that the sites of a study could compare."""

    def __init__(self, counter: Counter, fits: Fits) -> None:
        super().__init__(counter)
        self._fits = fits

    def fits(self, family: Family, *, missing: bool = False) -> bool:
        """Whether a family may be a candidate; a sample has no missing cells."""
        del missing
        return self._fits(family)
