"""``vertibayes learn study.toml``: each site is a process, on this machine or another."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import typer

from vertibayes.choosing.secret import SecretChooser
from vertibayes.cli.calibrate_study import check_site as check_calibrated
from vertibayes.cli.calibrate_study import read_calibration, run_calibration_study
from vertibayes.cli.contracts import contract_of, has_contract
from vertibayes.cli.learn import learn_with, ledger_kept, report_of
from vertibayes.cli.naive_bayes_study import read_study, run_naive_bayes_study
from vertibayes.cli.notices import warn
from vertibayes.cli.options import check_arguments
from vertibayes.cli.outcome import Task
from vertibayes.cli.outputs import Run, check_folder
from vertibayes.cli.release import release_with
from vertibayes.cli.study_settings import learner_of, options_of, placed, validations_of
from vertibayes.cli.summaries import study_entry
from vertibayes.cli.validations import Validations
from vertibayes.cli.watched_run import watched_run
from vertibayes.counting.secure import SecureCounter
from vertibayes.options import checks
from vertibayes.released import check_validations
from vertibayes.run_file import RunFile
from vertibayes.study import opener
from vertibayes.table_file import TableFile
from vertibayes.words import counted
from vertibayes_protocols.approved_study import ApprovedStudy, open_approved
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.deployment.running import BeginSession, study_sessions
from vertibayes_protocols.open_study import Renewing
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Study


def check_alone(context: typer.Context, study: Path) -> None:
    """Refuse an argument that is not a study file, and options beside one."""
    if study.suffix != ".toml":
        check_arguments([str(study)], "a study.toml or options")
    for name in context.params:
        given = context.get_parameter_source(name)
        by_hand = given is not None and given.name not in ("DEFAULT", "DEFAULT_MAP")
        if by_hand and name not in ("study", "out", "quiet"):
            option = "--" + name.replace("_", "-")
            raise ValueError(f"{option} cannot be combined with a study.toml: set it in [learning]")


def run_study(path: Path, out: Path, quiet: bool) -> None:
    """Learn what a study's file describes, and write the results."""
    check_folder(out)
    file = StudyFile.read(path)
    learner = learner_of(file)
    if learner == "prediction":
        reason = f"`vertibayes predict --study {path} --out FILE` runs this study"
        raise file.source.error(("learning", "learner"), reason)
    contract = contract_of(file) if has_contract(file) else None
    if learner != "bayesian_network":
        run = run_naive_bayes_study if learner == "naive_bayes" else run_calibration_study
        with watched_run(file, learner, out, quiet=quiet, contract=contract) as watch:
            run(file, out, quiet, contract, watch)
        return
    task = Task(options_of(file), out, quiet, validations_of(file))
    validates = bool(task.validations.validate)
    with watched_run(
        file, learner, out, quiet=quiet, contract=contract, validates=validates
    ) as watch:
        _run_network(file, contract, replace(task, watch=watch))


def _run_network(file: StudyFile, contract: Contract | None, task: Task) -> None:
    if contract is not None:
        with RunFile(file.run, contract.digest) as kept, study_sessions(file, task.watch) as begin:
            _learn_approved(file, contract, begin, kept, replace(task, rule=contract.rule))
        return
    with TableFile(file.tables) as tables, study_sessions(file, task.watch) as begin:
        warn(tables.recovered(), task.watch)
        _learn(file, begin, tables, task)


def _learn_approved(
    file: StudyFile, contract: Contract, begin: BeginSession, kept: RunFile, task: Task
) -> None:
    """Run a study that all sites have approved, or resume it: choices, and one release."""
    start = perf_counter()

    def open_(session: Session) -> ApprovedStudy:
        return open_approved(session, contract, kept.study, kept.seen, kept.add)

    if kept.seen and not task.quiet:
        steps = counted(len(kept.seen), "step")
        sys.stderr.write(f"resuming the run after {steps} that were answered before\n")
    with Renewing(begin, open_, file.patience, task.watch) as renewing:
        study = renewing.first()
        with ledger_kept(study.ledger, task.out):
            fitting = replace(task, validations=_fitting(file, SecretChooser(study), task))
            run = Run(
                study.ledger,
                study.traffic,
                shown(study.study),
                file.party,
                study_entry(file, contract, study.study),
                people=study.people,
            )
            learned, summary = release_with(study, run, fitting, perf_counter() - start)
        kept.finish()
    if not task.quiet:
        sys.stdout.write(report_of(learned, summary) + f"Written: {task.out}\n")


def _learn(file: StudyFile, begin: BeginSession, kept: TableFile, task: Task) -> None:
    start, before = perf_counter(), len(kept.tables)
    if before and not task.quiet:
        were = "table that was" if before == 1 else "tables that were"
        sys.stderr.write(f"resuming the study with {before} {were} revealed before\n")
    with Renewing(begin, opener(file, kept), file.patience, task.watch) as renewing:
        study = renewing.first()
        with ledger_kept(study.ledger, task.out):
            counter = SecureCounter(study, kept)
            validations = _fitting(file, counter, task)
            of_study = shown(study.study), file.party, study_entry(file, None, study.study)
            run = Run(study.ledger, study.traffic, *of_study, people=study.people)
            fitting = replace(task, validations=validations)
            learned, summary = learn_with(counter, run, fitting, perf_counter() - start)
    if not task.quiet:
        sys.stdout.write(report_of(learned, summary) + f"Written: {task.out}\n")


def shown(study: Study) -> dict[str, list[str]]:
    """Return the variables of each site, in the study's order."""
    return {s: [n for n in study.variables if s in study.holders[n]] for s in study.sites}


def check_settings(file: StudyFile) -> None:
    """Refuse settings of a study, whatever it learns, that cannot be used; as `options_of`."""
    learner = learner_of(file)
    if learner == "bayesian_network":
        options_of(file)
        validations_of(file)
    elif learner == "naive_bayes":
        read_study(file, Path(), quiet=True)
    elif learner == "prediction":
        contract_of(file)  # it has no other settings
    else:
        read_calibration(file)


def digest_of(file: StudyFile) -> str | None:
    """Return the digest that sites approve; None of a study without [release]."""
    return grouped_digest(contract_of(file).digest) if has_contract(file) else None


def check_site(file: StudyFile, site: SiteFile, data: SiteData) -> str | None:
    """As `calibrate_study.check_site`; None if the study learns something else."""
    return check_calibrated(file, site, data) if learner_of(file) == "calibration" else None


def _fitting(file: StudyFile, counter: SecureCounter | SecretChooser, task: Task) -> Validations:
    """Refuse options that do not fit what the sites offer, before a table is revealed."""
    table = file.source.table("learning")
    for key, check in checks(counter, task.options).items():
        try:
            check()
        except ValueError as error:
            raise table.error(key, str(error)) from None
    with placed(file.source.table("validation")):
        if task.rule is not None:
            check_validations(counter.variables, task.options, task.validations.validate)
        return task.validations.prepared(counter.variables, counter.records)
