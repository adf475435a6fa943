"""``vertibayes predict``: a target's distribution for each record of a file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.errors import DataError
from protocols.site.encoding import Encoding, encode_known
from protocols.site.text import TextColumn, read_columns
from vertibayes.bif import read_bif_file
from vertibayes.inference.prediction import posterior
from vertibayes.network import Network


def run_predict(
    model: Path, data: Path, target: str, out: Path, missing_codes: tuple[str, ...]
) -> None:
    """Write a CSV file: the prediction, then the probability of each state; a line a record.

    Warns on standard error of records that the model calls impossible, whose fields stay empty.

    Raises
    ------
    ValueError
        If an input is at fault; nothing is then written.
    """
    if out.exists():
        raise ValueError(f"--out {out}: it exists")
    network = _read_model(model)
    if target not in network.variables:
        raise ValueError(f"--target {target}: the model has {', '.join(network.variables)}")
    columns = read_columns(data)
    found = posterior(network, evidence(network, columns, target, missing_codes, data), target)
    if not len(set(columns) & set(network.variables) - {target}):
        sys.stderr.write(f"warning: {data} has none of the model's variables but the target\n")
        found = np.repeat(found, len(next(iter(columns.values()))), axis=0)
    impossible = int((found.sum(axis=1) == 0).sum())
    if impossible:
        sys.stderr.write(
            f"warning: {impossible} records have probability zero under the model and are left "
            "empty; learn it with --pseudo-count\n"
        )
    _write(out, network.variables[target].states, target, found)


def _read_model(model: Path) -> Network:
    try:
        return read_bif_file(model)
    except FileNotFoundError:
        raise ValueError(f"{model}: no such file") from None
    except ValueError as error:
        raise ValueError(f"{model}: {error}") from None


def evidence(
    network: Network,
    columns: dict[str, TextColumn],
    target: str,
    missing_codes: tuple[str, ...],
    source: Path,
) -> dict[str, NDArray[np.unsignedinteger]]:
    """Return the codes of the columns that the model knows, but the target's.

    Raises
    ------
    DataError
        If a value is none of its variable's states: it names the column and the record.
    """
    names = [name for name in columns if name in network.variables and name != target]
    states = {name: network.variables[name].states for name in names}
    how = Encoding(missing_codes, states)
    return {name: encode_known(str(source), name, columns[name], how) for name in names}


def _write(out: Path, states: tuple[str, ...], target: str, found: NDArray[np.float64]) -> None:
    part = out.with_name(out.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([target, *(f"P({target}={state})" for state in states)])
            for row in found:
                known = row.sum() > 0
                best = states[int(row.argmax())] if known else ""
                writer.writerow([best, *(repr(float(p)) if known else "" for p in row)])
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(f"--out {out}: {error.strerror}") from None
