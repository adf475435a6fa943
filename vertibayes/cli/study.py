"""``vertibayes learn study.toml``: each site is a process, on this machine or another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from vertibayes.choosing.secret import SecretChooser
from vertibayes.cli.calibrate_study import check_site as check_calibrated
from vertibayes.cli.calibrate_study import read_calibration, run_calibration_study
from vertibayes.cli.contracts import contract_of, has_contract
from vertibayes.cli.learn import Opened, Task, learn_at
from vertibayes.cli.naive_bayes_study import read_study, run_naive_bayes_study
from vertibayes.cli.notices import warn
from vertibayes.cli.options import check_arguments
from vertibayes.cli.outputs import check_folder, study_entry
from vertibayes.cli.run import Run
from vertibayes.cli.study_settings import learner_of, options_of, placed, validations_of
from vertibayes.cli.watched_run import watched_run
from vertibayes.counting.secure import SecureCounter
from vertibayes.options import checks
from vertibayes.released import check_validations
from vertibayes.run_file import RunFile
from vertibayes.study import opener
from vertibayes.table_file import TableFile
from vertibayes.words import counted
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.deployment.running import study_sessions
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.renewal import Renewing
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.data import SiteData


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
    task = None
    if learner == "bayesian_network":
        rule = None if contract is None else contract.rule
        task = Task(options_of(file), validations_of(file), rule)
    validates = task is not None and bool(task.validations.validate)
    watched = watched_run(file, learner, out, quiet=quiet, contract=contract, validates=validates)
    with watched as watch, Run(out, quiet, watch, sums=learner != "bayesian_network") as run:
        if task is not None:
            learn_at(Machines(file, contract), task, run)
        elif learner == "naive_bayes":
            run_naive_bayes_study(file, contract, run)
        else:
            run_calibration_study(file, contract, run)


@dataclass(frozen=True)
class Machines:
    """The sites of a study's file, each a process on this machine or another."""

    file: StudyFile
    contract: Contract | None  # what all sites have approved; None if they answer any query

    @contextmanager
    def opened(self, task: Task, run: Run) -> Iterator[Opened]:
        """Open the study, or resume it; as `Place.opened`."""
        file, contract = self.file, self.contract
        with self._kept() as kept, study_sessions(file, run.watch) as begin:
            self._say_what_is_resumed(kept, run)
            with Renewing(begin, self._opener(kept), file.patience, run.watch) as renewing:
                study = renewing.first()
                run.ledger = study.ledger
                source = (
                    SecureCounter(study, kept)
                    if isinstance(kept, TableFile)
                    else SecretChooser(study)
                )
                about = {"study": study_entry(file, contract, study.study)}
                yield Opened(study, source, _fitting(file, source, task), about, sender=file.party)
            if isinstance(kept, RunFile):
                kept.finish()

    def _kept(self) -> TableFile | RunFile:
        """Return the file that has what was revealed before."""
        if self.contract is None:
            return TableFile(self.file.tables)
        return RunFile(self.file.run, self.contract.digest)

    def _opener(self, kept: TableFile | RunFile) -> Callable[[Session], OpenStudy]:
        """Return what opens the study in a session."""
        if isinstance(kept, TableFile):
            return opener(self.file, kept)
        contract = self.contract
        assert contract is not None  # `_kept` opens the file of its runs
        return lambda session: open_approved(session, contract, kept.study, kept.seen, kept.add)

    def _say_what_is_resumed(self, kept: TableFile | RunFile, run: Run) -> None:
        if isinstance(kept, TableFile):
            warn(kept.recovered(), run.watch)
            before = len(kept.tables)
            were = "table that was" if before == 1 else "tables that were"
            what = f"the study with {before} {were} revealed before"
        else:
            before = len(kept.seen)
            what = f"the run after {counted(before, 'step')} that were answered before"
        if before and not run.quiet:
            sys.stderr.write(f"resuming {what}\n")


def check_settings(file: StudyFile) -> None:
    """Refuse settings of a study, whatever it learns, that cannot be used; as `options_of`."""
    learner = learner_of(file)
    if learner == "bayesian_network":
        options_of(file)
        validations_of(file)
    elif learner == "naive_bayes":
        read_study(file)
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


def _fitting(file: StudyFile, source: SecureCounter | SecretChooser, task: Task) -> Task:
    """Refuse options that do not fit what the sites offer, before a table is revealed."""
    table = file.source.table("learning")
    for key, check in checks(source, task.options).items():
        try:
            check()
        except ValueError as error:
            raise table.error(key, str(error)) from None
    with placed(file.source.table("validation")):
        if task.rule is not None:
            check_validations(source.variables, task.options, task.validations.validate)
        validations = task.validations.prepared(source.variables, source.records)
    return replace(task, validations=validations)
