"""A calibrated Bayesian network classifier as a `Network`, which files and predictions take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protocols.calibration.classifier import FactoredClassifier
from protocols.calibration.factors import Categorical, ClassGiven, Floats
from vertibayes.counting import Counter
from vertibayes.network import Network, Structure
from vertibayes.parameters.cpt import fit_cpts


def to_network(
    classifier: FactoredClassifier, structure: Structure, statistics: Floats, counter: Counter
) -> Network:
    """Return the network of a classifier's statistics.

    Parameters
    ----------
    classifier : FactoredClassifier
        Made by `network_classifier` of the structure's families.
    structure : Structure
        All nodes.
    statistics : ndarray of shape (classes, width), dtype float64
        The calibrated statistics.
    counter : Counter
        Counts the families without the class, which no calibration changes.

    Returns
    -------
    network : Network
        The CPTs of the families with the class are theta of the statistics.
    """
    network = fit_cpts(counter, structure)
    cpts, weights = dict(network.cpts), classifier.weights(statistics).values
    target = classifier.target.name
    for factor, part in zip(classifier.factors, classifier.apart(weights), strict=True):
        child = factor.child.name if isinstance(factor, Categorical) else target
        others = factor.parents if isinstance(factor, Categorical | ClassGiven) else ()
        axes = [target, *(variable.name for variable in others)]
        axes += [child] if child != target else []
        table = np.exp(part).reshape([len(network.variables[name].states) for name in axes])
        order = [axes.index(name) for name in (child, *structure.parents[child])]
        cpts[child] = table.transpose(order)
    unseen = {n: count for n, count in network.unseen.items() if n not in _families(classifier)}
    return replace(network, cpts=cpts, unseen=unseen)


def _families(classifier: FactoredClassifier) -> set[str]:
    """Return the children of the families with the class."""
    children = {f.child.name for f in classifier.factors if isinstance(f, Categorical)}
    return {classifier.target.name, *children}
