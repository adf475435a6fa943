"""The files and the report of ``vertibayes calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vertibayes.cli.calibrate_learned import Outcome, Row
from vertibayes.cli.calibrate_request import Request
from vertibayes.cli.inputs import Source
from vertibayes.cli.notices import warn
from vertibayes.cli.outputs import (
    MODELS,
    models_of,
    write_classifier,
    write_folder,
    write_json,
    write_model,
    write_text,
)
from vertibayes.cli.report import add_report
from vertibayes.cli.summaries import described_columns, head_of, options_as_json
from vertibayes.dag import Structure
from vertibayes.drawing.svg import draw
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes.report.calibration import Pooled, Traces, draw_calibration
from vertibayes.report.communication import draw_network
from vertibayes.words import counted
from vertibayes_protocols.calibration.classifier import FactoredClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.nodes import relay_rate
from vertibayes_protocols.schema import Schema


@dataclass(frozen=True)
class Result:
    """What is written."""

    outcome: Outcome  # what was computed
    schema: Schema  # what the model is about
    model: NaiveBayes | Network
    structure: Structure | None  # the given structure
    source: Source  # where the data are from
    left_out: Mapping[str, str]  # the reason for each of its columns that was left out


def report(out: Path, request: Request, result: Result, *, quiet: bool) -> None:
    """Write and print a run's results."""
    warn(result.outcome.warnings)
    models = _write(out, request, result)
    if not quiet:
        sys.stdout.write(_shown(request, result.outcome, models) + f"Written: {out}\n")


def _write(out: Path, request: Request, result: Result) -> list[str]:
    """Write models, pictures, network, trace and summary; return the names of the models."""
    outcome, model = result.outcome, result.model
    graph, models = outcome.scenario.graph, model_files(model)
    errors = dict(zip(graph.nodes, outcome.rows[-1].errors.tolist(), strict=True))

    def write(part: Path) -> None:
        write_parts(part, model, graph, errors)
        write_json(part / "calibration.json", _trace(outcome))
        write_json(part / "summary.json", _summary(request, result, models))
        write_text(
            part / "calibration.svg", draw_calibration(_traces(outcome), _title(request, graph))
        )
        add_report(part)

    write_folder(out, write)
    return models


def model_files(model: NaiveBayes | Network) -> list[str]:
    """Return the names of the files that have a model."""
    return list(MODELS) if isinstance(model, Network) else models_of(model.schema)


def write_parts(
    part: Path, model: NaiveBayes | Network, graph: Graph, errors: Mapping[str, float]
) -> None:
    """Write a model, and the network over which it was calibrated, with drawings of both."""
    write_calibrated(part, model)
    edges = [list(edge) for edge in graph.edges]
    write_json(part / "network.json", {"nodes": list(graph.nodes), "edges": edges})
    write_text(part / "structure.svg", draw(model.structure))
    write_text(part / "network.svg", draw_network(graph, errors))


def write_calibrated(part: Path, model: NaiveBayes | Network) -> None:
    """Write the files of a model into a folder."""
    if isinstance(model, Network):
        write_model(part, model)
    else:
        write_classifier(part, model)


def _trace(outcome: Outcome) -> dict[str, Any]:
    """Return the content of calibration.json."""
    scenario, rc, last = outcome.scenario, outcome.pooled, outcome.rows[-1]
    records = scenario.sizes.sum()
    nodes = zip(scenario.graph.nodes, scenario.sizes, last.own, last.errors, strict=True)
    return {
        "scored_on": {"what": scenario.scored_on, "records": len(scenario.scored.classes)},
        "rounds": [_round(row) for row in outcome.rows],
        "nodes": {
            node: {"records": int(size), "own_error": _number(own), "error": error}
            for node, size, own, error in nodes
        },
        "pooled": {
            "risk_based_calibration": {
                "soft_loss": (rc.soft / records).tolist(),
                "training_error": (rc.errors / records).tolist(),
                "repairs": rc.repairs.tolist(),
                "best_iteration": rc.best,
                "error": outcome.pooled_error,
                "error_of_the_last_iteration": outcome.last_error,
            },
            "maximum_likelihood": {"error": outcome.likelihood_error},
        },
        "gap": outcome.gap,
    }


