"""Structures and networks: a graph with its CPTs, and conversions to other libraries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.variables import Family, Variable

if TYPE_CHECKING:
    from networkx import DiGraph
    from pandas import DataFrame, Series
    from pgmpy.models import DiscreteBayesianNetwork

    from vertibayes_protocols.site.data import SiteData

Edge: TypeAlias = tuple[str, str]


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
        from vertibayes.report.drawing import draw

        return draw(self)

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


@dataclass(frozen=True)
class Network:
    """A Bayesian network of discrete variables.

    Parameters
    ----------
    structure : Structure
        The structure.
    variables : mapping of str to Variable
        The variable of each node.
    cpts : mapping of str to ndarray
        The CPT of each node: axis 0 has the states of the node and sums to 1; the other axes have
        the states of the parents, in order.
    unseen : mapping of str to int
        The number of joint states of each node's parents that no record has; their distributions
        are uniform.
    missing_states : frozenset of str
        The nodes whose last state is that of missing values.

    Raises
    ------
    ValueError
        If a CPT has a wrong shape, or its columns do not sum to 1.
    """

    structure: Structure
    variables: Mapping[str, Variable]
    cpts: Mapping[str, NDArray[np.float64]] = field(repr=False)
    unseen: Mapping[str, int] = field(default_factory=dict)
    missing_states: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for node in self.structure.nodes:
            family = (node, *self.structure.parents[node])
            shape = tuple(len(self.variables[name].states) for name in family)
            cpt = self.cpts[node]
            if cpt.shape != shape:
                raise ValueError(f"the CPT of {node} must have the shape {shape}, got {cpt.shape}")
            if not (cpt >= 0).all() or not np.allclose(cpt.sum(axis=0), 1, atol=1e-9):
                raise ValueError(f"a column of the CPT of {node} is not a distribution")

    @property
    def cardinalities(self) -> dict[str, int]:
        """The number of states of each variable."""
        return {name: len(variable.states) for name, variable in self.variables.items()}

    def rows(self, node: str) -> list[list[float]]:
        """Return the CPT of a node as rows: its distribution given each joint state of its parents.

        The state of the last parent changes fastest.
        """
        cpt = self.cpts[node]
        return cpt.reshape(cpt.shape[0], -1).T.tolist()

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read a network from a file; see `vertibayes.read_model`."""
        from vertibayes.model_file import read_model

        return read_model(path)

    def save(self, path: str | Path) -> None:
        """Write the network to a file; see `vertibayes.model_file.save_model`."""
        from vertibayes.model_file import save_model

        save_model(self, path)

    def do(self, states: Mapping[str, str] | None = None, /, **more: str) -> Network:
        """Return the network in which variables are set to states, without their parents.

        Parameters
        ----------
        states : mapping of str to str, optional
            The state of each variable that is set.
        **more : str
            The same, for names that are identifiers.

        Raises
        ------
        ValueError
            As `vertibayes.inference.interventions.intervene`.

        Examples
        --------
        >>> network = Network(
        ...     Structure({"rain": (), "wet": ("rain",)}),
        ...     {name: Variable(name, ("no", "yes")) for name in ("rain", "wet")},
        ...     {"rain": np.array([0.8, 0.2]), "wet": np.array([[0.9, 0.1], [0.1, 0.9]])},
        ... )
        >>> network.do(wet="yes").structure.edges
        ()
        """
        from vertibayes.inference.interventions import intervene

        return intervene(self, {**(states or {}), **more})

    def predict_proba(self, data: DataFrame | SiteData, target: str) -> DataFrame:
        """Return the distribution of a variable for each record, given the others.

        Parameters
        ----------
        data : DataFrame or SiteData
            Columns of any of the network's variables; other columns and the target's are ignored.
            In a data frame, a value that is not one of its variable's states causes a warning and
            is a missing value.
        target : str
            The variable that is predicted.

        Returns
        -------
        probabilities : DataFrame
            One row per record, with the index of `data`; one column per state of the target.

        Raises
        ------
        ValueError
            As `vertibayes.records.read_frame` and `vertibayes.predict_proba`.
        """
        from pandas import DataFrame

        from vertibayes.inference.prediction import predict_proba
        from vertibayes.records import read_frame
        from vertibayes_protocols.site.data import SiteData

        if target not in self.variables:
            raise ValueError(f"the target must be a variable of the network, got {target!r}")
        columns = list(self.variables[target].states)
        if isinstance(data, SiteData):
            return DataFrame(predict_proba(self, data, target), columns=columns)
        records = read_frame(data, self, target)
        if records.unseen:
            warnings.warn(records.warning_of_values("the data frame"), stacklevel=2)
        return DataFrame(predict_proba(self, records.data, target), data.index, columns)

    def predict(self, data: DataFrame | SiteData, target: str) -> Series[str]:
        """Return the most probable state of a variable for each record, given the others.

        Parameters and errors are those of `predict_proba`; the result has the index of `data`.
        """
        from pandas import Series

        frame = self.predict_proba(data, target)
        best = frame.to_numpy().argmax(axis=1)
        return Series(frame.columns.to_numpy()[best], frame.index, name=target)

    def to_networkx(self) -> DiGraph[str]:
        """Return a `DiGraph` of networkx; its nodes have the attributes ``states`` and ``cpt``."""
        graph = self.structure.to_networkx()
        for node in graph.nodes:
            graph.nodes[node].update(states=self.variables[node].states, cpt=self.cpts[node])
        return graph

    def _repr_svg_(self) -> str:
        """Return a drawing of the structure, which notebooks show."""
        return self.structure._repr_svg_()

    def to_pgmpy(self) -> DiscreteBayesianNetwork:
        """Return the network as an object of pgmpy, checked by pgmpy's `check_model`."""
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork

        model = DiscreteBayesianNetwork()
        model.add_nodes_from(self.structure.nodes)
        model.add_edges_from(self.structure.edges)
        for node in self.structure.nodes:
            parents = self.structure.parents[node]
            cpt = self.cpts[node]
            names = {name: list(self.variables[name].states) for name in (node, *parents)}
            cards = [len(names[parent]) for parent in parents]
            values = cpt.reshape(cpt.shape[0], -1)
            more: dict[str, Any] = {"evidence": list(parents), "evidence_card": cards}
            model.add_cpds(
                TabularCPD(
                    node, cpt.shape[0], values, state_names=names, **(more if parents else {})
                )
            )
        model.check_model()
        return model


def from_pgmpy(model: DiscreteBayesianNetwork) -> Network:
    """Return a network of pgmpy as a `Network`."""
    cpds = {cpd.variable: cpd for cpd in model.get_cpds()}
    parents = {node: tuple(cpds[node].variables[1:]) for node in model.nodes()}
    variables = {
        node: Variable(node, tuple(str(s) for s in cpds[node].state_names[node]))
        for node in parents
    }
    cpts = {node: np.asarray(cpds[node].values, float) for node in parents}
    return Network(Structure(parents), variables, cpts)
