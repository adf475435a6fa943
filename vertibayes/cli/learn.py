"""``vertibayes learn``: read, federate, learn, write."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from vertibayes.cli.cuts import Cuts, report_of_cuts, with_cuts
from vertibayes.cli.inputs import Sites, Source, read_sites
from vertibayes.cli.json_files import read_constraints, read_ordering, read_structure
from vertibayes.cli.notices import warn
from vertibayes.cli.outcome import Outcome, Task, conclude
from vertibayes.cli.outputs import Run, UnwrittenError, check_folder, is_free, write_ledger
from vertibayes.cli.phases import STRUCTURE
from vertibayes.cli.progress import progress_shown
from vertibayes.cli.release import release_with, report_of_release
from vertibayes.counting.secure import SecureCounter
from vertibayes.learning import Learned, learn
from vertibayes.options import Options, checks, families_of, notices, sample_rows
from vertibayes.released import check_options, check_validations
from vertibayes.report.edges import report_of_edges
from vertibayes.report.people import report_of_people
from vertibayes.report.strengths import report_of_strengths
from vertibayes.words import area_of, counted, size
from vertibayes_protocols.alignment import MOST_SIZE, AlignmentLimits, AlignmentRequest
from vertibayes_protocols.errors import RecordsDifferError, refusing
from vertibayes_protocols.federation import federate
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL, Policy

# By algorithm: medians over the networks of docs/results.md. The calls of others are few.
TYPICAL_CALLS = {"hybrid": 8, "hill_climbing": 6, "tabu": 10}
HINTS = {
    "public": ", public records",
    "scv": ", synthetic records, optimistic",
    "svdg": ", synthetic records",
}


def run_learn(source: Source, task: Task) -> None:
    """Run the command."""
    assert task.out is not None  # the command requires it
    check_folder(task.out)
    task.validations.check()
    if task.rule is not None:
        check_options(task.options, task.validations.validate)
        if source.mdlp is not None:
            raise ValueError("--mdlp reveals exact tables, and --release does not: remove one")
    source, cuts = with_cuts(source)
    with ledger_kept(Ledger() if cuts is None else cuts.ledger, task.out):
        sites, task = _prepared(source, task)
    learned, summary = learn_from(sites, task, cuts)
    if not task.quiet:
        sys.stdout.write(report_of(learned, summary))
        sys.stdout.write(f"Written: {task.out}\n")


def _prepared(source: Source, task: Task) -> tuple[Sites, Task]:
    """Read the sites' data, and fit the task to the variables."""
    sites = read_sites(source)
    variables = sites.variables
    records = min(data.records for data in sites.data.values())
    sites.check_column(task.validations.target, "--target")
    options = _of_variables(task.options, sites.left_out)
    if lost := sorted(sites.left_out.keys() & set(task.options.constraints.names)):
        unused = f"--constraints: unused for {', '.join(lost)}, left out of the data"
        sites = replace(sites, warnings=(*sites.warnings, unused))
    validations = task.validations.prepared(variables, records)
    if task.rule is not None:
        check_validations(variables, options, validations.validate)
    return sites, replace(task, options=options, validations=validations)


def options_from(values: Mapping[str, Any]) -> Options:
    """Return the options of the values of `vertibayes.settings.LEARNING`; read their files."""
    contents = {
        "ordering": read_ordering(values["ordering"]),
        "constraints": read_constraints(values["constraints"]),
        "structure": read_structure(values["structure"]),
    }
    return Options(**{**values, **contents})


def _of_variables(options: Options, left_out: Mapping[str, str]) -> Options:
    """Remove columns that are left out from what the options name, or refuse them."""
    needed = options.structure.nodes if options.structure is not None else ()
    classes = [] if options.class_variable is None else [options.class_variable]
    for option, named in (("structure", needed), ("class-variable", classes)):
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


def learn_from(
    sites: Sites, task: Task, cuts: Cuts | None = None
) -> tuple[Learned, dict[str, Any]]:
    """Learn over sites in this process; return what was learned and what summary.json has."""
    start = perf_counter()
    policy = None if task.rule is None else ALLOW_ALL  # one person holds all data: any budget
    plausible = dict.fromkeys(sites.data, MOST_SIZE)  # one person holds all lists
    with federate(
        sites.data,
        policy=policy,
        memory_budget=sites.memory,
        limits=AlignmentLimits(most_people=plausible),
    ) as federation:
        ledger = federation.session.role.ledger
        with ledger_kept(ledger, task.out):
            if cuts is not None:
                cuts.note(ledger)
            with explained(sites):
                study = open_study(
                    federation.session,
                    federation.sites,
                    federation.dealer,
                    order=sites.order,
                    choices=task.rule is not None,
                    alignment=AlignmentRequest(rules=sites.rules) if sites.rules else None,
                )
            shown = {site: list(role.shown) for site, role in federation.roles.items()}
            run = Run(
                ledger,
                federation.traffic,
                shown,
                cuts=None if cuts is None else cuts.as_json(),
                people=study.people,
                left_out=sites.left_out,
            )
            if task.rule is not None:
                return release_with(study, run, task, perf_counter() - start, sites.warnings)
            counter = SecureCounter(study)
            _check(counter, task.options)
            return learn_with(counter, run, task, perf_counter() - start, sites.warnings)


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


