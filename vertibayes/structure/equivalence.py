"""Equivalent structures: which directions data, and what experts know, can tell."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from vertibayes.dag import Structure
from vertibayes.edges import Edge
from vertibayes.structure.constraints import Constraints
from vertibayes.structure.partial_graph import PartialGraph


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
    graph = PartialGraph(structure.nodes, structure.edges)
    for arrow in _collider_arrows(structure):
        graph.orient(*arrow)
    graph.keep(constraints)
    graph.close()
    return Cpdag.of(graph)


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
