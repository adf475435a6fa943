"""How the run of the page differs from another one: arrows and probabilities.

The tables of a variable are compared over all parents that it has in either run. Their distance is
the largest total variation of two rows: the most that the probability of any event can differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.edges import Edge
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.network import ShownNetwork
from vertibayes.report.page.results import Results

MOST_CELLS = 200_000  # of a table over the parents of both runs

Array: TypeAlias = NDArray[np.float64]
Nodes: TypeAlias = Mapping[str, dict[str, Any]]  # what model.json has of each, by name


class Farthest(NamedTuple):
    """The rows of two tables that differ most."""

    name: str
    distance: float
    given: list[tuple[str, str]]  # the parents with their states
    shares: list[tuple[str, float, float]]  # each state with its probabilities in both runs
    same_parents: bool


class Compared(NamedTuple):
    """What differs between the network of a run and that of another."""

    both: int
    added: list[Edge]  # in this run alone, of variables that both runs have
    removed: list[Edge]
    turned: list[Edge]  # as they point in this run
    here: list[str]  # variables of this run alone
    there: list[str]
    unlike: list[str]  # variables with other states
    tables: list[Farthest]  # the largest distance first
    too_large: list[str]

    @classmethod
    def of(cls, this: Results, other: Results) -> Compared:
        """Compare two runs."""
        structures = [ShownNetwork.of(each).structure for each in (this, other)]
        mine, its = (dict.fromkeys(structure.nodes) for structure in structures)
        edges, others = (
            dict.fromkeys(edge for edge in structure.edges if {*edge} <= mine.keys() & its.keys())
            for structure in structures
        )
        turned = [(p, c) for p, c in edges if (c, p) in others]
        nodes = _nodes(this), _nodes(other)
        tables, large = _distances(*nodes)
        return cls(
            both=len(edges.keys() & others),
            added=[edge for edge in edges if edge not in others and edge not in turned],
            removed=[e for e in others if e not in edges and e[::-1] not in turned],
            turned=turned,
            here=[name for name in mine if name not in its],
            there=[name for name in its if name not in mine],
            unlike=[name for name in nodes[0] if name in nodes[1] and not _are_alike(nodes, name)],
            tables=tables,
            too_large=large,
        )


def _nodes(results: Results) -> Nodes:
    """Return what model.json has of each node."""
    nodes: Entry = results.files["model.json"]["nodes"]
    return {node["name"].text: node.value for node in nodes.each()}


def _are_alike(nodes: tuple[Nodes, Nodes], name: str) -> bool:
    """Whether a variable of both runs has the same states, in any order."""
    mine, its = (set(each[name]["states"]) for each in nodes)
    return mine == its


def _distances(mine: Nodes, its: Nodes) -> tuple[list[Farthest], list[str]]:
    """Return the distance of the tables of each variable, and those that are too large."""
    distances, large = [], []
    for name in mine:
        if name not in its:
            continue
        family = [*dict.fromkeys([*mine[name]["parents"], *its[name]["parents"]]), name]
        if not all(n in mine and n in its and _are_alike((mine, its), n) for n in family):
            continue
        states = {n: list(mine[n]["states"]) for n in family}
        if prod(map(len, states.values())) > MOST_CELLS:
            large.append(name)
            continue
        same = {*mine[name]["parents"]} == {*its[name]["parents"]}
        tables = [_over(nodes, name, states) for nodes in (mine, its)]
        distances.append(_farthest(name, states, *tables, same_parents=same))
    return sorted(distances, key=lambda each: -each.distance), large


def _over(nodes: Nodes, name: str, states: Mapping[str, list[str]]) -> Array:
    """Return a CPT over the parents of both runs, in the order of `states`."""
    own = [*nodes[name]["parents"], name]
    cpt = np.array(nodes[name]["probabilities"], float)
    cpt = cpt.reshape([len(nodes[n]["states"]) for n in own])
    for axis, member in enumerate(own):
        place = {state: at for at, state in enumerate(nodes[member]["states"])}
        cpt = cpt.take([place[state] for state in states[member]], axis=axis)
    cpt = cpt.transpose([own.index(n) for n in states if n in own])
    shape = [len(states[n]) if n in own else 1 for n in states]
    return np.broadcast_to(cpt.reshape(shape), [len(of) for of in states.values()])


def _farthest(
    name: str, states: Mapping[str, list[str]], mine: Array, its: Array, *, same_parents: bool
) -> Farthest:
    """Return the row in which two tables differ most."""
    distances = np.abs(mine - its).sum(axis=-1) / 2
    at = np.unravel_index(distances.argmax(), distances.shape)
    given = [(n, of[i]) for (n, of), i in zip(states.items(), at, strict=False)]
    shares = zip(states[name], mine[at].tolist(), its[at].tolist(), strict=True)
    return Farthest(name, float(distances[at]), given, list(shares), same_parents)
