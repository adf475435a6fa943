"""``vertibayes predict``: the distribution of a target for each record of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from vertibayes.cli.notices import warn
from vertibayes.data_dictionary import NO_DICTIONARY, read_dictionary
from vertibayes.inference.prediction import Prediction, predicted
from vertibayes.naive_bayes.base import NaiveBayes, log_proba
from vertibayes.naive_bayes.model_file import is_naive_bayes, read_naive_bayes
from vertibayes.network import Network, read_model
from vertibayes.records import Records, read_records
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.text import RECOGNIZED
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.whole_file import replacing
from vertibayes_protocols.variables import Variable

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
    dialect: Dialect = RECOGNIZED,
    schema: Path | None = None,
) -> None:
    """Write a CSV file with a line for each record.

    The columns are the identifier if there is one, the prediction, the probability of each state,
    and a note on records that are impossible under the model. Warnings on standard error name these
    records, variables that the file does not have, and values that the model does not know.
    """
    known = read_naive_bayes(model) if is_naive_bayes(model) else read_model(model)
    variables = known.variables if isinstance(known, Network) else known.schema.variables
    check_target(target, variables)
    dictionary = NO_DICTIONARY if schema is None else read_dictionary(schema)
    records = read_records(
        data,
        variables,
        missing_codes=(*missing_codes, *dictionary.missing_codes),
        missing_state=missing_state,
        target=target,
        id_column=id_column,
        dialect=dialect,
        dictionary=dictionary,
        numerics={} if isinstance(known, Network) else known.schema.numerics,
    )
    if isinstance(known, Network):
        prediction = predicted(known, records.data, target)
    else:
        prediction = _by_naive_bayes(known, records, target)
    warn(_warnings(records, data, prediction))
    write_prediction(out, variables[target], prediction, (id_column or "", records.ids))


def check_target(target: str, variables: Iterable[str], name: str = "--target") -> None:
    """Refuse a target that a model does not have, with a ValueError."""
    if target not in variables:
        raise ValueError(f"{name} {target}: the model has {', '.join(variables)}")


def _by_naive_bayes(model: NaiveBayes, records: Records, target: str) -> Prediction:
    """Predict the class; a record that is impossible in every class has the prior."""
    if target != model.schema.target.name:
        raise ValueError(
            f"--target {target}: a naive_bayes.json predicts its class, {model.schema.target.name}"
        )
    joint = model.predict_joint_log_proba(records.complete(model.schema))
    impossible = np.isneginf(joint.max(axis=1))
    joint[impossible] = model.class_log_prior_
    return Prediction(np.exp(log_proba(joint)), impossible)


def _warnings(records: Records, path: Path, prediction: Prediction) -> Iterator[str]:
    yield from records.warnings(path)
    impossible = int(prediction.impossible.sum())
    if impossible:
        have = "record has" if impossible == 1 else "records have"
        yield (
            f"{impossible} {have} values that are impossible together under the model; the column "
            f"{NOTE!r} marks them, and their other values predict them (learn the model with a "
            "--pseudo-count above 0)"
        )


def write_prediction(
    out: Path,
    target: Variable,
    prediction: Prediction,
    ids: tuple[str, TextColumn | None] = ("", None),
) -> None:
    """Write a line for each record, with its identifier if there are any."""
    states, (id_column, texts) = target.states, ids
    header = [target.name, *(f"P({target.name}={state})" for state in states), NOTE]
    try:
        with replacing(out) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header if texts is None else [id_column, *header])
            for place, (row, impossible) in enumerate(zip(*prediction, strict=True)):
                line = [states[int(row.argmax())], *row.tolist(), IMPOSSIBLE if impossible else ""]
                own = [] if texts is None else [texts.texts[texts.places[place]]]
                writer.writerow([*own, *line])
    except OSError as error:
        raise DataError(f"--out {out}: {error.strerror}") from None
