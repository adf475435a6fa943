"""What a calibration says at its end: its files and lines, in one process and between machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vertibayes.cli.calibrate_learned import Outcome, Request, Row
from vertibayes.cli.outputs import (
    described_columns,
    models_of,
    write_json,
    write_model,
    write_text,
)
from vertibayes.cli.printed import lines_of
from vertibayes.cli.run import Run
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

WORSE = 0.005  # in error, that the nodes are above maximum likelihood; less can be chance


def finish(
    run: Run,
    model: NaiveBayes | Network,
    graph: Graph,
    summary: Mapping[str, Any],
    said: Mapping[str, object],
    traces: tuple[Mapping[str, Any], str],
    errors: Mapping[str, float],
) -> None:
    """Write the model, and the network over which it was calibrated, with drawings of all.

    `said` is what the printed lines say beside the summary.
    """
    trace, picture = traces
    nodes, edges, files = list(graph.nodes), [list(edge) for edge in graph.edges], models_of(model)
    summary = {**summary, "nodes": len(nodes), "edges": len(edges), "model": files}

    def more(part: Path) -> None:
        write_json(part / "network.json", {"nodes": nodes, "edges": edges})
        write_text(part / "structure.svg", draw(model.structure))
        write_text(part / "network.svg", draw_network(graph, errors))
        write_json(part / "calibration.json", trace)
        write_text(part / "calibration.svg", picture)

    lines = lines_of("calibrate", summary, **said)
    run.finish("calibrate", summary, lines, partial(write_model, model=model), more)


# ---- in one process ------------------------------------------------------------------------------


def report(
    run: Run,
    request: Request,
    outcome: Outcome,
    schema: Schema,
    model: NaiveBayes | Network,
    about: Mapping[str, Any],
) -> None:
    """Write a run's results; `about` are further entries of the summary."""
    scenario = outcome.scenario
    graph, last = scenario.graph, outcome.rows[-1].errors
    summary = {
        **about,
        "target": request.target,
        "records": int(scenario.sizes.sum()),
        "variables": described_columns(schema),
        "message": {"numbers": _length(request, scenario.classifier)},
        "scored_on": {"what": scenario.scored_on, "records": len(scenario.scored.classes)},
        "error": {
            "nodes": _spread(last),
            "risk_based_calibration": outcome.pooled_error,
            "maximum_likelihood": outcome.likelihood_error,
        },
        "gap": outcome.gap,
        "seconds": {name: round(value, 4) for name, value in outcome.seconds.items()},
    }
    kind = "network" if request.is_file else f"{request.network} network"
    said = {"way": _way(request, graph), "kind": kind}
    picture = draw_calibration(_traces(outcome), _title(request, graph))
    errors = dict(zip(graph.nodes, last.tolist(), strict=True))
    finish(run, model, graph, summary, said, (_trace(outcome), picture), errors)


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


def _length(request: Request, classifier: FactoredClassifier) -> int:
    """Return how many numbers a message has: a relay sends two vectors and a count of records."""
    statistics = len(classifier.classes) * classifier.width
    return 2 * statistics + 1 if request.mixing == "relay" else statistics


def advice(request: Request, outcome: Outcome) -> Iterator[str]:
    """Return warnings about a run."""
    if request.mixing == "relay" and request.start == "uniform":
        yield (
            "a relay with --start uniform converges slowly, and its errors can rise on the way: "
            "use --start data"
        )
    yield from _about_rate(request, outcome)
    if outcome.error > outcome.likelihood_error + WORSE:
        scenario = outcome.scenario
        size = ", a larger --size" if request.size else ""
        yield (
            f"the nodes have an error of {outcome.error:.4f} after the last round, maximum "
            f"likelihood of the records of all nodes {outcome.likelihood_error:.4f} (on "
            f"{len(scenario.scored.classes)} {scenario.scored_on}): calibration.svg shows whether "
            f"more --rounds{size} or a lower --rate can help"
        )
    if repairs := outcome.rows[-1].repairs:
        yield (
            f"in the last round the nodes' models needed {counted(repairs, 'repair')}: counts or "
            "variances that updates had driven too low; the models have the least valid ones"
        )


def _about_rate(request: Request, outcome: Outcome) -> Iterator[str]:
    """Return whether RC cannot improve on its start, or its rate is too high to do so."""
    soft = outcome.pooled.soft
    if request.rate > Request.rate and soft[1:3].max() > soft[0]:
        yield (
            f"the loss of RC on pooled records rises in its first iterations with --rate "
            f"{request.rate:g}: use a lower --rate (by default {Request.rate:g})"
        )
    elif not outcome.pooled.best:
        yield (
            "RC on pooled records has its lowest loss at its start, which is maximum likelihood: "
            "calibration does not help on these records"
        )
