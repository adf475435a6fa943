"""Hand a network to pgmpy, pyAgrum, NetworkX, pandas and matplotlib: five lines each.

The network is learned from scikit-learn's breast cancer data (Wolberg, Street, Mangasarian 1995),
whose numbers are binned.

    python examples/hand_over.py [FOLDER]

The example needs scikit-learn for the data, and pyAgrum. Without a folder no figure is written.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyagrum as gum
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pgmpy.inference import VariableElimination
from sklearn.datasets import load_breast_cancer

from vertibayes import Network
from vertibayes.sklearn import BayesianNetworkClassifier

COLUMNS = ["mean radius", "mean texture", "mean concavity", "worst area", "worst smoothness"]
TARGET = "diagnosis"


def learn() -> tuple[Network, pd.DataFrame]:
    """Return a network over five measurements and the diagnosis, and the records."""
    cancer = load_breast_cancer(as_frame=True)
    records = cancer.data[COLUMNS]
    diagnosis = cancer.target.map({0: "malignant", 1: "benign"}).rename(TARGET)
    model = BayesianNetworkClassifier(bins=0.25).fit(records, diagnosis)
    return model.network_, records.join(diagnosis)


def by_pgmpy(network: Network, evidence: Mapping[str, str], target: str) -> NDArray[Any]:
    """Return the posterior of a variable, computed by pgmpy."""
    inference = VariableElimination(network.to_pgmpy())
    posterior = inference.query([target], evidence=dict(evidence), show_progress=False)
    states = network.variables[target].states
    return np.array([posterior.get_value(**{target: state}) for state in states])


def by_pyagrum(network: Network, evidence: Mapping[str, str], target: str) -> NDArray[Any]:
    """Return the posterior of a variable, computed by pyAgrum."""
    model = network.to_pyagrum()
    return np.asarray(gum.getPosterior(model, target=target, evs=dict(evidence)).toarray())


def screened_off(network: Network, target: str) -> set[str]:
    """Return the variables that say nothing more of a target once its blanket is known."""
    graph = network.to_networkx()
    blanket = network.structure.moral_neighbours()[target]
    others = set(graph.nodes) - blanket - {target}
    return {name for name in others if nx.is_d_separator(graph, {name}, {target}, blanket)}


def cpt_of(network: Network, node: str) -> pd.DataFrame:
    """Return a CPT as a data frame: a row for each joint state of the parents."""
    parents, states = network.structure.parents[node], network.variables[node].states
    if not parents:
        return pd.DataFrame(network.rows(node), columns=list(states))
    given = [network.variables[parent].states for parent in parents]
    rows = pd.Index([", ".join(states) for states in product(*given)], name=", ".join(parents))
    return pd.DataFrame(network.rows(node), rows, list(states))


def drawn(network: Network, node: str, target: str, records: pd.DataFrame) -> Figure:
    """Draw the CPT of a node and the posteriors of a target, by matplotlib alone."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    cpt_of(network, node).plot.barh(stacked=True, ax=left, title=f"P({node} | parents)")
    posteriors = network.predict_proba(records, target)
    posteriors.plot.barh(stacked=True, ax=right, title=f"P({target} | record)")
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    return figure


def show(folder: Path | None = None) -> None:
    """Hand the network over, print what comes back, and draw it if a folder is given."""
    network, records = learn()
    evidence = {name: network.variables[name].states[-1] for name in COLUMNS[:2]}
    print(f"P({TARGET} | both highest), states {network.variables[TARGET].states}")
    print("  pgmpy  ", by_pgmpy(network, evidence, TARGET).round(4))
    print("  pyAgrum", by_pyagrum(network, evidence, TARGET).round(4))
    print("says nothing more once the blanket is known:", sorted(screened_off(network, TARGET)))
    print(cpt_of(network, "worst area").round(3))
    if folder is not None:
        drawn(network, "worst area", TARGET, records.head(8)).savefig(folder / "posteriors.png")


if __name__ == "__main__":
    show(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
