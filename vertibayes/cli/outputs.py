"""The files of a run: all of them in its folder or, if that cannot be written, all in another."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpc.rounds import Party
from protocols.ledger import Ledger
from protocols.session import Traffic
from protocols.site.data import SiteData
from protocols.site.whole_file import replacing
from vertibayes import __version__
from vertibayes.cli.validations import as_json
from vertibayes.learning import Learned
from vertibayes.model_file import WRITERS
from vertibayes.network import Network
from vertibayes.report.curves import draw_curves
from vertibayes.report.disclosure import Disclosure
from vertibayes.report.drawing import draw
from vertibayes.report.words import area_of, size
from vertibayes.secure_counter import SecureCounter
from vertibayes.validation.methods import Validation

LEDGER = re.compile(r"ledger(-\d+)?\.json")  # of this run; of failed ones before, by number
LEAST_FREE = 1_000_000  # bytes on the disk of the results before a run: models are smaller


class UnwrittenError(ValueError):
    """The results could not be written to their folder; the message says where they are."""


class Run(NamedTuple):
    """What there is to tell of a run, whoever moved its messages.

    Attributes
    ----------
    ledger : Ledger
        The analyst's.
    traffic : Traffic
        Of all parties in one process, of the analyst alone between machines.
    shown : mapping of Party to sequence of str
        The variables of each site.
    sender : Party, optional
        Whose messages `traffic` has, if it is one party's alone.
    study : mapping, optional
        What names a study between machines: its file, its id, its parties' keys.
    """

    ledger: Ledger
    traffic: Traffic
    shown: Mapping[Party, Sequence[str]]
    sender: Party | None = None
    study: Mapping[str, Any] | None = None


def check_folder(folder: Path) -> None:
    """Refuse, before a run, a folder that cannot take its results.

    It must be new or empty, except for ledgers of runs that failed, and on a disk with free space.

    Raises
    ------
    ValueError
        It names the folder.
    """
    parent = folder.resolve()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ValueError(f"--out {folder}: {parent} is not a folder that can be written to")
    if not is_free(folder):
        raise ValueError(f"--out {folder}: it holds files; specify a new or empty folder")
    free = shutil.disk_usage(parent).free
    if free < LEAST_FREE:
        raise ValueError(
            f"--out {folder}: the disk of {parent} is full ({size(free)} free); free at least "
            f"{size(LEAST_FREE)}"
        )


def is_free(folder: Path) -> bool:
    """Whether a folder is new, or has at most the ledgers of runs that failed."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(LEDGER.fullmatch(path.name) for path in folder.iterdir())


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Fill a folder, its owner's alone, beside its place and move it there when it is whole.

    Ledgers of runs that failed are kept, as ledger-1.json and so on: what was opened stays so.
    Where the folder cannot be written, as on a full disk, `write` fills one for temporary files.

    Raises
    ------
    UnwrittenError
        It says why, and which folder has the files instead.
    """
    folder = folder.resolve()
    try:
        _write_whole(folder, write)
    except OSError as error:
        raise UnwrittenError(f"--out {folder}: {error.strerror}; {_write_aside(write)}") from None


def _write_whole(folder: Path, write: Callable[[Path], object]) -> None:
    if not is_free(folder):
        raise FileExistsError(errno.EEXIST, "it got other files during the run")
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write(part)
        _keep_ledgers(folder, part)
        _replace(folder, part)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _write_aside(write: Callable[[Path], object]) -> str:
    """Fill a folder for temporary files as far as it can be written; say what it has."""
    try:
        aside = Path(tempfile.mkdtemp(prefix="vertibayes-"))
    except OSError as error:
        return f"no folder for temporary files can be written either: {error.strerror}"
    try:
        write(aside)
    except OSError as error:
        names = ", ".join(sorted(path.name for path in aside.iterdir())) or "no file"
        return f"{error.filename or aside}: {error.strerror}; {aside} has {names}"
    return f"the results are in {aside} instead"


def _keep_ledgers(folder: Path, part: Path) -> None:
    """Copy the ledgers of earlier runs, numbered on."""
    earlier = sorted(folder.glob("ledger-*.json"), key=lambda path: int(path.stem[7:]))
    for path in earlier:
        shutil.copy2(path, part)
    if (folder / "ledger.json").exists():
        last = int(earlier[-1].stem[7:]) if earlier else 0
        shutil.copy2(folder / "ledger.json", part / f"ledger-{last + 1}.json")


def _replace(folder: Path, part: Path) -> None:
    """Put a folder in another's place, whose files it has: they are never gone meanwhile."""
    if not folder.exists() or not any(folder.iterdir()):
        part.replace(folder)
        return
    old = part.with_name(f"{part.name}.old")
    folder.replace(old)
    part.replace(folder)
    shutil.rmtree(old)


