"""Equivalent structures: which directions data, and what experts know, can tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.partial_graph import PartialGraph, is_fixed

MOST_PARENT_SETS = 1000  # of one node, among equivalent structures


@dataclass(frozen=True)
class Cpdag:
    """The structures that are equivalent to one: no data can tell them apart.

    All of them have the compelled arrows; each reversible edge has one direction in some of them
    and the other direction in others.

    Examples
    --------
    >>> chain = cpdag_of(Structure.of("abc", [("a", "b"), ("b", "c")]))
    >>> chain.compelled, chain.reversible
    ((), (('a', 'b'), ('b', 'c')))
    >>> collider = cpdag_of(Structure.of("abc", [("a", "b"), ("c", "b")]))
    >>> collider.compelled, collider.hamming_distance(chain)
    ((('a', 'b'), ('c', 'b')), 2)
    """

    nodes: tuple[str, ...]  # the nodes, sorted
    compelled: tuple[Edge, ...]  # the arrows that all structures have, sorted
    reversible: tuple[Edge, ...]  # the other edges: pairs sorted by name

    @classmethod
    def of(cls, graph: PartialGraph) -> Cpdag:
        """Return a graph in which Meek's rules have oriented all they can as a CPDAG."""
        return cls(graph.names, tuple(graph.arrows), tuple(graph.undirected))

    def hamming_distance(self, other: Cpdag) -> int:
        """Return how many pairs of nodes have another edge: missing, additional, or other ends."""
        if self.nodes != other.nodes:
            differing = ", ".join(sorted(set(self.nodes) ^ set(other.nodes)))
            raise ValueError(f"the CPDAGs must have the same nodes; they differ in {differing}")
        arrows = set(self.compelled) ^ set(other.compelled)
        edges = set(self.reversible) ^ set(other.reversible)
        return len({frozenset(edge) for edge in arrows | edges})


def cpdag_of(structure: Structure, constraints: Constraints = Constraints()) -> Cpdag:
    """Return which edges of a structure are compelled, and which are reversible.

    An arrow is compelled if all equivalent structures that keep the constraints have it: those of
    unshielded colliders, those of which the constraints allow one direction only, and what follows
    from these by Meek's rules (Chickering 1995, arXiv:1302.4938; Meek 1995, arXiv:1302.4972).

    Parameters
    ----------
    structure : Structure
        The structure.
    constraints : Constraints
        What experts know; by default nothing, so that the result is the CPDAG proper.

    Returns
    -------
    cpdag : Cpdag
        The compelled edges and the reversible ones.

    Raises
    ------
    ValueError
        If the structure does not keep the constraints; the message names an edge.
    """
    if violations := constraints.violations(structure):
        raise ValueError(f"the structure must keep the constraints: {violations[0]}")
    graph = _oriented(structure, _collider_arrows(structure))
    graph.keep(constraints)
    graph.close()
    return Cpdag.of(graph)


def fixed_by(structure: Structure, constraints: Constraints) -> frozenset[Edge]:
    """Return the edges of a structure, in the direction that constraints fix.

    It may be the other one than that of the structure.
    """
    both = (pair for p, c in structure.edges for pair in ((p, c), (c, p)))
    return frozenset(edge for edge in both if is_fixed(constraints, *edge))


def structures_by_parents(
    structure: Structure, node: str, fixed: Collection[Edge] = ()
) -> tuple[Structure, ...]:
    """Return, for each set of parents that a node has in equivalent structures, one structure.

    Whether a set is possible is decided by extending the graph in which the node's edges have these
    directions. An effect of the node is the same in all structures with the same set (Maathuis,
    Kalisch and Buehlmann 2009, doi:10.1214/09-AOS685). `fixed` has edges in the direction that they
    must have. If `structure` has them, it is the first.

    A ValueError refuses fixed edges that no equivalent structure has, and more than 1,000 sets.

    >>> chain = Structure.of("abc", [("a", "b"), ("b", "c")])
    >>> [found.parents["b"] for found in structures_by_parents(chain, "b")]
    [('a',), (), ('c',)]
    >>> [found.parents["b"] for found in structures_by_parents(chain, "b", [("b", "a")])]
    [(), ('c',)]
    """
    colliders = _collider_arrows(structure)
    _check_fixed(fixed, colliders)
    arrows = {*colliders, *fixed}
    graph = _oriented(structure, arrows)
    graph.close()
    own = {edge for edge in graph.arrows if node in edge}
    undecided = [a if b == node else b for a, b in graph.undirected if node in (a, b)]
    near = {frozenset(edge) for edge in structure.edges}
    found = {}
    if set(structure.edges) >= arrows:
        found[frozenset(structure.parents[node])] = structure
    for parents in _cliques(undecided, near):
        around = {(n, node) if n in parents else (node, n) for n in undecided} | own
        all_parents = frozenset(p for p, c in around if c == node)
        if all_parents in found:
            continue
        extended = _extended(structure, {*arrows, *around}, colliders)
        if extended is not None:
            found[all_parents] = extended
        if len(found) > MOST_PARENT_SETS:
            raise ValueError(
                f"{node} has more than {MOST_PARENT_SETS} possible sets of parents: give "
                "directions of its edges"
            )
    if not found:
        given = ", ".join(" -> ".join(edge) for edge in sorted(fixed))
        raise ValueError(f"no structure that fits the data as well has all of {given}")
    return tuple(found.values())


def _check_fixed(fixed: Collection[Edge], colliders: set[Edge]) -> None:
    """Refuse fixed edges that contradict the data or each other."""
    for parent, child in sorted(fixed):
        if (child, parent) in colliders:
            raise ValueError(
                f"{parent} -> {child} is given, and {child} -> {parent} is shown by the data: all "
                "structures that fit as well have it"
            )
        if (child, parent) in fixed:
            raise ValueError(f"both {parent} -> {child} and {child} -> {parent} are given")


def _oriented(structure: Structure, arrows: Collection[Edge]) -> PartialGraph:
    """Return the undirected graph of a structure, with some arrows."""
    graph = PartialGraph(structure.nodes, structure.edges)
    for arrow in sorted(arrows):
        graph.orient(*arrow)
    return graph


def _extended(
    structure: Structure, arrows: Collection[Edge], colliders: set[Edge]
) -> Structure | None:
    """Return an equivalent structure that has some arrows; None if no such exists."""
    result = _oriented(structure, arrows).extension(Constraints()).structure
    if not set(arrows) <= set(result.edges) or _collider_arrows(result) != colliders:
        return None
    return Structure({name: result.parents[name] for name in structure.nodes})


def _cliques(names: Collection[str], near: Collection[frozenset[str]]) -> Iterator[tuple[str, ...]]:
    """Yield all sets of nodes that are neighbours of each other, the smallest first."""
    cliques: list[tuple[str, ...]] = [()]
    while cliques:
        yield from cliques
        cliques = [
            (*clique, name)
            for clique in cliques
            for name in sorted(names)
            if all(other < name and frozenset((other, name)) in near for other in clique)
        ]


def _collider_arrows(structure: Structure) -> set[Edge]:
    """Return the arrows to a child whose parents are not neighbours."""
    edges = {frozenset(edge) for edge in structure.edges}
    return {
        (parent, child)
        for child, parents in structure.parents.items()
        for pair in combinations(parents, 2)
        if frozenset(pair) not in edges
        for parent in pair
    }
