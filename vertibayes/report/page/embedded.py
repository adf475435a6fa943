"""What the scripts of the page read, as JSON data.

The scripts compute posteriors in the page with the junction tree that is made here, so that the
page and `vertibayes.inference` sum over the same cliques.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from vertibayes.dag import Structure
from vertibayes.drawing.svg import place
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.report.counts import IN_WORDS
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.network import ShownNetwork
from vertibayes.report.page.results import Results

Node: TypeAlias = dict[str, Any]

MOST_SHARES = 50_000  # probabilities in the page: about 1 MB
MOST_CELLS = 300_000  # joint states of all cliques: a browser sums over them in a tenth of a second


def embedded_of(results: Results, network: ShownNetwork) -> dict[str, Any]:
    """Return what the scripts read."""
    structure = network.structure
    nodes = [
        {
            "name": name,
            "states": results.summary["variables"][name]["states"].texts(),
            "parents": list(structure.parents[name]),
            "site": results.sites.get(name),
            "missing_state": False,
            "unseen": 0,
            "cpt": None,
            "counts": None,
            "number": None,
        }
        for name in structure.nodes
    ]
    _fill(nodes, results)
    return {
        "nodes": nodes,
        "edges": list(place(structure).layout.paths),  # in the order of the drawing
        "counts": _about_counts(results.files["counts.json"]),
        "target": _target(results.summary),
        "tree": tree_of(nodes),
        "most_cells": MOST_CELLS,
    }


def _about_counts(counts: Entry) -> dict[str, Any] | None:
    """Return the kind of the counts, below which the rule cut them, and a sentence about them."""
    if not counts.exists:
        return None
    kind = counts["kind"].text
    return {"kind": kind, "fewest": counts["fewest"].value, "says": IN_WORDS.get(kind, "")}


def _target(summary: Entry) -> str | None:
    """Return what is predicted: by a classifier, or by the validations of a network."""
    for entry in (summary["target"], summary["options"]["target"]):
        if entry.exists:
            return entry.text
    return None


def _fill(nodes: Sequence[Node], results: Results) -> None:
    """Add the probabilities of the model; those of large CPTs only while the page has room."""
    named = {node["name"]: node for node in nodes}
    models = [about for about in _models(results) if about["name"] in named]
    room = MOST_SHARES
    below = results.cut_below
    families = results.files["counts.json"]["families"]
    for about in sorted(models, key=lambda about: _shares(about["cpt"])):
        room -= _shares(about["cpt"])
        counts = families[about["name"]]["counts"]
        named[about["name"]].update(about)
        if room < 0:
            named[about["name"]]["cpt"] = None
        elif about["cpt"] is not None and counts.exists:
            named[about["name"]]["counts"] = _shown(counts.value, below)


def _shown(counts: Sequence[Sequence[float]], below: int | None) -> Sequence[Sequence[float]]:
    """Return counts; those that the rule cuts are 0 also if a file of another person has them."""
    if below is None:
        return counts
    return [[number if number >= below else 0 for number in row] for row in counts]


def _shares(cpt: Sequence[Sequence[float]] | None) -> int:
    return 0 if cpt is None else sum(map(len, cpt))


def _models(results: Results) -> Iterator[Node]:
    """Yield what the file of the model has of each node."""
    for node in results.files["model.json"]["nodes"].each():
        yield {
            "name": node["name"].text,
            "states": node["states"].texts(),
            "missing_state": node["missing_state"].value is True,
            "unseen": node["unseen"].value if node["unseen"].is_number else 0,
            "cpt": node["probabilities"].value,
        }
    content = results.files["naive_bayes.json"]
    if content.exists:
        target = content["target"]
        shares = target["probabilities"].value
        yield {"name": target["name"].text, "states": target["states"].texts(), "cpt": [shares]}
    for feature in content["features"].each():
        yield _feature(feature)


def _feature(feature: Entry) -> Node:
    """Return a feature of naive Bayes: states, or a number."""
    if feature["states"].exists:
        cpt = feature["probabilities"].value
        return {"name": feature["name"].text, "states": feature["states"].texts(), "cpt": cpt}
    number = {key: feature[key].value for key in ("bounds", "mean", "variance")}
    return {"name": feature["name"].text, "states": [], "cpt": None, "number": number}


def tree_of(nodes: Sequence[Node]) -> dict[str, Any] | None:
    """Return the junction tree of nodes, as numbers of nodes; None if it is too large."""
    discrete = {node["name"]: node for node in nodes if node["number"] is None}
    if not discrete or any(node["cpt"] is None for node in discrete.values()):
        return None
    structure = Structure({name: tuple(node["parents"]) for name, node in discrete.items()})
    states = {name: len(node["states"]) for name, node in discrete.items()}
    try:
        tree = JunctionTree.of(structure, states, MOST_CELLS)
    except ValueError:
        return None
    return _numbered(tree, {node["name"]: place for place, node in enumerate(nodes)})


def _numbered(tree: JunctionTree, number: Mapping[str, int]) -> dict[str, Any]:
    homes = {number[name]: home for name, home in tree.homes.items()}
    return {
        "cliques": [[number[name] for name in clique] for clique in tree.cliques],
        "parents": tree.parents,
        "homes": [homes.get(place, -1) for place in range(len(number))],
    }
