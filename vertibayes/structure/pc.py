"""PC: a structure by tests of independence alone (Spirtes and Glymour 1991)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.structure.bic import bic_gain
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.equivalence import Cpdag
from vertibayes.structure.partial_graph import PartialGraph, is_fixed
from vertibayes.structure.search import Search
from vertibayes.structure.skeleton import (
    ALPHA,
    Skeleton,
    skeleton_bits,
    skeleton_steps,
    skeleton_widest,
)
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Choices
from vertibayes_protocols.variables import Family


@dataclass(frozen=True)
class PcResult:
    """What PC has learned, and what it had to decide because tests contradict each other."""

    structure: Structure  # A DAG that keeps the constraints and the number of parents
    cpdag: Cpdag  # the graph of the tests, which may have cycles or no DAG
    skeleton: Skeleton  # the neighbours and separators
    reversed_arrows: tuple[Edge, ...]
    dropped: tuple[Edge, ...]
    surplus: tuple[Edge, ...]


def pc_steps(search: Search) -> Steps[Structure]:
    """Learn a structure by PC; see `pc_result_steps`."""
    result = yield from pc_result_steps(search)
    return result.structure


def pc_result_steps(search: Search, *, alpha: float = ALPHA) -> Steps[PcResult]:
    """Learn a structure by PC; return also the graph of the tests, and where they contradict.

    The skeleton is that of PC-stable, with tests given up to `max_parents` - 1 variables, so that
    no table has more variables than that of a node with all its parents. A common neighbour of a
    removed pair that is in none of its separators is a collider, unless the constraints do not
    allow it. An edge to which two colliders give both directions gets neither from them, so that no
    order of colliders matters. Meek's rules then say what follows from the colliders and the
    constraints; where tests contradict each other, the first rule by name decides. The DAG is
    `PartialGraph.extension` of the graph. Where a node has more than `max_parents` parents, or a
    table too large, its required parents stay, and of the others those that raise the BIC most are
    added one by one: a call each.

    References
    ----------
    Colombo and Maathuis (2014), Order-independent constraint-based causal structure learning.
    https://jmlr.org/papers/v15/colombo14a.html
    """
    skeleton = yield from skeleton_steps(
        search, alpha=alpha, levels=search.max_parents - 1, records_per_cell=0
    )
    graph = pattern(skeleton, search.constraints)
    extension = graph.extension(search.constraints)
    structure = yield from _limited(search, extension.structure)
    surplus = set(extension.structure.edges) - set(structure.edges)
    return PcResult(
        structure,
        Cpdag.of(graph),
        skeleton,
        extension.reversed_arrows,
        extension.dropped,
        tuple(sorted(surplus)),
    )


def pattern(skeleton: Skeleton, constraints: Constraints) -> PartialGraph:
    """Return the graph of a skeleton, its colliders, the constraints and Meek's rules."""
    graph = PartialGraph(skeleton.neighbours, skeleton.pairs)
    graph.keep(constraints)
    arrows = _collider_arrows(skeleton, constraints)
    for parent, child in sorted(arrows):
        if (child, parent) not in arrows:
            graph.orient(parent, child)
    graph.close()
    return graph


def _collider_arrows(skeleton: Skeleton, constraints: Constraints) -> set[Edge]:
    """Return the arrows of all colliders that the constraints allow."""
    arrows: set[Edge] = set()
    for (x, y), separating in skeleton.separating.items():
        common = set(skeleton.neighbours[x]) & set(skeleton.neighbours[y])
        for node in common - separating:
            new = {(x, node), (y, node)}
            fixed = any(is_fixed(constraints, child, parent) for parent, child in new)
            if not fixed:
                arrows |= new
    return arrows


def _limited(search: Search, structure: Structure) -> Steps[Structure]:
    """Take parents from nodes that have too many, or whose table is too large."""
    parents = dict(structure.parents)
    left = {
        child: [p for p in of_child if p not in search.constraints.required_parents(child)]
        for child, of_child in parents.items()
        if len(of_child) > search.max_parents or not search.fits(Family(child, of_child))
    }
    parents |= {child: search.constraints.required_parents(child) for child in left}
    while sets := _families_by_child(search, parents, left):
        candidates = tuple(_gains(search, parents, families) for families in sets.values())
        winners = yield Choices(candidates, search.missing, search.rows, score="likelihood")
        for (child, families), winner in zip(sets.items(), winners, strict=True):
            if winner:
                parents[child] = families[winner - 1].parents
                left[child].remove(parents[child][-1])
            else:
                left[child].clear()
    return Structure({child: tuple(sorted(of_child)) for child, of_child in parents.items()})


def _families_by_child(
    search: Search, parents: Mapping[str, tuple[str, ...]], left: Mapping[str, list[str]]
) -> dict[str, list[Family]]:
    """Return the families with one further parent of each child that may have one."""
    by_child = {
        child: [Family(child, (*parents[child], name)) for name in names]
        for child, names in left.items()
        if len(parents[child]) < search.max_parents
    }
    fitting = {child: list(filter(search.fits, families)) for child, families in by_child.items()}
    return {child: families for child, families in fitting.items() if families}


def _gains(
    search: Search, parents: Mapping[str, tuple[str, ...]], families: list[Family]
) -> tuple[Candidate, ...]:
    """Return no gain, and the gain in BIC of each family over the parents so far."""
    child = families[0].child
    before = [Family(child, parents[child])]
    return ((), *(bic_gain(search, [family], before) for family in families))


def pc_widest(search: Search) -> list[Family]:
    """Return the widest families of PC: those of its tests."""
    return skeleton_widest(search, levels=search.max_parents - 1, records_per_cell=0)


def pc_bits(variables: int, max_parents: int) -> float:
    """Return how many bits the winners have at most: those of tests, and of surplus parents."""
    surplus = variables * max_parents * (log2(max(variables, 1)) + 1)
    return skeleton_bits(variables, max_parents - 1) + surplus


def pc_calls(variables: int, max_parents: int) -> int:
    """Return how many calls there are at most: the levels, and one for each surplus parent."""
    del variables
    return 2 * max_parents
