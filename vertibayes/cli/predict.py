"""``vertibayes predict``: a target's distribution for each record of a file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.errors import DataError
from vertibayes.inference.prediction import known_codes, posterior
from vertibayes.model_file import read_model
from vertibayes.records import read_records


def run_predict(
    model: Path,
    data: Path,
    target: str,
    out: Path,
    missing_codes: tuple[str, ...],
    missing_state: bool,
) -> None:
    """Write a CSV file: the prediction, then the probability of each state; a line a record.

    Warns on standard error of variables that the file lacks, and of records that the model calls
    impossible, whose fields stay empty.

    Raises
    ------
    ValueError
        If an input is at fault; nothing is then written.
    """
    if out.exists():
        raise ValueError(f"--out {out}: it exists")
    network = read_model(model)
    if target not in network.variables:
        raise ValueError(f"--target {target}: the model has {', '.join(network.variables)}")
    records = read_records(
        data,
        network.variables,
        missing_codes=missing_codes,
        missing_state=missing_state,
        target=target,
    )
    doubt = records.doubt(data)
    if doubt is not None:
        sys.stderr.write(f"warning: {doubt}\n")
    found = posterior(network, known_codes(network, records.data), target)
    impossible = int((found.sum(axis=1) == 0).sum())
    if impossible:
        sys.stderr.write(
            f"warning: {impossible} records have probability zero under the model and are left "
            "empty; learn it with --pseudo-count\n"
        )
    _write(out, network.variables[target].states, target, found)


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
