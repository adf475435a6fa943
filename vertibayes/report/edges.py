"""What a run says of each edge: whether its direction is known, and how much it explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vertibayes.drawing.edge_styles import FEW_NATS
from vertibayes.learning import Learned
from vertibayes.report.strengths import strengths_json
from vertibayes.words import counted

NAMED = 5  # edges that a line names at most


def edges_json(learned: Learned) -> Mapping[str, Any]:
    """Return what structure.json has beside nodes and edges, as JSON data.

    `compelled` and `reversible` list the edges of either kind; `gain` has a number in nats for each
    of the structure's `edges`, in their order. `strengths_json` has the rest.
    """
    edges = learned.network.structure.edges
    return {
        "algorithm": learned.algorithm,
        "compelled": [list(edge) for edge in edges if edge in learned.compelled],
        "reversible": [list(edge) for edge in edges if edge not in learned.compelled],
        "gain": [round(learned.gains[edge], 3) for edge in edges],
        **strengths_json(learned.strengths, edges),
    }


def report_of_edges(learned: Learned) -> list[str]:
    """Return the lines that `learn` prints about the edges; none if there are no edges."""
    edges, lines = learned.network.structure.edges, []
    if edges and learned.algorithm is not None:
        fixed, compelled = len(learned.network.fixed), len(learned.compelled)
        lines.append(f"arrows: {_directions(fixed, compelled, len(edges) - compelled)}")
    doubtful = [edge for edge in edges if learned.gains[edge] < FEW_NATS]
    if doubtful:
        doubtful.sort(key=learned.gains.__getitem__)
        names = ", ".join(f"{p} -> {c} ({learned.gains[p, c]:.1f})" for p, c in doubtful[:NAMED])
        more = f" and {len(doubtful) - NAMED} more" if len(doubtful) > NAMED else ""
        raises, lower = ("raises", "lowers") if len(doubtful) == 1 else ("raise", "lower")
        lines.append(
            f"doubtful: {counted(len(doubtful), 'edge')} {raises} the BIC by less than "
            f"{FEW_NATS:g} nats, or {lower} it: {names}{more}"
        )
    return lines


def _directions(fixed: int, compelled: int, reversible: int) -> str:
    """Say how many directions experts gave, how many the data then show, and how many neither."""
    if fixed and not reversible:
        follow = (
            f"; {compelled - fixed} follow from these and the data" if compelled > fixed else ""
        )
        return f"{_all(fixed, not follow)} fixed by what experts know{follow}"
    if not reversible:
        them = "it" if compelled == 1 else "them"
        return f"{_all(compelled, True)} compelled: each structure that fits as well has {them}"
    first = f"{compelled} compelled; " if compelled else "all " if reversible > 1 else ""
    if fixed:
        first = f"{compelled} compelled, {fixed} of them fixed by what experts know; "
    them, their = ("it", "its") if reversible == 1 else ("them", "their")
    return (
        f"{first}{reversible} reversible: other structures that fit as well have {them} the other "
        f"way round, so {their} direction says nothing (structure.json lists both kinds)"
    )


def _all(number: int, is_all: bool) -> str:
    return f"all {number}" if is_all and number > 1 else f"{number}"
