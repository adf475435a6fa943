"""The files of a run: all in its folder or, if it cannot be written, all in another folder."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vertibayes.cli.folders import is_free
from vertibayes.model_file import WRITERS
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.model_file import write_naive_bayes
from vertibayes.network import Network
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.storage.whole_file import naming, replacing, sync
from vertibayes_protocols.variables import Variable

MODELS = "model.json", "model.bif", "model.bifxml"
NUMBERS_MODEL = "naive_bayes.json"  # of a model with numbers, which other formats do not have
EMPTY: Mapping[str, Any] = MappingProxyType({})


class UnwrittenError(ValueError):
    """The results could not be written to their folder; the message says where they are."""


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Write a folder, which only its owner can read, and move it to its place when it is complete.

    Ledgers of earlier runs that failed are kept as ledger-1.json and so on, as they say what was
    revealed. If the folder cannot be written, as on a full disk, `write` fills a temporary folder.
    """
    folder = folder.resolve()
    try:
        write_whole(folder, write)
    except OSError as error:
        raise UnwrittenError(f"--out {folder}: {error.strerror}; {_write_aside(write)}") from None


def write_whole(folder: Path, write: Callable[[Path], object]) -> None:
    """Write a folder, and move it to its place when it is complete."""
    if not is_free(folder):
        raise FileExistsError(errno.EEXIST, "other files were put there during the run")
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write(part)
        _keep_ledgers(folder, part)
        _sync(part)
        _replace(folder, part)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _sync(part: Path) -> None:
    """Wait until a folder's files are on disk: some disks say only now that they are full."""
    for path in [*part.rglob("*"), part]:
        with naming(path):
            sync(path)


def _write_aside(write: Callable[[Path], object]) -> str:
    """Write to a temporary folder as far as possible; return a sentence about its content."""
    try:
        aside = Path(tempfile.mkdtemp(prefix="vertibayes-"))
    except OSError as error:
        return f"no temporary folder can be written either: {error.strerror}"
    try:
        write(aside)
    except OSError as error:
        names = ", ".join(sorted(path.name for path in aside.iterdir())) or "no file"
        return f"{error.filename or aside}: {error.strerror}; {aside} has {names}"
    return f"the results are in {aside} instead"


def _keep_ledgers(folder: Path, part: Path) -> None:
    """Copy the ledgers of earlier runs, with their numbers."""
    earlier = sorted(folder.glob("ledger-*.json"), key=lambda path: int(path.stem[7:]))
    for path in earlier:
        shutil.copy2(path, part)
    if (folder / "ledger.json").exists():
        last = int(earlier[-1].stem[7:]) if earlier else 0
        shutil.copy2(folder / "ledger.json", part / f"ledger-{last + 1}.json")


def _replace(folder: Path, part: Path) -> None:
    """Replace a folder by one that also has its files, which exist at all times."""
    if not folder.exists() or not any(folder.iterdir()):
        part.replace(folder)
        return
    old = part.with_name(f"{part.name}.old")
    folder.replace(old)
    part.replace(folder)
    shutil.rmtree(old)


def models_of(model: Network | NaiveBayes) -> list[str]:
    """Return the names of the files that have a model."""
    has_numbers = isinstance(model, NaiveBayes) and model.schema.numerics
    return [NUMBERS_MODEL] if has_numbers else list(MODELS)


def write_model(
    part: Path, model: Network | NaiveBayes, of_edges: Mapping[str, Any] = EMPTY
) -> None:
    """Write a structure, what is known of its edges, and the model in all formats that it permits.

    They come first, as they matter most on a full disk.
    """
    nodes, edges = list(model.structure.nodes), [list(edge) for edge in model.structure.edges]
    write_json(part / "structure.json", {"nodes": nodes, "edges": edges, **of_edges})
    if isinstance(model, NaiveBayes) and model.schema.numerics:
        write_text(part / NUMBERS_MODEL, write_naive_bayes(model))
        return
    network = model.to_network() if isinstance(model, NaiveBayes) else model
    for name in MODELS:
        write_text(part / name, WRITERS[Path(name).suffix](network))


def write_rows(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV, the header first; as `write_text`."""
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file, in which a path is its text; ValueError if the value has NaN."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=os.fspath)
    write_text(path, text + "\n")


def write_counts(part: Path, counts: Mapping[str, Any]) -> None:
    """Write counts.json, without a line for each number."""
    write_text(part / "counts.json", json.dumps(counts, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all; an OSError names the file."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


# ---- entries of summary.json ---------------------------------------------------------------------


def described(variables: Mapping[str, Variable]) -> dict[str, Any]:
    """Return the states of variables, and whether values are missing, as JSON data."""
    return {n: {"states": list(v.states), "missing": v.missing} for n, v in variables.items()}


def described_columns(schema: Schema) -> dict[str, Any]:
    """Return the states of the class and the features, or their bounds, as JSON data."""
    bounds = {n: {"bounds": [low, high]} for n, low, high in schema.numerics.values()}
    return described(schema.variables) | bounds
