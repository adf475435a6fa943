"""Generative classifiers with additive statistics and a closed-form map to their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.calibration.choices import Covariance
from vertibayes_protocols.calibration.factors import (
    Categorical,
    ClassGiven,
    Factor,
    Floats,
    Gaussian,
    JointGaussian,
    Prior,
    Weights,
)
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Family, Variable

EVEN_SPREAD = 3.0**-0.5  # of numbers between -1 and 1


class Scale(NamedTuple):
    """How numbers are measured: ``z = (x - centre) / spread``."""

    centre: float
    spread: float


def scales_within(numerics: Mapping[str, Numeric]) -> dict[str, Scale]:
    """Return scales that follow from declared bounds alone, not from any record.

    Numbers that are spread evenly between the bounds have mean 0 and variance 1.
    """
    half = {name: (numeric.high - numeric.low) / 2 for name, numeric in numerics.items()}
    return {n: Scale(numerics[n].middle, half[n] * EVEN_SPREAD) for n in numerics}


class Examples(NamedTuple):
    """Records as calibration reads them."""

    columns: Floats  # phi(x): what the factors say of each record
    classes: NDArray[np.int64]  # y: the place of each record's class


class GenerativeClassifier(Protocol):
    """A family of distributions P(x, y) whose maximum likelihood follows from sums over records.

    The statistics of a record add phi(x) to the row of its class: ``s(x, y) = e_y (x) phi(x)``. The
    logarithm of P(x, y) is phi(x) . theta(s)[y], up to terms without y.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """The states of the class."""
        ...

    @property
    def width(self) -> int:
        """The number of columns of phi(x): the statistics have shape (classes, width)."""
        ...

    def examples(self, data: LocalData) -> Examples:
        """Return phi(x) and y of the records whose class is known."""
        ...

    def uniform(self, size: float) -> Floats:
        """Return statistics of `size` records under which all classes are equally probable."""
        ...

    def weights(self, statistics: Floats) -> Weights:
        """Return theta(s), for statistics of shape (..., classes, width)."""
        ...


@dataclass(frozen=True)
class FactoredClassifier:
    """A classifier that is a product of factors: naive Bayes, and Bayesian networks."""

    target: Variable  # the class
    factors: tuple[Factor, ...]  # all factors in which the class appears

    @property
    def classes(self) -> tuple[str, ...]:
        """The states of the class."""
        return self.target.states

    @property
    def width(self) -> int:
        """The number of columns of all factors."""
        return sum(factor.width for factor in self.factors)

    def columns(self, data: LocalData) -> Floats:
        """Return phi(x) of all records: shape (n, width)."""
        return np.concatenate([factor.columns(data) for factor in self.factors], axis=1)

    def examples(self, data: LocalData) -> Examples:
        """Return phi(x) and y of the records whose class is known."""
        own = data.variables.get(self.target.name)
        if own is None or own.states != self.target.states:
            raise DataError(f"the data do not have {self.target.name!r} in the declared states")
        classes = np.asarray(data.codes[self.target.name], np.int64)
        known = classes < len(self.classes)
        return Examples(self.columns(data)[known], classes[known])

    def uniform(self, size: float) -> Floats:
        """Return statistics of `size` records that prefer no class ([1]_ of `factors`, A-A)."""
        parts = [factor.uniform(len(self.classes), size) for factor in self.factors]
        return np.concatenate(parts, axis=1)

    def weights(self, statistics: Floats) -> Weights:
        """Return theta(s), factor by factor."""
        parts = [
            f.weights(part) for f, part in zip(self.factors, self.apart(statistics), strict=True)
        ]
        values = np.concatenate([part.values for part in parts], axis=-1)
        return Weights(values, np.sum([part.repairs for part in parts], axis=0))

    def apart(self, statistics: Floats) -> list[Floats]:
        """Return the statistics of each factor."""
        ends = np.cumsum([factor.width for factor in self.factors])[:-1]
        return np.split(statistics, ends, axis=-1)


def naive_bayes(
    schema: Schema,
    scales: Mapping[str, Scale],
    *,
    alpha: float = 0.0,
    smoothing: float = 0.0,
    covariance: Covariance = "diagonal",
) -> FactoredClassifier:
    """Return naive Bayes with categorical and Gaussian features.

    If `covariance` is full, numbers have all their covariances in each class, and no `smoothing`.
    """
    factors: list[Factor] = [Prior()]
    if covariance == "full":
        numbers = (Gaussian(numeric, *scales[n]) for n, numeric in schema.numerics.items())
        factors.append(JointGaussian(tuple(numbers)))
    for name, feature in schema.features.items():
        if isinstance(feature, Variable):
            factors.append(Categorical(feature, alpha=alpha))
        elif covariance == "diagonal":
            factors.append(Gaussian(feature, *scales[name], smoothing))
    return FactoredClassifier(schema.target, tuple(factors))


def network_classifier(
    target: str, variables: Mapping[str, Variable], families: Iterable[Family], alpha: float = 0.0
) -> FactoredClassifier:
    """Return the classifier of a discrete Bayesian network.

    Families without the class are left out: they do not change which class is probable.
    """

    def of(names: Sequence[str]) -> tuple[Variable, ...]:
        return tuple(variables[name] for name in names if name != target)

    factors: list[Factor] = []
    for family in families:
        if family.child == target:
            parents = of(family.parents)
            factors.append(ClassGiven(parents, alpha) if parents else Prior())
        elif target in family.parents:
            factors.append(Categorical(variables[family.child], of(family.parents), alpha))
    return FactoredClassifier(variables[target], tuple(factors))
