"""``vertibayes nb``: read, deal to parties, learn naive Bayes by HDPNB or VDPNB, test, write."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from vertibayes.cli.inputs import Source, read_pooled
from vertibayes.cli.learn import keep_ledger
from vertibayes.cli.naive_bayes_columns import learn_vertical
from vertibayes.cli.naive_bayes_learned import Learned, SpentError
from vertibayes.cli.naive_bayes_records import learn_horizontal
from vertibayes.cli.naive_bayes_request import OF_NOISE, Request
from vertibayes.cli.notices import warn
from vertibayes.cli.outputs import (
    check_folder,
    models_of,
    write_classifier,
    write_counts,
    write_folder,
    write_json,
    write_rows,
    write_text,
)
from vertibayes.cli.progress import progress_shown
from vertibayes.cli.report import add_report
from vertibayes.cli.summaries import described_columns, head_of, options_as_json
from vertibayes.cli.tested import about_lost, classes_of, divided_records
from vertibayes.drawing.svg import draw
from vertibayes.report.counts import counts_of_classifier
from vertibayes.report.people import alignment_as_json, report_of_people
from vertibayes.validation.auc import auc
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

MUCH = 10  # of epsilon


def run_nb(source: Source, request: Request, out: Path, *, quiet: bool) -> None:
    """Run the command; see its help."""
    check_folder(out)
    request = request.checked()
    sites = read_pooled(source)
    sites.check_column(request.target, "--target")
    (data,) = sites.data.values()
    schema = _schema(request, sites.order, data)
    training, tested, more = divided_records(source, request, schema, data)
    start = perf_counter()
    learn = learn_vertical if request.method == "vdpnb" else learn_horizontal
    try:
        with progress_shown(quiet, ticks=True) as progress:
            learned = learn(request, schema, training, tested, source.seed, progress)
    except SpentError as error:
        keep_ledger(error.ledger, out)
        raise
    learned.warnings[:0] = [*sites.warnings, *more, *_warnings(request, schema, training)]
    learned.seconds, learned.records = perf_counter() - start, training.records
    learned.left_out = sites.left_out
    report(out, request, learned, tested, quiet=quiet)


def _schema(request: Request, order: Sequence[str], data: SiteData) -> Schema:
    """Return the class and the features: numbers where bounds are declared."""
    if request.target not in order:
        raise ValueError(f"--target {request.target}: no such column; there are {', '.join(order)}")
    if request.target in data.numerics:
        raise ValueError(
            f"--target {request.target}: --bounds keeps its numbers, and a class has states"
        )
    if data.numerics and request.method == "vdpnb":
        raise ValueError(
            f"--bounds {next(iter(data.numerics))}: vdpnb publishes tables of states; use "
            "--method hdpnb, or --cut"
        )
    columns: dict[str, Variable | Numeric] = {**data.variables, **data.numerics}
    features = {name: columns[name] for name in order if name != request.target}
    centred = request.noise != "none"
    return Schema(data.variables[request.target], features, centred=centred)


def _warnings(request: Request, schema: Schema, training: LocalData) -> Iterator[str]:
    """Return what the noise does not cover, and how many records have no class."""
    yield from about_lost(training, request.target)
    if request.noise == "none":
        return
    binned = [n for n, v in schema.variables.items() if bins_of(v.states) is not None]
    cut = f", and the bins of {', '.join(binned)} are cut from it" if binned else ""
    bounds = ", as are the --bounds" if schema.numerics else ""
    yield (
        "the states of all variables, and which of them have missing values, are those found in "
        f"the file, taken as known beforehand{bounds}{cut}: --epsilon does not cover them"
    )
    yield (
        "the numbers that warnings give, such as that of records without a class, and the scores "
        "of tested records are written as they are: --epsilon does not cover them"
    )
    shared = request.noise in OF_NOISE["gamma"]
    if shared and request.gamma * request.parties > request.parties - 1:
        yield (
            "--gamma counts on the noise of all parties: a party that sees the model knows its "
            "own, and has less against it; a gamma below 1 - 1/parties covers that"
        )
    if request.epsilon is not None and request.epsilon > MUCH:
        yield f"--epsilon {request.epsilon:g}: more than {MUCH} protects next to nothing"


def _summary(request: Request, learned: Learned, tested: LocalData | None) -> dict[str, Any]:
    """Return the summary of a run as JSON data."""
    return {
        **head_of("nb"),
        **({} if learned.study is None else {"study": dict(learned.study)}),
        "method": request.method,
        "target": request.target,
        "records": learned.records,
        **({} if learned.people is None else {"alignment": alignment_as_json(learned.people)}),
        "parties": request.parties,
        "sites": {site: list(names) for site, names in learned.sites.items()},
        "variables": described_columns(learned.model.schema),
        "left_out": dict(learned.left_out),
        "model": models_of(learned.model.schema),
        "options": options_as_json(asdict(request)),
        "promise": None if learned.promise is None else learned.promise.to_json(),
        "seconds": {"test": round(learned.test_seconds, 4), "total": round(learned.seconds, 4)},
        "rounds": learned.rounds,
        "bytes": {"total": sum(learned.bytes.values()), "sent_by": dict(learned.bytes)},
        "opened": {"tables": len(learned.ledger.tables), "cells": learned.ledger.cells},
        "test": None if tested is None else _score(learned, tested),
        "warnings": learned.warnings,
    }


def _score(learned: Learned, tested: LocalData) -> dict[str, Any]:
    """Return how well the tested records were classified, beside the most frequent class."""
    assert learned.log_proba is not None  # they were tested
    model, target = learned.model, learned.model.schema.target
    truth = classes_of(tested, target.name)
    areas = auc(truth, np.exp(learned.log_proba), target.states)
    return {
        "records": tested.records,
        "predicted_by": learned.predicted_by,
        "accuracy": float((learned.log_proba.argmax(axis=1) == truth).mean()),
        "accuracy_of_the_most_frequent_class": float((truth == model.class_count_.argmax()).mean()),
        "accuracy_of_all_parties": learned.accuracies(tested),
        "auc": areas.auc,
    }


def report(
    out: Path, request: Request, learned: Learned, tested: LocalData | None, *, quiet: bool
) -> None:
    """Write and print a run's results."""
    if swamped := learned.model.swamped_:
        learned.warnings.append(
            f"the noise is larger than the spread of {', '.join(swamped)} within a class, so that "
            "its variance is a guess: declare tighter bounds, or take more records or epsilon"
        )
    summary = _summary(request, learned, tested)
    warn(learned.warnings)
    _write(out, learned, summary)
    if not quiet:
        sys.stdout.write(_shown(summary) + f"Written: {out}\n")


