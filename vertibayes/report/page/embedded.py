"""What the scripts of the page read, as JSON data."""

from __future__ import annotations

from typing import Any

from vertibayes.report.page.placement import PlacedNetwork, placed_network
from vertibayes.report.page.results import Results

MOST_CELLS = 20_000  # of a CPT in the page


def embedded_of(results: Results) -> dict[str, Any]:
    """Return what the scripts read: nodes with CPTs and places, edges, the rule and limits.

    Parameters
    ----------
    results : Results
        The files of a run.
    """
    placed = placed_network(results)
    return {
        "nodes": [_node(results, placed, place) for place in range(len(placed.names))],
        "edges": [
            {
                "parent": parent,
                "child": child,
                "strength": None if arc is None else arc.strength,
                "direction": None if arc is None else arc.direction,
                "gain": placed.gains.get((parent, child)),
                "compelled": placed.is_compelled((parent, child)),
                "points": [[round(x, 1), round(y, 1)] for x, y in points],
            }
            for (parent, child), points in placed.paths.items()
            for arc in [placed.strengths.get((parent, child))]
        ],
        "size": [round(placed.size.width, 1), round(placed.size.height, 1)],
        "rule": results.summary["release"]["rule"].value if _is_released(results) else None,
        "target": _target(results),
        "numbers": None,
        "most_cells": MOST_CELLS,
    }


def _is_released(results: Results) -> bool:
    return results.summary["release"]["rule"].exists


def _target(results: Results) -> str | None:
    target = results.summary["target"]
    return target.text if target.exists else None


def _node(results: Results, placed: PlacedNetwork, place: int) -> dict[str, Any]:
    """Return a node with its CPT."""
    name = placed.names[place]
    variable = results.summary["variables"][name]
    model = next((n for n in results.files["model.json"]["nodes"].each()
                  if n["name"].value == name), None)  # fmt: skip
    counts = results.files["counts.json"]["families"][name]["counts"]
    rows = None if model is None else model["probabilities"].value
    is_small = isinstance(rows, list) and sum(map(len, rows)) <= MOST_CELLS
    (x, y), size = placed.centres[place], placed.boxes[place]
    return {
        "name": name,
        "states": model["states"].texts() if model else variable["states"].texts(),
        "parents": list(placed.structure.parents[name]),
        "site": results.sites.get(name),
        "missing_state": bool(model and model["missing_state"].value is True),
        "unseen": model["unseen"].value if model and model["unseen"].is_number else 0,
        "cpt": rows if is_small else None,
        "counts": counts.value if is_small and counts.exists else None,
        "box": [round(v, 1) for v in (x - size.width / 2, y - size.height / 2, *size)],
        "lines": placed.lines[place],
    }