def learn_with(
    counter: SecureCounter,
    run: Run,
    task: Task,
    commit_seconds: float,
    warnings: Iterable[str] = (),
) -> tuple[Learned, dict[str, Any]]:
    """Learn from a counter, whether its sites are in this process or on other machines."""
    options = task.options
    cost = expected(counter, options)
    said = warn([*warnings, *notices(counter, options), *task.validations.warnings()], task.watch)
    if not task.quiet:
        sys.stderr.write(f"expected: {cost}\n")
    task.watch.phase(STRUCTURE)
    with progress_shown(task.quiet, counter.watchers, watch=task.watch) as progress:
        learned = learn(counter, options, progress)
        if options.max_seconds is not None and learned.structure_seconds >= options.max_seconds:
            late = "the search ended when its time was up: the structure is the best so far"
            said += warn([late], task.watch)
        outcome = Outcome(
            learned,
            counter,
            lambda: {"calls": counter.calls, "queries": counter.queries, "forecast": cost},
            warnings=said,
        )
        run = run._replace(traffic=counter.traffic)  # of another session, if the first one broke
        return conclude(outcome, run, task, commit_seconds, progress)


def expected(counter: SecureCounter, options: Options) -> str:
    """Return a sentence about the cost of a run, before it asks for a table."""
    cost = counter.forecast(families_of(counter, options), missing=options.missing == "state")
    calls = TYPICAL_CALLS.get(options.by)
    if options.structure is not None or calls is None:
        return cost.sentence()
    return (
        f"{cost.in_calls(calls).sentence()}; this is typical and not a bound, as the data decide "
        f"for which tables {options.by} asks"
    )


@contextmanager
def ledger_kept(ledger: Ledger, out: Path | None) -> Iterator[None]:
    """Write the ledger if a run fails or is stopped after tables were revealed."""
    try:
        yield
    except UnwrittenError:  # the ledger is with the other results
        raise
    except BaseException:
        if out is not None and ledger.tables and is_free(out):
            keep_ledger(ledger, out)
        raise


def keep_ledger(ledger: Ledger, out: Path) -> None:
    """Write the ledger of a run that failed, and print where; the caller raises the run's error."""
    try:
        write_ledger(out, ledger)
    except UnwrittenError as error:
        warn([str(error)])
    else:
        were = "was" if len(ledger.tables) == 1 else "were"
        what = f"{counted(len(ledger.tables), 'table')} {were}" if ledger.tables else "what was"
        warn([f"{what} revealed before the run failed: {out / 'ledger.json'}"])


def _smoothing(learned: Learned, kind: str) -> str:
    """Say from what the CPTs are."""
    counts = {
        "em": f"the counts that EM estimates from the {kind} tables",
        "synthetic": f"the counts that EM estimates from records drawn from the {kind} tables",
    }.get(learned.missing, f"the {kind} counts")
    if not learned.pseudo_count:
        return f"{counts}, divided (maximum likelihood)"
    return f"{counts}, {learned.pseudo_count:g} added to each (--pseudo-count), divided"


def report_of(learned: Learned, summary: dict[str, Any]) -> str:
    """Return the lines that the command prints about a run."""
    seconds, opened, sent = summary["seconds"], summary["opened"], summary["bytes"]
    scores, structure = learned.scores, learned.network.structure
    sender = "" if sent["sent_by"] == "all parties" else f" by {sent['sent_by']}"
    is_released = "release" in summary
    has_choices = is_released and summary["choices"]["decisions"]
    winners = ", the winners of the choices" if has_choices else ""
    winners += ", how many people are in which lists" if "alignment" in summary else ""
    by = "" if learned.algorithm is None else f" by {learned.algorithm}"
    lines = [
        f"{counted(summary['records'], 'record')}, "
        f"{counted(len(summary['variables']), 'variable')} at "
        f"{counted(len(summary['sites']), 'site')}",
        f"structure{by}: {counted(len(structure.edges), 'edge')}; BIC {scores.bic:.3f}, "
        f"AIC {scores.aic:.3f}, K2 score {scores.k2:.3f} nats",
        *(report_of_people(summary["alignment"]) if "alignment" in summary else []),
        *report_of_edges(learned),
        *report_of_strengths(learned, summary),
        *(report_of_release(summary) if is_released else []),
        *(report_of_cuts(summary["discretization"]) if "discretization" in summary else []),
        f"CPTs: {_smoothing(learned, 'released' if is_released else 'exact')}",
        f"seconds: commit {seconds['commit']:.3f}, structure {seconds['structure']:.3f}, "
        f"parameters {seconds['parameters']:.3f}, arc strengths {seconds['strengths']:.3f}",
        f"sent{sender}: {size(sent['total'])} in {counted(summary['rounds'], 'round')}",
        f"revealed to the analyst: {counted(opened['tables'], 'table')}, "
        f"{counted(opened['cells'], 'cell')}{winners}, and nothing else of the records",
    ]
    for method, auc in summary["auc"].items():
        area = area_of(auc, summary["auc_interval"][method])
        lines.append(f"{method}{HINTS[method]}: {area}")
    return "\n".join(lines) + "\n"
