"""The files of a run: all of them, or none."""

from __future__ import annotations

import csv
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
from vertibayes import __version__
from vertibayes.bif import write_bif
from vertibayes.cli.validations import as_json
from vertibayes.learning import Learned
from vertibayes.report.curves import draw_curves
from vertibayes.report.disclosure import Disclosure
from vertibayes.report.drawing import draw
from vertibayes.secure_counter import SecureCounter
from vertibayes.validation.methods import Validation

LEDGER = re.compile(r"ledger(-\d+)?\.json")  # of this run; of failed ones before, by number


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
    """Refuse a folder that is not new or empty, but for ledgers of runs that failed.

    Raises
    ------
    ValueError
        It names the folder.
    """
    parent = folder.resolve()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ValueError(f"--out {folder}: {parent} is no folder that can be written to")
    if not is_free(folder):
        raise ValueError(f"--out {folder}: a new or empty folder is wanted")


def is_free(folder: Path) -> bool:
    """Whether a folder is new, or has at most the ledgers of runs that failed."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(LEDGER.fullmatch(path.name) for path in folder.iterdir())


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a folder, its owner's alone, beside its place and move it there when it is whole.

    Ledgers of runs that failed are kept, as ledger-1.json and so on: what was opened stays so.
    """
    check_folder(folder)
    folder = folder.resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ValueError(f"--out {folder}: {error.strerror}") from None
    try:
        write(part)
        _keep_ledgers(folder, part)
        _replace(folder, part)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


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
    structure = learned.network.structure

    def write(part: Path) -> None:
        nodes, edges = list(structure.nodes), [list(edge) for edge in structure.edges]
        write_json(part / "structure.json", {"nodes": nodes, "edges": edges})
        (part / "model.bif").write_text(write_bif(learned.network), encoding="utf-8")
        holders = {name: site for site, names in run.shown.items() for name in names}
        (part / "structure.svg").write_text(draw(structure, holders), encoding="utf-8")
        write_json(part / "summary.json", summary)
        write_json(part / "ledger.json", run.ledger.as_json())
        aic = learned.scores.aic
        if validated:
            write_json(
                part / "validation.json", {name: as_json(v, aic) for name, v in validated.items()}
            )
        for name, validation in validated.items():
            picture = draw_curves(validation.curves, title_of(name, validation))
            (part / f"validation-{name}.svg").write_text(picture, encoding="utf-8")
        if learned.synthetic is not None:
            _write_records(part / "synthetic.csv", learned.synthetic)

    write_folder(folder, write)


def title_of(method: str, validation: Validation) -> str:
    """Return the title of a validation's picture."""
    overall = validation.overall
    auc = "no AUC" if overall.auc is None else f"AUC {overall.auc:.3f}"
    return f"{validation.target}, {method.upper()}: {auc}, {overall.scored:,} records scored"


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Write the ledger of a run that failed."""
    write_folder(folder, lambda part: write_json(part / "ledger.json", ledger.as_json()))


def _write_records(path: Path, data: SiteData) -> None:
    """Write records as CSV: missing cells are empty fields."""
    columns = [
        np.array([*variable.states, ""])[data.codes[name]]
        for name, variable in data.variables.items()
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data.variables)
        writer.writerows(zip(*columns, strict=True))


def write_json(path: Path, value: object) -> None:
    """Write a file of JSON, without NaN."""
    path.write_text(
        json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )


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
        "scores": learned.scores.as_json(),
        "unseen_parent_configurations": {
            node: count for node, count in learned.network.unseen.items() if count
        },
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "rounds": traffic.rounds,
        "calls": counter.calls,
        "groups": counter.groups,
        "bytes": {
            "sent_by": run.sender or "all parties",
            "total": traffic.bytes,
            "links": {_link(link): count for link, count in sorted(traffic.bytes_sent.items())},
        },
        "auc": {method: validation.overall.auc for method, validation in validated.items()},
        "widened": [step._asdict() for step in learned.widenings],
        "opened": {
            "tables": len(counter.ledger.tables),
            "cells": counter.ledger.cells,
            "single_record": found._asdict(),
        },
    }


def _link(link: tuple[Party, Party]) -> str:
    return f"{link[0]} -> {link[1]}"
