"""``vertibayes learn study.toml``: each site is a process, on this machine or another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vertibayes.cli.calibrate_study import check_site as check_calibrated
from vertibayes.cli.calibrate_study import read_calibration, run_calibration_study
from vertibayes.cli.contracts import contract_of, has_contract
from vertibayes.cli.learn import Task, judged, learn_at
from vertibayes.cli.machines import Machines
from vertibayes.cli.naive_bayes_study import read_study, run_naive_bayes_study
from vertibayes.cli.run import Run
from vertibayes.cli.study_settings import learner_of, options_of, validations_of
from vertibayes.cli.watched_run import watched_run
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.site.data import SiteData


def run_study(path: Path, out: Path, quiet: bool, appetite: Path | None = None) -> None:
    """Learn what a study's file describes, and write the results."""
    file = StudyFile.read(path)
    learner = learner_of(file)
    if learner == "prediction":
        reason = f"`vertibayes predict --study {path} --out FILE` runs this study"
        raise file.source.error(("learning", "learner"), reason)
    contract = contract_of(file) if has_contract(file) else None
    read, learn = LEARNERS[learner]
    task = judged(read(file), appetite)
    validates = isinstance(task, Task) and bool(task.validations.validate)
    watched = watched_run(file, learner, out, quiet=quiet, contract=contract, validates=validates)
    with watched as watch, Run(out, quiet, watch, sums=not isinstance(task, Task)) as run:
        learn(Machines(file, contract), task, run)


def _network(file: StudyFile) -> Task:
    """Return what a study learns of a network."""
    rule = contract_of(file).rule if has_contract(file) else None
    return Task(options_of(file), validations_of(file), rule)


LEARNERS: Mapping[str, tuple[Callable[[StudyFile], Any], Callable[[Machines, Any, Run], object]]]
LEARNERS = {  # what reads the task of a study, and what learns it
    "bayesian_network": (_network, learn_at),
    "naive_bayes": (read_study, run_naive_bayes_study),
    "calibration": (read_calibration, run_calibration_study),
}


def check_settings(file: StudyFile) -> None:
    """Refuse settings of a study, whatever it learns, that cannot be used."""
    read, _ = LEARNERS.get(learner_of(file), (contract_of, None))  # a prediction has that alone
    read(file)


def check_sent(path: Path) -> None:
    """Refuse the file of a study that cannot run, without the analyst's key and test records."""
    file = StudyFile.read(path)
    if has_contract(file):
        contract_of(file, file.roster.by_name[file.party].key if file.roster else None)


def digest_of(file: StudyFile) -> str | None:
    """Return the digest that sites approve; None of a study without [release]."""
    return grouped_digest(contract_of(file).digest) if has_contract(file) else None


def check_site(file: StudyFile, site: SiteFile, data: SiteData) -> str | None:
    """As `calibrate_study.check_site`; None if the study learns something else."""
    return check_calibrated(file, site, data) if learner_of(file) == "calibration" else None
