"""``vertibayes predict``: a target's distribution for each record of a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from protocols.errors import DataError
from protocols.site.text import TextColumn
from vertibayes.inference.prediction import Prediction, predicted
from vertibayes.model_file import read_model
from vertibayes.network import Network
from vertibayes.records import Records, read_records

NOTE = "note"  # the last column
IMPOSSIBLE = "impossible under the model"


def run_predict(
    model: Path,
    data: Path,
    target: str,
    out: Path,
    id_column: str | None,
    missing_codes: tuple[str, ...],
    missing_state: bool,
) -> None:
    """Write a CSV file, a line a record.

    Columns: the identifier if there is one, the prediction, the probability of each state, and a
    note on records that the model calls impossible. Warns on standard error of these, of variables
    that the file lacks, and of values that the model does not know.

    Raises
    ------
    ValueError
        If an input is at fault; nothing is then written.
    """
    if out.exists():
        raise ValueError(f"--out {out}: the file exists; name a new one")
    network = read_model(model)
    if target not in network.variables:
        raise ValueError(f"--target {target}: the model has {', '.join(network.variables)}")
    records = read_records(
        data,
        network.variables,
        missing_codes=missing_codes,
        missing_state=missing_state,
        target=target,
        id_column=id_column,
    )
    found = predicted(network, records.data, target)
    for doubt in _doubts(records, data, found):
        sys.stderr.write(f"warning: {doubt}\n")
    _write(out, network, target, found, (id_column or "", records.ids))


def _doubts(records: Records, path: Path, found: Prediction) -> Iterator[str]:
    yield from records.doubts(path)
    impossible = int(found.impossible.sum())
    if impossible:
        have = "record has" if impossible == 1 else "records have"
        yield (
            f"{impossible} {have} values that are impossible together under the model; the column "
            f"{NOTE!r} marks them, and they are predicted by the values that are possible (learn "
            "the model with a --pseudo-count above 0)"
        )


def _write(
    out: Path,
    network: Network,
    target: str,
    found: Prediction,
    ids: tuple[str, TextColumn | None],
) -> None:
    states = network.variables[target].states
    id_column, texts = ids
    header = [target, *(f"P({target}={state})" for state in states), NOTE]
    part = out.with_name(out.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header if texts is None else [id_column, *header])
            for place, (row, impossible) in enumerate(zip(*found, strict=True)):
                line = [states[int(row.argmax())], *row.tolist(), IMPOSSIBLE if impossible else ""]
                own = [] if texts is None else [texts.texts[texts.places[place]]]
                writer.writerow([*own, *line])
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(f"--out {out}: {error.strerror}") from None