def write_results(
    folder: Path,
    learned: Learned,
    run: Run,
    summary: Mapping[str, Any],
    validated: Mapping[str, Validation],
) -> None:
    """Write structure, model, drawing, summary and ledger of a run.

    If there are any, also its validations, with a picture of each, and its synthetic records.
    """

    def write(part: Path) -> None:
        write_model(part, learned.network)
        write_json(part / "ledger.json", run.ledger.as_json())
        write_json(part / "summary.json", summary)
        if validated:
            aic = learned.scores.aic
            write_json(
                part / "validation.json", {name: as_json(v, aic) for name, v in validated.items()}
            )
        holders = {name: site for site, names in run.shown.items() for name in names}
        write_text(part / "structure.svg", draw(learned.network.structure, holders))
        for name, validation in validated.items():
            picture = draw_curves(validation, title_of(name, validation))
            write_text(part / f"validation-{name}.svg", picture)
        if learned.synthetic is not None:
            _write_records(part / "synthetic.csv", learned.synthetic)

    write_folder(folder, write)


def write_model(part: Path, network: Network) -> None:
    """Write structure and model in all formats: the first files, as they are worth the most."""
    structure = network.structure
    nodes, edges = list(structure.nodes), [list(edge) for edge in structure.edges]
    write_json(part / "structure.json", {"nodes": nodes, "edges": edges})
    for ending in (".json", ".bif", ".bifxml"):
        write_text(part / f"model{ending}", WRITERS[ending](network))


def title_of(method: str, validation: Validation) -> str:
    """Return the title of a validation's picture."""
    records = "synthetic records" if validation.synthetic else "records"
    area = area_of(validation.overall.auc, validation.interval)
    return (
        f"{validation.target}, {method.upper()} on {validation.overall.scored:,} {records}: {area}"
    )


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Write the ledger of a run that failed; as `write_folder`."""
    write_folder(folder, lambda part: write_json(part / "ledger.json", ledger.as_json()))


def _write_records(path: Path, data: SiteData) -> None:
    """Write records as CSV: missing cells are empty fields."""
    columns = [
        np.array([*variable.states, ""])[data.codes[name]]
        for name, variable in data.variables.items()
    ]
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data.variables)
        writer.writerows(zip(*columns, strict=True))


def write_json(path: Path, value: object) -> None:
    """Write a file of JSON, without NaN."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; an OSError names it."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def summarize(
    learned: Learned,
    counter: SecureCounter,
    run: Run,
    other_seconds: Mapping[str, float],
    found: Disclosure,
    validated: Mapping[str, Validation],
) -> dict[str, Any]:
    """Return the summary of a run as JSON data."""
    traffic = run.traffic
    seconds = {
        "commit": other_seconds["commit"],
        "structure": learned.structure_seconds,
        "parameters": learned.parameters_seconds,
        "validation": other_seconds["validation"],
    }
    seconds["total"] = sum(seconds.values())
    return {
        "version": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **({} if run.study is None else {"study": dict(run.study)}),
        "records": counter.records,
        "sites": {site: list(names) for site, names in run.shown.items()},
        "variables": {
            name: {"states": list(variable.states), "missing": variable.missing}
            for name, variable in counter.variables.items()
        },
        "edges": len(learned.network.structure.edges),
        "pseudo_count": learned.pseudo_count,
        "scores": learned.scores.as_json(),
        "unseen_parent_configurations": {
            node: count for node, count in learned.network.unseen.items() if count
        },
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "rounds": traffic.rounds,
        "calls": counter.calls,
        "queries": counter.queries,
        "bytes": {
            "sent_by": run.sender or "all parties",
            "total": traffic.bytes,
            "links": {_link(link): count for link, count in sorted(traffic.bytes_sent.items())},
        },
        "auc": {method: validation.overall.auc for method, validation in validated.items()},
        "auc_interval": {method: validation.interval for method, validation in validated.items()},
        "widened": [step._asdict() for step in learned.widenings],
        "opened": {
            "tables": len(counter.ledger.tables),
            "cells": counter.ledger.cells,
            "single_record": found._asdict(),
        },
    }


def _link(link: tuple[Party, Party]) -> str:
    return f"{link[0]} -> {link[1]}"
