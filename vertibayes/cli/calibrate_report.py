"""How a calibration ends, in one process and between machines: its files and its lines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from vertibayes.cli.outputs import models_of, write_json, write_model, write_text
from vertibayes.cli.printed import lines_of
from vertibayes.cli.run import Run
from vertibayes.drawing.svg import draw
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes.report.communication import draw_network
from vertibayes_protocols.calibration.graph import Graph


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