def _round(row: Row) -> dict[str, Any]:
    return {
        "round": row.number,
        "present": row.present,
        "soft_loss": row.soft,
        "own_error": _spread(row.own),
        "error": _spread(row.errors),
        "repairs": row.repairs,
    }


def _spread(values: Floats) -> dict[str, float] | None:
    """Return mean, minimum and maximum of the nodes that have a value."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return {"mean": known.mean(), "least": known.min(), "largest": known.max()}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _traces(outcome: Outcome) -> Traces:
    scenario, rows = outcome.scenario, outcome.rows
    soft = outcome.pooled.soft / scenario.sizes.sum()
    return Traces(
        np.array([row.errors for row in rows]),
        f"{len(scenario.scored.classes):,} {scenario.scored_on}",
        np.array([row.soft for row in rows]),
        Pooled(soft, outcome.pooled_error, outcome.likelihood_error),
    )


def _title(request: Request, graph: Graph) -> str:
    drift = "" if request.drift == "none" else f", drift in {' and '.join(request.drift)}"
    return f"{request.target}: {_way(request, graph)}{drift}"


def _way(request: Request, graph: Graph) -> str:
    way, rate = f"{request.mixing}, start {request.start}, rate ", request.rate
    if request.mixing == "relay" and (lower := relay_rate(rate, request.iterations, graph)) < rate:
        return f"{way}{lower:.2g} instead of {rate:g}, as sums are {graph.delay:.0f} rounds late"
    return f"{way}{rate:g}"


def _summary(request: Request, result: Result, models: list[str]) -> dict[str, Any]:
    """Return the content of summary.json."""
    outcome = result.outcome
    scenario = outcome.scenario
    classifier, graph = scenario.classifier, scenario.graph
    return {
        **head_of("calibrate"),
        "data": result.source.data[0],
        "seed": result.source.seed,
        "target": request.target,
        "records": int(scenario.sizes.sum()),
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "variables": described_columns(result.schema),
        "left_out": dict(result.left_out),
        "model": models,
        "options": options_as_json(asdict(request)),
        "message": {"numbers": _length(request, classifier)},
        "scored_on": {"what": scenario.scored_on, "records": len(scenario.scored.classes)},
        "error": {
            "nodes": _spread(outcome.rows[-1].errors),
            "risk_based_calibration": outcome.pooled_error,
            "maximum_likelihood": outcome.likelihood_error,
        },
        "gap": outcome.gap,
        "seconds": {name: round(value, 4) for name, value in outcome.seconds.items()},
        "warnings": outcome.warnings,
    }


def _length(request: Request, classifier: FactoredClassifier) -> int:
    """Return how many numbers a message has: a relay sends two vectors and a count of records."""
    statistics = len(classifier.classes) * classifier.width
    return 2 * statistics + 1 if request.mixing == "relay" else statistics


def _shown(request: Request, outcome: Outcome, models: list[str]) -> str:
    """Return a run in a few lines."""
    scenario, last = outcome.scenario, outcome.rows[-1].errors
    graph, classifier = scenario.graph, scenario.classifier
    kind = "network of" if request.is_file else f"{request.network} network of"
    lines = [
        f"{int(scenario.sizes.sum())} records, {len(classifier.classes)} classes; {kind} "
        f"{len(graph.nodes)} nodes and {counted(len(graph.edges), 'edge')}",
        f"{_way(request, graph)}, {counted(request.rounds, 'round')}; a message has "
        f"{_length(request, classifier)} numbers",
        f"error on {len(scenario.scored.classes)} {scenario.scored_on}:",
        f"  nodes                 {outcome.error:.4f} ({last.min():.4f} to {last.max():.4f})",
        f"  RC, pooled            {outcome.pooled_error:.4f}",
        f"  maximum likelihood    {outcome.likelihood_error:.4f}",
        f"gap to RC: {round(outcome.gap, 4) + 0.0:+.4f}",
        f"seconds: {outcome.seconds['nodes']:.3f} for the nodes, "
        f"{outcome.seconds['pooled']:.3f} for RC",
        f"model of the nodes' mean statistics: {', '.join(models)}",
    ]
    return "\n".join(lines) + "\n"