def _write(out: Path, learned: Learned, summary: Mapping[str, Any]) -> None:
    """Write structure, model, drawing, summary and ledger."""
    model = learned.model

    def write(part: Path) -> None:
        write_classifier(part, model)
        write_json(part / "ledger.json", learned.ledger.as_json())
        write_json(part / "summary.json", summary)
        if not model.schema.numerics:
            write_counts(part, counts_of_classifier(model, _kind_of_counts(summary)))
        write_text(part / "structure.svg", draw(model.structure, learned.holders))
        if learned.predictions:
            header = "record", "class", *model.schema.target.states
            write_rows(part / "predictions.csv", [header, *learned.predictions])
        add_report(part)

    write_folder(out, write)


def _kind_of_counts(summary: Mapping[str, Any]) -> str:
    """Return what the sums are from which the model was learned, as `counts.json` names it."""
    if summary["method"] in ("gossip", "ldp"):
        return "estimated"
    return "exact" if summary["promise"] is None else "noise"


def _shown(summary: Mapping[str, Any]) -> str:
    """Return a run in a few lines."""
    records = summary["records"] or "unknown number of"
    lines = [
        f"{records} records, {len(summary['variables']) - 1} features, "
        f"{summary['parties']} parties; {summary['method']}, noise {summary['options']['noise']}",
        f"seconds: {summary['seconds']['total']:.3f}, of it tests {summary['seconds']['test']:.3f}",
        f"sent: {summary['bytes']['total'] / 1e6:.3f} MB in {summary['rounds']} rounds",
        f"model: {', '.join(summary['model'])}",
        "what was revealed, and to whom: ledger.json",
    ]
    if "alignment" in summary:
        lines[1:1] = report_of_people(summary["alignment"])
    if summary["promise"] is not None:
        lines.insert(-1, f"promise: {summary['promise']['sentence']}")
    if (test := summary["test"]) is not None:
        most = test["accuracy_of_the_most_frequent_class"]
        lines.append(
            f"accuracy {test['accuracy']:.4f} on {test['records']} records "
            f"({most:.4f} by the most frequent class)"
        )
    return "\n".join(lines) + "\n"
