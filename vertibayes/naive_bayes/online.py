"""Online updates: the update of a new node is added to a model whose old updates are gone.

References
----------
.. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from vertibayes.naive_bayes.base import FLOOR, Floats, NaiveBayes, Statistics
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import apart


@dataclass(frozen=True)
class OnlineModel:
    """What Algorithm 3 returns, to which the update of a new node can be added.

    Parameters
    ----------
    schema : Schema
        With `centred`.
    n : ndarray of shape (n_classes,)
        The counts of the classes.
    m : mapping of str to ndarray of shape (n_states, n_classes)
        The counts of each categorical feature.
    mean, second_moment : mapping of str to ndarray of shape (n_classes,)
        Of each number, about the middle of its bounds. Both are 0 for a class whose count is
        exactly 0, which has no mean.

    Notes
    -----
    Nothing is raised to a floor before `model`, so that the result is that of all updates at once.
    """

    schema: Schema
    n: Floats
    m: Mapping[str, Floats]
    mean: Mapping[str, Floats]
    second_moment: Mapping[str, Floats]

    @classmethod
    def of(cls, schema: Schema, sums: Statistics) -> Self:
        """Return the model of the sum of some updates."""
        n, tables, totals, squares = _split(schema, sums)
        mean = {name: _ratio(total, n) for name, total in totals.items()}
        return cls(schema, n, tables, mean, {name: _ratio(q, n) for name, q in squares.items()})

    @classmethod
    def of_deviations(
        cls,
        schema: Schema,
        n: Floats,
        m: Mapping[str, Floats],
        mean: Mapping[str, Floats],
        deviation: Mapping[str, Floats],
    ) -> Self:
        """Return the model of which standard deviations were kept, not second moments.

        The second moment is ``deviation**2 + mean**2``, with the mean about the middle. Where noise
        made the variance negative, a deviation cannot express it: the result then differs.

        Parameters
        ----------
        schema, n, m
            As of `OnlineModel`.
        mean, deviation : mapping of str to ndarray of shape (n_classes,)
            Mean and standard deviation of each number, in its own unit, as ``NaiveBayes.theta_``.
        """
        about = {name: mean[name] - numeric.middle for name, numeric in schema.numerics.items()}
        second = {name: deviation[name] ** 2 + about[name] ** 2 for name in about}
        return cls(schema, n, m, about, second)

    def updated(self, update: Statistics) -> Self:
        """Return the model with the update of one more node ([1]_, equations 22 to 24)."""
        more, tables, totals, squares = _split(self.schema, update)
        n = self.n + more

        def averaged(old: Mapping[str, Floats], new: Mapping[str, Floats]) -> dict[str, Floats]:
            return {name: _ratio(self.n * old[name] + new[name], n) for name in new}

        m = {name: self.m[name] + table for name, table in tables.items()}
        mean, second = averaged(self.mean, totals), averaged(self.second_moment, squares)
        return replace(self, n=n, m=m, mean=mean, second_moment=second)

    def model(self, *, alpha: float = 1.0, floor: float = FLOOR) -> NaiveBayes:
        """Return the classifier; `alpha` and `floor` as of `aggregate`."""
        rows = [self.n, *(self.m[name].reshape(-1) for name in self.schema.categorical)]
        for name, numeric in self.schema.numerics.items():
            step = numeric.centred_step
            rows += [self.n * self.mean[name] / step, self.n * self.second_moment[name] / step**2]
        return NaiveBayes(self.schema, alpha=alpha, floor=floor).fit_sums(np.concatenate(rows))


def _split(
    schema: Schema, sums: Statistics
) -> tuple[Floats, dict[str, Floats], dict[str, Floats], dict[str, Floats]]:
    """Return n, m, and sums and sums of squares about the middle, in the columns' units."""
    (n, *tables), *moments = apart(schema.statistics, schema.variables, sums.astype(np.float64))
    totals, squares = {}, {}
    for (name, numeric), (total, square) in zip(
        schema.numerics.items(), moments[0] if moments else [], strict=True
    ):
        totals[name] = total * numeric.centred_step
        squares[name] = square * numeric.centred_step**2
    return n, dict(zip(schema.categorical, tables, strict=True)), totals, squares


def _ratio(total: Floats, n: Floats) -> Floats:
    return np.divide(total, n, out=np.zeros_like(total), where=n != 0)
