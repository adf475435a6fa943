"""``vertibayes learn study.toml``: the sites are processes of their own, wherever they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import typer

from mpc.rounds import Party
from protocols.deployment.files import StudyFile
from protocols.deployment.log import start_log
from protocols.deployment.running import study_session
from protocols.deployment.tables import Table
from protocols.public_keys import encode_public
from protocols.session import Session
from protocols.transports.network import unsaid
from vertibayes.cli.inputs import read_structure
from vertibayes.cli.learn import learn_with, ledger_kept, told
from vertibayes.cli.outputs import Run, check_folder
from vertibayes.cli.validations import Validations
from vertibayes.learning import Options, checks
from vertibayes.secure_counter import SecureCounter
from vertibayes.structure.k2 import MOST_PARENTS
from vertibayes.study import counter_of
from vertibayes.table_file import TableFile


def check_alone(context: typer.Context, study: Path) -> None:
    """Refuse what is no study file, and options beside one: the file alone describes the run.

    Raises
    ------
    ValueError
        It names the argument or the option.
    """
    if study.suffix != ".toml":
        raise ValueError(
            f"unexpected argument {str(study)!r}: expected a study.toml, or options only"
        )
    for name in context.params:
        given = context.get_parameter_source(name)
        by_hand = given is not None and given.name not in ("DEFAULT", "DEFAULT_MAP")
        if by_hand and name not in ("study", "out", "quiet"):
            option = "--" + name.replace("_", "-")
            raise ValueError(f"{option} cannot be combined with a study.toml: set it in [learning]")


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
    waiting = unsaid if quiet else tell_waiting
    with TableFile(file.tables) as kept, study_session(file, waiting=waiting) as session:
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
        validations = _fitting(file, counter, options, validations)
        if before and not quiet:
            were = "table that was" if before == 1 else "tables that were"
            sys.stderr.write(f"going on with {before} {were} opened before\n")
        traffic, study = session.transport.traffic, named(file, counter)
        run = Run(ledger, traffic, shown(counter), file.party, study)
        commit_seconds = perf_counter() - start
        learned, summary = learn_with(
            counter, run, options, out, quiet, validations, commit_seconds
        )
    if not quiet:
        sys.stdout.write(told(learned, summary, options) + f"Written: {out}\n")


def tell_waiting(parties: Collection[Party], seconds: float) -> None:
    """Say which parties have not come yet."""
    started = "is it started?" if len(parties) == 1 else "are they started?"
    sys.stderr.write(f"waiting for {', '.join(parties)} ({seconds:g} s; {started})\n")


def named(file: StudyFile, counter: SecureCounter) -> dict[str, Any]:
    """Return what tells a study from others: its file, its id, the parties and their keys."""
    keys = {party: encode_public(key) for party, key in file.pinned.items()}
    return {"file": str(file.source.path), "id": counter.study.id.hex(), "keys": keys}


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
        "max_parents": partial(table.whole, most=MOST_PARENTS),
        **dict.fromkeys(("wider_cells", "em_restarts"), table.whole),
        **dict.fromkeys(("structure_records", "synthetic_records"), partial(table.whole, least=1)),
    }
    given: dict[str, Any] = {key: take(key) for key, take in ways.items() if key in table}
    given["write_synthetic"] = table.flag("write_synthetic", False)
    table.end()
    try:
        return Options(**given)
    except ValueError as error:
        raise _placed(table, error) from None


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
        raise _placed(table, error) from None
    if found.public is not None and not found.public.is_file():
        raise table.error("public", f"{found.public}: no such file")
    return found


def _fitting(
    file: StudyFile, counter: SecureCounter, options: Options, validations: Validations
) -> Validations:
    """Refuse, before a table is opened, what does not fit what the sites offer.

    Raises
    ------
    ValueError
        It names file, line and key.
    """
    table = file.source.table("learning")
    for key, check in checks(counter, options).items():
        try:
            check()
        except ValueError as error:
            raise table.error(key, str(error)) from None
    try:
        return validations.prepared(counter.variables, counter.records)
    except ValueError as error:
        raise _placed(file.source.table("validation"), error) from None


def _placed(table: Table, error: ValueError) -> ValueError:
    """Return an error of the command's options as one of the file: of the first key it names."""
    reason = str(error).replace("--validate", "methods").replace("--", "")
    words = re.sub("[ -]", "_", reason.lower())
    named = [key for key in table.values if key in words]
    if not named:
        return table.file.error(table.keys, reason)
    return table.error(min(named, key=words.index), reason)
