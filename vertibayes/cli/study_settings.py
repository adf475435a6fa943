"""The settings of a study's file: what it learns, and how; errors name the line and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vertibayes.cli.json_files import options_from
from vertibayes.cli.validations import Validations
from vertibayes.options import Options
from vertibayes.settings import LEARNER, LEARNING, VALIDATION
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.deployment.tables import Table
from vertibayes_protocols.settings import MASKED_TABLES
from vertibayes_protocols.study import NEEDS_MASKED_TABLES

COUNTS_TWICE = (
    "learns from sites with different records and counts a person at two sites twice; an alignment "
    "could only check that the sites share nobody, which vertibayes does not offer: remove the "
    "table"
)


def learner_of(file: StudyFile) -> str:
    """Return what a study's [learning] learns; as `options_of`."""
    learner = str(file.source.table("learning").take(LEARNER))
    if learner == "bayesian_network" and file.numbers:
        reason = "Bayesian networks have states alone: remove it, or set learner"
        raise file.source.error(("numbers",), reason)
    if learner != "calibration" and "network" in file.source.values:
        reason = f"{learner} does not use it: remove the table"
        raise file.source.error(("network",), reason)
    if learner == "calibration" and file.alignment is not None:
        raise file.source.error(("alignment",), f"{learner} {COUNTS_TWICE}")
    if learner != "bayesian_network" and "validation" in file.source.values:
        has = "rule in [release] gives an AUC" if learner == "prediction" else "[learning] has test"
        reason = f"{learner} does not use it: remove the table; {has}"
        raise file.source.error(("validation",), reason)
    if learner != "bayesian_network" and "run" in file.source.values:
        reason = (
            f"{learner} is not begun again by itself, because each attempt can cost privacy "
            "budget: remove the table"
        )
        raise file.source.error(("run",), reason)
    return learner


def test_of(table: Table, values: Mapping[str, Any]) -> Path | None:
    """Return the file of test records of a study whose sites hold all others."""
    if values["holdout"] is not None:
        raise table.error("holdout", "the records lie at the sites: use test, a file of records")
    test: Path | None = values["test"]
    return test


def options_of(file: StudyFile) -> Options:
    """Return the options of a study's [learning]."""
    table = file.source.table("learning")
    table.take(LEARNER)
    values = table.take_all(LEARNING)
    table.end()
    with placed(table):
        return options_from(values)


def validations_of(file: StudyFile) -> Validations:
    """Return the validations of a study's [validation]; as `options_of`."""
    table = file.source.table("validation")
    validations = Validations(**table.take_all(VALIDATION))
    table.end()
    with placed(table):
        validations.check()
    if "holdout" in validations.validate and file.count_by != MASKED_TABLES:
        raise table.error("validate", f"holdout needs masked columns: {NEEDS_MASKED_TABLES}")
    if validations.public is not None and not validations.public.is_file():
        raise table.error("public", f"{validations.public}: no such file")
    return validations


@contextmanager
def placed(table: Table) -> Iterator[None]:
    """Place an error about settings, written `name`, at the first of them that the table has."""
    try:
        yield
    except ValueError as error:
        named = [name for name in re.findall("`([a-z_]+)`", str(error)) if name in table.values]
        reason = str(error).replace("`", "")
        if named:
            raise table.error(named[0], reason) from None
        raise table.file.error(table.keys, reason) from None
