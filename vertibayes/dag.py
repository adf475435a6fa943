"""Structures: directed acyclic graphs of named nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeAlias

from vertibayes.edges import Edge
from vertibayes_protocols.variables import Family

if TYPE_CHECKING:
    from networkx import DiGraph

AnyStructure: TypeAlias = "Structure | DiGraph[str]"  # a DAG of pgmpy is such a graph


@dataclass(frozen=True)
class Structure:
    """A directed acyclic graph.

    Parameters
    ----------
    parents : mapping of str to tuple of str
        The parents of each node, in order.

    Raises
    ------
    ValueError
        If a parent is not a node, a parent appears twice, or the graph has a cycle.

    Examples
    --------
    >>> structure = Structure.of(["rain", "hose", "wet"], [("rain", "wet"), ("hose", "wet")])
    >>> structure.parents["wet"]
    ('rain', 'hose')
    >>> structure.hamming_distance(Structure({"wet": ("rain",), "rain": (), "hose": ()}))
    1
    """

    parents: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        for child, parents in self.parents.items():
            for parent in parents:
                if parent not in self.parents:
                    raise ValueError(f"the edge {parent} -> {child} has an unknown node")
            if len(set(parents)) < len(parents):
                raise ValueError(f"a parent of {child} appears twice: {', '.join(parents)}")
        try:
            TopologicalSorter(self.parents).prepare()
        except CycleError as error:
            cycle = " -> ".join(error.args[1][::-1])
            raise ValueError(f"the structure must not have a cycle: {cycle}") from None

    @classmethod
    def of(cls, nodes: Sequence[str], edges: Iterable[Sequence[str]]) -> Structure:
        """Make a structure from nodes and (parent, child) edges.

        Raises
        ------
        ValueError
            As the class; also if a node appears twice.
        """
        if len(set(nodes)) < len(nodes):
            raise ValueError("a node appears twice; name each node once")
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(nodes, ())
        for parent, child in edges:
            if child not in parents:
                raise ValueError(f"the edge {parent} -> {child} has an unknown node")
            parents[child] += (parent,)
        return cls(parents)

    @classmethod
    def from_networkx(cls, graph: AnyStructure) -> Structure:
        """Make a structure from a directed graph of networkx; a DAG and a model of pgmpy are such.

        Raises
        ------
        TypeError, ValueError
            If it is not a directed graph; as the class. Also if edges of pgmpy have no direction.
        """
        if isinstance(graph, cls):
            return graph
        from networkx import DiGraph

        if not isinstance(graph, DiGraph):
            raise TypeError(f"a structure must be a directed graph, got {type(graph).__name__}")
        if undirected := getattr(graph, "undirected_edges", ()):
            edge = " - ".join(sorted(map(str, next(iter(undirected)))))
            raise ValueError(f"the graph has edges without a direction: {edge}; use its `to_dag()`")
        return cls.of(list(graph.nodes), graph.edges)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes."""
        return tuple(self.parents)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges as (parent, child), sorted by child."""
        return tuple((p, child) for child, parents in self.parents.items() for p in parents)

    @property
    def families(self) -> tuple[Family, ...]:
        """The families."""
        return tuple(Family(child, parents) for child, parents in self.parents.items())

    def to_networkx(self) -> DiGraph[str]:
        """Return the structure as networkx's `DiGraph`."""
        from networkx import DiGraph

        graph: DiGraph[str] = DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    def _repr_svg_(self) -> str:
        """Return a drawing, which notebooks show."""
        from vertibayes.drawing.svg import draw

        return draw(self)

    def check_nodes(self, variables: Iterable[str]) -> None:
        """Refuse a structure whose nodes are not the variables."""
        unknown = [node for node in self.nodes if node not in variables]
        missing = [name for name in variables if name not in self.parents]
        for what, names in (
            ("has nodes that are no variables", unknown),
            ("lacks variables", missing),
        ):
            if names:
                raise ValueError(f"the structure {what}: {', '.join(names)}")

    def order(self) -> list[str]:
        """Return the nodes, parents before children."""
        return list(TopologicalSorter(self.parents).static_order())

    def moral_neighbours(self) -> dict[str, set[str]]:
        """Return the Markov blanket of each node: the other members of all its families."""
        neighbours: dict[str, set[str]] = {node: set() for node in self.nodes}
        for family in self.families:
            for name in family.members:
                neighbours[name].update(set(family.members) - {name})
        return neighbours

    def hamming_distance(self, other: Structure) -> int:
        """Return the structural Hamming distance: the missing, additional and reversed edges.

        Raises
        ------
        ValueError
            If the nodes differ.
        """
        if set(self.nodes) != set(other.nodes):
            differing = ", ".join(sorted(set(self.nodes) ^ set(other.nodes)))
            raise ValueError(f"the structures must have the same nodes; they differ in {differing}")
        ours, theirs = set(self.edges), set(other.edges)
        return len({frozenset(edge) for edge in ours ^ theirs})
