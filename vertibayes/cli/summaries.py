"""What summary.json has: the same entries for each command, and those of a learned network."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vertibayes import __version__
from vertibayes.cli.outputs import Run
from vertibayes.counting import Counter
from vertibayes.learning import Learned
from vertibayes.report.disclosure import Disclosure
from vertibayes.report.people import alignment_as_json
from vertibayes.report.strengths import summary_of_strengths
from vertibayes.validation.methods import Validation
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable


def summarize(
    learned: Learned,
    counter: Counter,
    run: Run,
    other_seconds: Mapping[str, float],
    disclosed: Disclosure,
    validated: Mapping[str, Validation],
) -> dict[str, Any]:
    """Return the summary of a run as JSON data."""
    seconds = {
        "commit": other_seconds["commit"],
        "structure": learned.structure_seconds,
        "parameters": learned.parameters_seconds,
        "strengths": learned.strengths_seconds,
        "validation": other_seconds["validation"],
    }
    seconds["total"] = sum(seconds.values())
    return {
        **head_of("learn"),
        **({} if run.study is None else {"study": dict(run.study)}),
        **({} if run.cuts is None else {"discretization": dict(run.cuts)}),
        "records": counter.records,
        **({} if run.people is None else {"alignment": alignment_as_json(run.people)}),
        "sites": {site: list(names) for site, names in run.shown.items()},
        "variables": described(counter.variables),
        "left_out": dict(run.left_out),
        "algorithm": learned.algorithm,
        "edges": len(learned.network.structure.edges),
        "strengths": summary_of_strengths(learned.strengths),
        "pseudo_count": learned.pseudo_count,
        "missing": learned.missing,
        "scores": learned.scores.as_json(),
        "unseen_parent_configurations": {n: c for n, c in learned.network.unseen.items() if c},
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "rounds": run.traffic.rounds,
        "bytes": _bytes(run),
        "auc": {method: validation.overall.auc for method, validation in validated.items()},
        "auc_interval": {method: validation.interval for method, validation in validated.items()},
        "widened": [step._asdict() for step in learned.widenings],
        "opened": {
            "tables": len(run.ledger.tables),
            "cells": run.ledger.cells,
            "single_record": disclosed._asdict(),
        },
    }


def head_of(command: str) -> dict[str, str]:
    """Return what each summary begins with: what wrote it, and when."""
    written = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": command, "version": __version__, "written": written}


def study_entry(
    file: StudyFile, contract: Contract | None, study: Study | None = None
) -> dict[str, Any]:
    """Return what identifies a study between machines: its file, id, parties' keys and digest."""
    keys = {party: encode_public(key) for party, key in file.pinned.items()}
    opened = {} if study is None else {"id": study.id.hex()}
    approved = {} if contract is None else {"contract": contract.digest.hex()}
    return {"file": str(file.source.path), **opened, "keys": keys, **approved}


def described(variables: Mapping[str, Variable]) -> dict[str, Any]:
    """Return the states of variables, and whether values are missing, as JSON data."""
    return {n: {"states": list(v.states), "missing": v.missing} for n, v in variables.items()}


def options_as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options for summary.json: a path is its text."""
    return {name: str(v) if isinstance(v, Path) else v for name, v in values.items()}


def described_columns(schema: Schema) -> dict[str, Any]:
    """Return the states of the class and the features, or their bounds, as JSON data."""
    bounds = {n: {"bounds": [low, high]} for n, low, high in schema.numerics.values()}
    return described(schema.variables) | bounds


def _bytes(run: Run) -> dict[str, Any]:
    sent = sorted(run.traffic.bytes_sent.items())
    links = {f"{sender} -> {receiver}": count for (sender, receiver), count in sent}
    return {"sent_by": run.sender or "all parties", "total": run.traffic.bytes, "links": links}
