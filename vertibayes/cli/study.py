"""``vertibayes learn study.toml``: the sites are processes of their own, wherever they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from protocols.deployment.files import StudyFile
from protocols.deployment.log import start_log
from protocols.deployment.running import study_session
from protocols.session import Session
from vertibayes.cli.inputs import read_structure
from vertibayes.cli.learn import learn_with, ledger_kept, told, warn
from vertibayes.cli.outputs import Run, check_folder
from vertibayes.cli.validations import Validations
from vertibayes.counting import SecureCounter
from vertibayes.learning import Options
from vertibayes.study import counter_of
from vertibayes.table_file import TableFile


def run_study(path: Path, out: Path, quiet: bool) -> None:
    """Learn a study's network, and write the results.

    Raises
    ------
    ValueError
        If a file is at fault: it names the line and the key.
    """
    check_folder(out)
    file = StudyFile.read(path)
    start_log(file.party, quiet=quiet)
    options, validations = options_of(file), validations_of(file)
    with TableFile(file.tables) as kept, study_session(file) as session:
        _learn(file, session, kept, options, validations, out, quiet)


def _learn(
    file: StudyFile,
    session: Session,
    kept: TableFile,
    options: Options,
    validations: Validations,
    out: Path,
    quiet: bool,
) -> None:
    start, before = perf_counter(), len(kept.tables)
    ledger = session.role.ledger
    with ledger_kept(ledger, out):
        counter = counter_of(file, session, kept)
        validations = validations.prepared(counter.variables, counter.records)
        if before and not quiet:
            sys.stderr.write(f"going on with {before} tables that were opened before\n")
        warn(validations.doubts())
        run = Run(ledger, session.transport.traffic, shown(counter))
        commit_seconds = perf_counter() - start
        learned, summary = learn_with(
            counter, run, options, out, quiet, validations, commit_seconds
        )
    if not quiet:
        sys.stdout.write(told(learned, summary) + f"Written: {out}\n")


def shown(counter: SecureCounter) -> dict[str, list[str]]:
    """Return the variables of each site, in the study's order."""
    study = counter.study
    return {s: [n for n in study.variables if s in study.holders[n]] for s in study.sites}


def options_of(file: StudyFile) -> Options:
    """Return the options of a study's [learning].

    Raises
    ------
    ValueError
        It names file, line and key.
    """
    table = file.source.table("learning")
    ways: dict[str, Callable[[str], object]] = {
        "structure": lambda key: read_structure(table.path(key)),
        "ordering": table.names,
        "missing": table.text,
        "pseudo_count": table.number,
        **dict.fromkeys(("max_parents", "wider_cells", "em_restarts"), table.whole),
        **dict.fromkeys(("structure_records", "synthetic_records"), partial(table.whole, least=1)),
    }
    given: dict[str, Any] = {key: take(key) for key, take in ways.items() if key in table}
    given["keep_synthetic"] = table.flag("write_synthetic", False)
    table.end()
    try:
        return Options(**given)
    except ValueError as error:
        raise table.file.error(table.keys, str(error)) from None


def validations_of(file: StudyFile) -> Validations:
    """Return the validations of a study's [validation]; as `options_of`."""
    table = file.source.table("validation")
    found = Validations(
        table.names("methods", ()),
        table.text("target") if "target" in table else None,
        table.whole("folds", 10, least=2),
        table.path("public") if "public" in table else None,
        table.names("missing_codes", ()),
    )
    table.end()
    try:
        found.check()
    except ValueError as error:
        reason = str(error).replace("--validate", "methods").replace("--", "")
        raise table.file.error(table.keys, reason) from None
    return found
