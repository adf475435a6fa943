"""The accuracies of many naive Bayes models on the same records, for experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vertibayes.naive_bayes.base import Floats, NaiveBayes
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

MODELS_AT_ONCE = 64  # whose scores of all records are in memory


class Scorer:
    """Records on which many models are scored at once.

    The logarithm of P(x, y) is linear in the indicators of states and in each number and its
    square: the scores of all models are one product of matrices.
    """

    def __init__(self, schema: Schema, data: LocalData) -> None:
        classes = np.asarray(data.codes[schema.target.name], np.int64)
        if not (classes < len(schema.target.states)).any():
            raise ValueError("no record has a known class")
        self.schema, columns = schema, [np.ones((data.records, 1))]
        for name, feature in schema.features.items():
            if isinstance(feature, Variable):
                columns.append(np.eye(len(feature.states) + 1)[data.codes[name]][:, :-1])
            else:
                places = (data.numbers[name] - feature.middle) / (feature.high - feature.middle)
                known, places = ~np.isnan(places), np.nan_to_num(places)
                columns.append(np.array([known, places, places**2], np.float64).T)
        design = np.hstack(columns)
        self.of_class = [design[classes == c] for c in range(len(schema.target.states))]

    def accuracies(self, models: Sequence[NaiveBayes]) -> Floats:
        """Return the accuracy of each model, as `NaiveBayes.score`: shape (models,)."""
        batches = range(0, len(models), MODELS_AT_ONCE)
        rights = [self._right(models[i : i + MODELS_AT_ONCE]) for i in batches]
        return np.concatenate(rights) / sum(len(rows) for rows in self.of_class)

    def _right(self, models: Sequence[NaiveBayes]) -> Floats:
        """Return how many records each model classifies rightly; of equal classes, the first."""
        weights = np.array([self._weights(model) for model in models])
        if not np.isfinite(weights).all():
            raise ValueError("a model has probabilities of 0: fit it with alpha or floor above 0")
        right = np.zeros(len(models))
        for own, rows in enumerate(self.of_class):
            best = np.ones((len(rows), len(models)), bool)
            for other in range(len(self.of_class)):
                if other != own:
                    ahead = rows @ (weights[:, own] - weights[:, other]).T
                    best &= ahead >= 0 if own < other else ahead > 0
            right += best.sum(axis=0)
        return right

    def _weights(self, model: NaiveBayes) -> Floats:
        """Return a model's weights of the columns: shape (classes, columns)."""
        weights = [model.class_log_prior_[:, None]]
        for name, feature in self.schema.features.items():
            if isinstance(feature, Variable):
                weights.append(model.feature_log_prob_[name])
                continue
            half, spread = feature.high - feature.middle, model.var_[name]
            mean = (model.theta_[name] - feature.middle) / half
            variance = spread / half**2
            known = -0.5 * (np.log(2 * np.pi * spread) + mean**2 / variance)
            weights.append(np.array([known, mean / variance, -0.5 / variance]).T)
        return np.hstack(weights)
