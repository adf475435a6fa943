"""``vertibayes learn``: a network, from sites in this process or, by a study's file, on machines.

A place opens the study of its sites; what is learned from it, and how the run ends, is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from vertibayes.choosing.secret import SecretChooser
from vertibayes.cli.cuts import Cuts, with_cuts
from vertibayes.cli.inputs import Sites, read_sites
from vertibayes.cli.learned import (
    Results,
    report_of,
    summarize,
    summary_of_release,
    warnings_about,
    write_more,
)
from vertibayes.cli.outputs import write_model
from vertibayes.cli.phases import STRENGTHS, STRUCTURE, VALIDATION
from vertibayes.cli.run import Run
from vertibayes.cli.source import Source
from vertibayes.cli.table_memory import check_memory
from vertibayes.cli.validations import Validations
from vertibayes.counting.released import ReleasedCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.learning import Learned, learn, strengths_of
from vertibayes.options import Options, calls_of, checks, how_missing, notices, sample_rows
from vertibayes.released import check_options, check_validations, learn_released
from vertibayes.report.disclosure import KnownRecords, disclosure
from vertibayes.report.edges import edges_json
from vertibayes.report.release import Appetite, read_appetite, write_release
from vertibayes.structure.algorithms import algorithm_of
from vertibayes.structure.search import Fits, Pairs, Progress
from vertibayes.structure.typical import dependent_pairs
from vertibayes_protocols.alignment import MOST_SIZE, AlignmentLimits, AlignmentRequest
from vertibayes_protocols.errors import RecordsDifferError, refusing
from vertibayes_protocols.federation import Federation, federate
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL, Policy
from vertibayes_protocols.release import Rule
from vertibayes_protocols.roles import Party
from vertibayes_protocols.variables import Family

REMEDY = "{} releases such counts as 0, and wider bins make them fewer"


@dataclass(frozen=True)
class Task:
    """What is learned."""

    options: Options
    validations: Validations = field(default_factory=Validations)  # which validations to run
    rule: Rule | None = None  # by which rule the learned families' tables are released
    appetite: Appetite | None = None  # the limits of the verdicts about these tables


def judged(task: object, path: Path | None) -> Any:
    """Return a task whose release is judged by the risk appetite of a file, if there is one."""
    if path is None:
        return task
    if not isinstance(task, Task) or task.rule is None:
        raise ValueError("--risk-appetite needs --release, or [release] in the study.toml")
    return replace(task, appetite=read_appetite(path))


class Opened(NamedTuple):
    """A study that a place has opened."""

    study: OpenStudy
    source: SecureCounter | SecretChooser  # from which a task without and with a rule learns
    task: Task  # fitted to the variables of the study
    about: Mapping[str, Any]  # entries of summary.json
    warnings: Sequence[str] = ()  # about the data
    sender: Party | None = None  # the party whose messages are counted; all parties if None
    known: Callable[[], KnownRecords | None] = lambda: None  # the records, if this process has them


class Place(Protocol):
    """Where the sites are."""

    def opened(self, task: Task, run: Run) -> AbstractContextManager[Opened]:
        """Open the study of the sites for a task that fits them; the run notes its ledger."""
        ...


class Outcome(NamedTuple):
    """What was learned, and from what."""

    learned: Learned
    counter: SecureCounter | ReleasedCounter  # the source of the counts, of the validations too
    further: Callable[[], Mapping[str, Any]]  # entries of summary.json
    write: Callable[[Path], object] | None = None
    fits: Fits | None = None  # of a structure by choices: takes a family
    warning: str = ""


def run_learn(source: Source, task: Task, run: Run) -> None:
    """Run the command over sites in this process."""
    if task.rule is not None:
        check_options(task.options, task.validations.validate)
        if source.mdlp is not None:
            raise ValueError("--mdlp reveals exact tables, and --release does not: remove one")
    with run:
        source, cuts = with_cuts(source)
        run.ledger = None if cuts is None else cuts.ledger
        learn_at(Here(read_sites(source), cuts), task, run)


def learn_at(place: Place, task: Task, run: Run) -> tuple[Learned, dict[str, Any]]:
    """Learn at a place; return what was learned and what summary.json has."""
    start = perf_counter()
    with place.opened(task, run) as opened:
        seconds = perf_counter() - start
        source, task = opened.source, opened.task
        cost, held, apart = None, None, opened.sender is not None
        if isinstance(source, SecureCounter):
            source, held = task.validations.parted(source)
            check_memory(source, task.options, apart=apart)
            cost = expected(source, task.options, apart=apart)
        notes = notices(source, task.options), task.validations.warnings()
        run.warn(chain(opened.warnings, *notes))
        if cost is not None and not run.quiet:
            sys.stderr.write(f"expected: {cost}\n")
        run.watch.phase(STRUCTURE)
        with run.progress(opened.study.watchers) as progress:
            if isinstance(source, SecureCounter):
                shown: Progress = progress
                if _follows_pairs(task.options) and not run.quiet:
                    shown = _Renewed(progress, source, task.options, apart)
                outcome = _by_tables(source, task.options, cost, shown)
            else:
                outcome = _by_choices(source, opened, progress)
            run.warn(filter(None, [outcome.warning]))
            return _conclude(outcome, opened, run, seconds, progress, held)


def _by_tables(
    counter: SecureCounter, options: Options, cost: str | None, progress: Progress
) -> Outcome:
    learned = learn(counter, options, progress)
    is_late = options.max_seconds is not None and learned.structure_seconds >= options.max_seconds
    late = "the search ended when its time was up: the structure is the best so far"
    return Outcome(
        learned,
        counter,
        lambda: {"calls": counter.calls, "queries": counter.queries, "forecast": cost},
        warning=late if is_late else "",
    )


def _by_choices(chooser: SecretChooser, opened: Opened, progress: Progress) -> Outcome:
    """Learn by choices and a release."""
    study, options, rule = opened.study, opened.task.options, opened.task.rule
    appetite = opened.task.appetite
    assert rule is not None  # without one the place opens a counter
    released = learn_released(chooser, study.release, options, rule, progress)
    learned, counter = released.learned, released.counter
    most, warning = options.most_bits, ""
    if most is not None:
        warning = (
            f"the winners have at most {released.bits:.0f} bits, of {most} (--most-bits): if the "
            "next call would exceed them, the structure is the best so far"
        )

    def write(part: Path) -> None:
        write_release(
            part / "release",
            counter,
            learned.network,
            ledger=study.ledger,
            study=opened.about.get("study"),
            appetite=appetite,
            sites=study.study.sites,
        )

    as_state = how_missing(counter.variables, options) == "state"
    fits = partial(chooser.fits, missing=as_state)
    further = partial(summary_of_release, released, len(study.study.sites), appetite)
    return Outcome(learned, counter, further, write, fits, warning)


def _conclude(
    outcome: Outcome,
    opened: Opened,
    run: Run,
    commit_seconds: float,
    progress: Progress,
    held: SecureCounter | None,
) -> tuple[Learned, dict[str, Any]]:
    """Say how sure the edges are, validate what was learned, warn, and write the results."""
    task, counter, learned = opened.task, outcome.counter, outcome.learned
    run.watch.phase(STRENGTHS)
    before = perf_counter()
    strengths = strengths_of(learned, counter, task.options, progress, outcome.fits)
    seconds = perf_counter() - before
    learned = replace(learned, strengths=strengths, strengths_seconds=seconds)
    before = perf_counter()
    if task.validations.validate:
        run.watch.phase(VALIDATION)
    validated = task.validations.run(
        counter, learned, task.options, progress, held, lambda text: run.warn([text])
    )
    spent = {"commit": commit_seconds, "validation": perf_counter() - before}
    records = opened.study.study.records  # those that are held out too
    disclosed = disclosure(counter.revealed, records, opened.known())
    remedy = REMEDY.format('rule = "cut" in [release]' if opened.sender else "--release cut")
    results = Results(learned, counter, validated, disclosed, remedy)
    summary = summarize(results, opened.study, opened.sender, spent)
    summary |= {**opened.about, **outcome.further()}
    summary["options"] = task.options.as_json() | task.validations.as_json()
    run.warn(warnings_about(results))
    run.finish(
        "learn",
        summary,
        report_of(learned, summary),
        lambda part: write_model(part, learned.network, edges_json(learned)),
        partial(write_more, results=results, study=opened.study.study, further=outcome.write),
    )
    return learned, summary


def expected(
    counter: SecureCounter, options: Options, pairs: Pairs | None = None, *, apart: bool = False
) -> str:
    """Return a sentence about the cost of a run; after a call, `pairs` are those that depend.

    Before the first call it says whether the cost is no upper bound.
    """
    calls = calls_of(counter, options, pairs)
    cost = counter.forecast(*calls, missing=options.missing == "state").sentence(apart=apart)
    known = options.structure is not None or algorithm_of(options.by).is_bound
    if pairs is not None or (known and not _follows_pairs(options)):
        return cost
    why = f"the data decide for which tables {options.by} asks"
    return f"{cost}; typical, not an upper bound: {why}"


def _follows_pairs(options: Options) -> bool:
    """Whether what a run asks for after its first call depends on the pairs that depend."""
    return options.structure is None and algorithm_of(options.by).follows_pairs


def depending(counter: SecureCounter, options: Options) -> list[tuple[str, str]]:
    """Return the pairs that depend, of those whose tables were revealed."""
    search = options.search(counter)
    pairs = [Family(b, (a,)) for a, b in combinations(search.names, 2)]
    known = counter.known(pairs, missing=search.missing, rows=search.rows)
    tables = counter.tables(known, missing=search.missing, rows=search.rows)
    return dependent_pairs(known, tables, search.records)


@dataclass
class _Renewed:
    """Progress that says once what a search is now expected to cost, after its first call."""

    progress: Progress
    counter: SecureCounter
    options: Options
    apart: bool
    said: bool = False

    def __call__(self, stage: str, done: int, most: int) -> None:
        """Show progress."""
        if not self.said and self.counter.calls:
            self.said = True
            pairs = depending(self.counter, self.options)
            cost = expected(self.counter, self.options, pairs, apart=self.apart)
            sys.stderr.write(f"now expected: {cost}\n")
        self.progress(stage, done, most)


# ---- sites in this process -----------------------------------------------------------------------


@dataclass(frozen=True)
class Here:
    """The sites of this process, all of whose data one person holds."""

    sites: Sites
    cuts: Cuts | None = None  # of numeric columns, which were chosen before

    @contextmanager
    def opened(self, task: Task, run: Run) -> Iterator[Opened]:
        """Open a study over the sites; as `Place.opened`."""
        sites, cuts, warnings = self.sites, self.cuts, list(self.sites.warnings)
        if lost := sorted(sites.left_out.keys() & set(task.options.constraints.names)):
            warnings.append(f"--constraints: unused for {', '.join(lost)}, left out of the data")
        task = self._prepared(task)
        with federate(
            sites.data,
            policy=None if task.rule is None else ALLOW_ALL,  # any budget
            memory_budget=sites.memory,
            limits=AlignmentLimits(most_people=dict.fromkeys(sites.data, MOST_SIZE)),
        ) as federation:
            run.ledger = federation.session.role.ledger
            if cuts is not None:
                cuts.note(run.ledger)
            with explained(sites):
                study = open_study(
                    federation.session,
                    federation.sites,
                    federation.dealer,
                    order=sites.order,
                    choices=task.rule is not None,
                    count_by=sites.count_by,
                    alignment=AlignmentRequest(rules=sites.rules) if sites.rules else None,
                )
            about = {
                "left_out": dict(sites.left_out),
                "sites": {site: list(role.shown) for site, role in federation.roles.items()},
                **({} if cuts is None else {"discretization": cuts.as_json()}),
            }
            source = SecureCounter(study) if task.rule is None else SecretChooser(study)
            if isinstance(source, SecureCounter):
                _check(source, task.options)
            known = partial(_known_records, federation, study)
            yield Opened(study, source, task, about, warnings, known=known)

    def _prepared(self, task: Task) -> Task:
        """Fit a task to the variables, before a site is asked."""
        sites, variables, validations = self.sites, self.sites.variables, task.validations
        sites.check_column(validations.target, "--target")
        options = _of_variables(task.options, sites.left_out)
        records = min(data.records for data in sites.data.values())
        validations = validations.prepared(variables, records)
        if task.rule is not None:
            check_validations(variables, options, validations.validate)
        return replace(task, options=options, validations=validations)


def _known_records(federation: Federation, study: OpenStudy) -> KnownRecords | None:
    """Return the records of a study, from the sites that hold them; None after they have left."""
    holders, roles = study.study.holders, federation.roles
    joined = next(iter(roles.values())).joined
    if joined is None:
        return None
    columns = {name: [roles[site].column(name) for site in held] for name, held in holders.items()}
    # A site without a record has the code after the states there: another site has a lower one.
    codes = {name: np.minimum.reduce(held) for name, held in columns.items()}
    return KnownRecords(codes, lambda rows: joined.selection(rows).indices)


def _of_variables(options: Options, left_out: Mapping[str, str]) -> Options:
    """Remove columns that are left out from what the options name, or refuse them."""
    needed: dict[str, Sequence[str]] = {
        "structure": options.structure.nodes if options.structure else (),
        "start": options.start.nodes if options.start else (),
        "class-variable": [] if options.class_variable is None else [options.class_variable],
    }
    for option, named in needed.items():
        for name in named:
            if name in left_out:
                raise ValueError(f"--{option}: the column {name!r} is left out: {left_out[name]}")
    try:
        constraints = options.constraints.without(left_out.keys())
    except ValueError as error:
        names = ", ".join(left_out)
        raise ValueError(
            f"--constraints: {error}: remove the edge, or keep the column (left out: {names})"
        ) from None
    ordering = options.ordering
    if ordering is not None:
        ordering = [name for name in ordering if name not in left_out]
    return replace(options, ordering=ordering, constraints=constraints)


@contextmanager
def explained(sites: Sites) -> Iterator[None]:
    """Add to the error of an alignment what the columns have, and which rules would join more."""
    try:
        yield
    except RecordsDifferError as error:
        held = [(site, data.identifiers) for site, data in sites.data.items()]
        lists = {site: own for site, own in held if own is not None}
        shapes = [f"{site}: {text}" for site, own in lists.items() for text in own.shapes]
        advice = dict.fromkeys(text for own in lists.values() for text in own.advice)
        raise RecordsDifferError("; ".join([str(error), *shapes, *advice])) from None


def _check(counter: SecureCounter, options: Options) -> None:
    """Refuse options that do not fit the sites of this process, before tables are revealed."""
    for name, check in checks(counter, options).items():
        try:
            check()
        except ValueError as error:
            text = str(error).replace("max_parents", "--max-parents")
            option = "--constraints: " if name == "constraints" else ""
            raise ValueError(f"{option}{text}") from None
    rows = sample_rows(counter, options.structure_records)
    with refusing(counter.study.sites[0]):
        Policy().check_records(rows, counter.records)
