"""Calibrated classifiers as the models that files and predictions take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vertibayes.calibration.models import to_naive_bayes
from vertibayes.dag import Structure
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes_protocols.calibration.agreed import ClassifierSpec
from vertibayes_protocols.calibration.classifier import FactoredClassifier
from vertibayes_protocols.calibration.factors import Categorical, ClassGiven, Floats
from vertibayes_protocols.variables import Variable


def to_network(classifier: FactoredClassifier, statistics: Floats, others: Network) -> Network:
    """Return the network of a classifier's statistics."""
    cpts, weights = dict(others.cpts), classifier.weights(statistics).values
    target = classifier.target.name
    for factor, part in zip(classifier.factors, classifier.apart(weights), strict=True):
        child = factor.child.name if isinstance(factor, Categorical) else target
        parents = factor.parents if isinstance(factor, Categorical | ClassGiven) else ()
        axes = [target, *(variable.name for variable in parents)]
        axes += [child] if child != target else []
        table = np.exp(part).reshape([len(others.variables[name].states) for name in axes])
        order = [axes.index(name) for name in (child, *others.structure.parents[child])]
        cpts[child] = table.transpose(order)
    unseen = {n: count for n, count in others.unseen.items() if cpts[n] is others.cpts[n]}
    return replace(others, cpts=cpts, unseen=unseen)


def model_of(spec: ClassifierSpec, statistics: Floats) -> NaiveBayes | Network:
    """Return the model of a classifier that sites have calibrated."""
    if not spec.families:
        return to_naive_bayes(spec.classifier, spec.schema, statistics)
    structure = Structure({family.child: family.parents for family in spec.families})
    return to_network(spec.classifier, statistics, even_network(structure, spec.variables))


def even_network(structure: Structure, variables: Mapping[str, Variable]) -> Network:
    """Return a network whose distributions are all uniform."""
    cpts = {}
    for node, parents in structure.parents.items():
        shape = [len(variables[name].states) for name in (node, *parents)]
        cpts[node] = np.full(shape, 1 / shape[0])
    return Network(structure, variables, cpts)
