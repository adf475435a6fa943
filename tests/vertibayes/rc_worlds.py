"""Small worlds for calibration: records with categorical features and numbers, at nodes."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vertibayes.calibration.topologies import network_of
from vertibayes_protocols.calibration.classifier import (
    Examples,
    FactoredClassifier,
    Scale,
    naive_bayes,
)
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable


class World(NamedTuple):
    schema: Schema
    data: LocalData
    classifier: FactoredClassifier
    examples: Examples

    def nodes(self, sizes):
        """The records of nodes of some sizes, in order: named a, b, c, ..."""
        ends = np.cumsum([0, *sizes])
        assert ends[-1] == len(self.examples.classes)
        columns, classes = self.examples
        return {
            chr(ord("a") + v): Examples(columns[at:to], classes[at:to])
            for v, (at, to) in enumerate(pairwise(ends))
        }


def world(records, seed=0, classes=3, states=(2, 4), numbers=2, missing=0.0, **options):
    """Records whose features depend on the class, each class at least once."""
    generator = np.random.default_rng(seed)
    y = np.append(np.arange(classes), generator.integers(0, classes, max(0, records - classes)))
    y = y[:records]
    names = [tuple(f"s{i}" for i in range(count)) for count in (classes, *states)]
    target = Variable("y", names[0])
    features = {f"x{i}": Variable(f"x{i}", some) for i, some in enumerate(names[1:])}
    numerics = {f"z{i}": Numeric(f"z{i}", -20.0, 30.0) for i in range(numbers)}
    codes = {"y": y}
    for i, count in enumerate(states):
        shares = generator.dirichlet(np.ones(count), classes)
        drawn = (generator.random((records, 1)) > shares[y].cumsum(axis=1)).sum(axis=1)
        drawn = np.minimum(drawn, count - 1)
        codes[f"x{i}"] = np.where(generator.random(records) < missing, count, drawn)
    values = {n: generator.normal(2 * y + i, 1 + i) for i, n in enumerate(numerics)}
    for column in values.values():
        column[generator.random(records) < missing] = np.nan
    schema = Schema(target, {**features, **numerics})
    data = LocalData(schema.variables, codes, numerics, values)
    classifier = naive_bayes(schema, dict.fromkeys(numerics, Scale(2.0, 3.0)), **options)
    return World(schema, data, classifier, classifier.examples(data))


def complete(names):
    """The network in which all speak with all."""
    return network_of("complete", [*names], np.random.default_rng())


def chain(names):
    """The network in which each speaks with the next."""
    return network_of("chain", [*names], np.random.default_rng())
