"""How sure the edges are, in the files of a run and in its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vertibayes.drawing.edge_styles import DOUBTFUL
from vertibayes.drawing.svg import draw
from vertibayes.edges import ArcStrength, Edge
from vertibayes.learning import Learned
from vertibayes.structure.strengths import Strengths
from vertibayes.words import counted


def draw_learned(learned: Learned, sites: Mapping[str, str]) -> str:
    """Return the drawing of a learned structure, which shows how sure each edge is."""
    structure = learned.network.structure
    reversible = () if learned.algorithm is None else {*structure.edges} - learned.compelled
    strengths = {} if learned.strengths is None else learned.strengths.by_edge
    return draw(structure, sites, strengths=strengths, reversible=reversible)


def strengths_json(strengths: Strengths | None, edges: Sequence[Edge]) -> Mapping[str, Any]:
    """Return what structure.json has of the strengths; nothing if they are not known.

    `strength` and `direction` have a number for each of the structure's `edges`, in their order.
    `other_edges` lists the edges that only samples have, and `averaged` the averaged structure.
    """
    if strengths is None or not strengths.samples:
        return {}
    of_edge, threshold = strengths.by_edge, strengths.threshold
    others = [arc for arc in strengths.edges if arc[:2] not in set(edges)]
    return {
        "strength": [_rounded(of_edge[edge].strength) for edge in edges],
        "direction": [_rounded(of_edge[edge].direction) for edge in edges],
        "other_edges": [_other(arc) for arc in others],
        "averaged": {
            "threshold": _rounded(threshold),
            "edges": [list(edge) for edge in strengths.averaged.edges],
        },
    }


def _other(arc: ArcStrength) -> dict[str, Any]:
    return {
        "edge": [arc.parent, arc.child],
        "strength": _rounded(arc.strength),
        "direction": _rounded(arc.direction),
    }


def _rounded(share: float) -> float:
    return round(share, 4)


def summary_of_strengths(strengths: Strengths | None) -> dict[str, int] | None:
    """Return what summary.json has of the strengths; None if they were not computed."""
    if strengths is None:
        return None
    return {
        "samples": strengths.samples,
        "planned": strengths.planned,
        "records": strengths.records,
        "averaged_edges": len(strengths.averaged.edges),
    }


def report_of_strengths(learned: Learned, summary: Mapping[str, Any]) -> list[str]:
    """Return the lines that `learn` prints about the strengths; none if they are not known."""
    strengths = learned.strengths
    if strengths is None:
        return []
    edges = learned.network.structure.edges
    sure = sum(strengths.by_edge[edge].strength >= DOUBTFUL for edge in edges)
    drawn, planned = strengths.samples, strengths.planned
    samples = f"{'' if drawn == planned else f'{drawn} of '}{counted(planned, 'sample')}"
    samples += " from the learned network"
    if edges:
        sure_of = f"{sure} of {counted(len(edges), 'edge')} in at least {DOUBTFUL:.0%} of {samples}"
    else:
        sure_of = f"no edge was learned; {samples}"
    averaged = counted(len(strengths.averaged.edges), "edge")
    late = "" if drawn == planned else "; the time ended the samples: --bootstrap N draws N"
    caveats = _caveat(learned, summary)
    return [f"arc strengths: {sure_of}; averaged structure: {averaged}{late}{caveats}"]


def _caveat(learned: Learned, summary: Mapping[str, Any]) -> str:
    """Say what the samples do not have of the records."""
    caveats = []
    missing = any(variable["missing"] for variable in summary["variables"].values())
    if missing and not learned.network.missing_states:
        caveats.append("missing cells")
    if summary.get("release", {"rule": {"kind": "exact"}})["rule"]["kind"] != "exact":
        caveats.append("the errors of the rule")
    return f"; the samples do not have {' or '.join(caveats)}" if caveats else ""
