"""Networks: models with files, predictions, drawings, and conversions to other libraries."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vertibayes.bif import parse_bif
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predict_proba
from vertibayes.model import Model
from vertibayes.model_file import load_model, save_model
from vertibayes.records import read_frame
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

if TYPE_CHECKING:
    from networkx import DiGraph
    from pandas import DataFrame, Series
    from pgmpy.models import DiscreteBayesianNetwork
    from pyagrum import BayesNet


@dataclass(frozen=True)
class Network(Model):
    """A Bayesian network of discrete variables.

    Parameters
    ----------
    structure : Structure
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
    fixed : frozenset of (parent, child)
        The edges whose direction experts fixed; data alone may not determine that of the others.

    Raises
    ------
    ValueError
        If a CPT has a wrong shape, its columns do not sum to 1, or a fixed edge is no edge.
    """

    @classmethod
    def of(cls, model: Model) -> Network:
        """Return a model as a network."""
        return cls(**vars(model))

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read a network from a file; see `vertibayes.read_model`."""
        return cls.of(load_model(path))

    def save(self, path: str | Path) -> None:
        """Write the network to a file; see `vertibayes.model_file.save_model`."""
        save_model(self, path)

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

        if target not in self.variables:
            raise ValueError(f"the target must be a variable of the network, got {target!r}")
        columns = list(self.variables[target].states)
        if isinstance(data, SiteData):
            return DataFrame(predict_proba(self, data, target), columns=columns)
        records = read_frame(data, self, target)
        for told in records.warnings_of_values("the data frame"):
            warnings.warn(told, stacklevel=2)
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

    def to_pyagrum(self) -> BayesNet:
        """Return the network as an object of pyAgrum, with all digits."""
        from pyagrum import BayesNet, LabelizedVariable

        model = BayesNet()
        for name, variable in self.variables.items():
            model.add(LabelizedVariable(name, name, list(variable.states)))
        model.addArcs(self.structure.edges)
        for name, cpt in self.cpts.items():  # pyAgrum's first axis changes fastest
            model.cpt(name).fillWith(cpt.ravel(order="F").tolist())
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


def read_bif(text: str) -> Network:
    """Read a BIF file that `write_bif` wrote, or another file with the same elements.

    Parameters
    ----------
    text : str

    Returns
    -------
    network : Network

    Raises
    ------
    ValueError
        If it is not a valid BIF file.
    """
    return Network.of(parse_bif(text))


def read_model(path: str | Path) -> Network:
    """Read a model from a file: ``.json``, ``.bif``, ``.bifxml`` or ``.xmlbif``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    network : Network

    Raises
    ------
    ValueError
        If the file is not found or is not a valid model.
    """
    return Network.load(path)
