"""What `learn` does, and how it ends: validations, the summary, warnings and the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from vertibayes.bootstrap import strengths_of
from vertibayes.cli.notices import warn
from vertibayes.cli.outputs import Run, write_results
from vertibayes.cli.phases import STRENGTHS, VALIDATION, WRITING
from vertibayes.cli.summaries import summarize
from vertibayes.cli.validations import Validations, warnings_of
from vertibayes.counting.released import ReleasedCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.learning import Learned
from vertibayes.options import Options
from vertibayes.report.counts import counts_json
from vertibayes.report.disclosure import Disclosure, disclosure
from vertibayes.structure.search import Fits, Progress
from vertibayes.validation.methods import Validation
from vertibayes.words import counted
from vertibayes_protocols.release import Rule
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch


@dataclass(frozen=True)
class Task:
    """What a run does."""

    options: Options  # what to learn
    out: Path | None  # the folder for the results; None writes no results
    quiet: bool  # whether to print errors and warnings only
    validations: Validations = field(default_factory=Validations)  # which validations to run
    rule: Rule | None = None  # by which rule the learned families' tables are released
    watch: RunWatch = UNWATCHED  # notes what the run does, for its status


class Outcome(NamedTuple):
    """What a run learned, and from what."""

    learned: Learned  # the network and its scores
    counter: SecureCounter | ReleasedCounter  # the source of the counts, of the validations too
    further: Callable[[], Mapping[str, Any]]
    write: Callable[[Path], object] | None = None
    fits: Fits | None = None  # of a structure by choices: takes a family
    warnings: Sequence[str] = ()  # the warnings that the run has printed


def conclude(
    outcome: Outcome, run: Run, task: Task, commit_seconds: float, progress: Progress
) -> tuple[Learned, dict[str, Any]]:
    """Say how sure the edges are, validate what was learned, warn, and write the results."""
    task.watch.phase(STRENGTHS)
    counter, learned = outcome.counter, _with_strengths(outcome, task.options, progress)
    before = perf_counter()
    if task.validations.validate:
        task.watch.phase(VALIDATION)
    validated = task.validations.run(counter, learned, task.options, progress)
    seconds = {"commit": commit_seconds, "validation": perf_counter() - before}
    disclosed = disclosure(counter.opened, counter.records)
    summary = summarize(learned, counter, run, seconds, disclosed, validated)
    summary |= outcome.further()
    counts = "record" if isinstance(counter, SecureCounter) else "released record"
    warnings = warn(_warnings(learned, validated, disclosed, counts), task.watch)
    summary["options"] = task.options.as_json() | task.validations.as_json()
    summary["warnings"] = [*outcome.warnings, *warnings]
    task.watch.phase(WRITING)
    if task.out is not None:
        tables = counts_json(learned, counter)
        write_results(task.out, learned, run, summary, validated, tables, outcome.write)
    return learned, summary


def _with_strengths(outcome: Outcome, options: Options, progress: Progress) -> Learned:
    """Return what was learned, with how sure each edge is."""
    before = perf_counter()
    strengths = strengths_of(outcome.learned, outcome.counter, options, progress, outcome.fits)
    seconds = perf_counter() - before
    return replace(outcome.learned, strengths=strengths, strengths_seconds=seconds)


def _warnings(
    learned: Learned, validated: Mapping[str, Validation], disclosed: Disclosure, counts: str
) -> Iterator[str]:
    """Return the warnings about the results."""
    for method, validation in validated.items():
        yield from warnings_of(method, validation)
    if disclosed.cells:
        yield disclosed.sentence()
    unseen = sum(learned.network.unseen.values())
    if unseen:
        are = "has" if unseen == 1 else "have"
        columns = "its CPT column is" if unseen == 1 else "their CPT columns are"
        yield (
            f"{counted(unseen, 'parent configuration')} {are} no {counts}; {columns} uniform "
            "(summary.json: unseen_parent_configurations)"
        )
