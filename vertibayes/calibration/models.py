"""Calibrated statistics as models: how they predict, and how well; how numbers are measured."""

from __future__ import annotations

import warnings

import numpy as np

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_protocols.calibration.classifier import (
    Examples,
    FactoredClassifier,
    GenerativeClassifier,
    Scale,
)
from vertibayes_protocols.calibration.factors import (
    Categorical,
    Floats,
    Gaussian,
    JointGaussian,
    Prior,
)
from vertibayes_protocols.calibration.local import posterior
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData

BLOCK = 1 << 22  # scores that are computed at once


def to_naive_bayes(
    classifier: FactoredClassifier, schema: Schema, statistics: Floats
) -> NaiveBayes:
    """Return naive Bayes with the parameters theta(s): for files, BIF and `vertibayes predict`.

    It predicts as the classifier does. Numbers beyond a bound are the exception: the classifier
    takes the bound, and `NaiveBayes` the number.
    """
    model = NaiveBayes(schema)
    model.feature_log_prob_, model.theta_, model.var_ = {}, {}, {}
    for factor, part in zip(classifier.factors, classifier.apart(statistics), strict=True):
        values = factor.weights(part).values
        if isinstance(factor, Prior):
            model.class_log_prior_ = values[:, 0]
            model.class_count_ = np.exp(values[:, 0]) * part.sum()
        elif isinstance(factor, Categorical) and not factor.parents:
            model.feature_log_prob_[factor.child.name] = values
        elif isinstance(factor, Gaussian):
            mean, variance, _ = factor.moments(part)
            model.theta_[factor.numeric.name] = factor.centre + factor.spread * mean
            model.var_[factor.numeric.name] = factor.spread**2 * variance
        elif isinstance(factor, JointGaussian):
            means, covariances = factor.moments(part)
            spreads = np.array([number.spread for number in factor.numbers])
            model.cov_ = covariances * np.outer(spreads, spreads)
            for place, number in enumerate(factor.numbers):
                name = number.numeric.name
                model.theta_[name] = number.centre + number.spread * means[:, place]
                model.var_[name] = model.cov_[:, place, place]
    fitted = {*model.feature_log_prob_, *model.theta_}
    if fitted != set(schema.features) or classifier.target.states != schema.target.states:
        raise ValueError(
            "the classifier must be naive Bayes with the schema's class and features, got the"
            f" features {', '.join(sorted(fitted))}"
        )
    return model


def predict_proba(classifier: FactoredClassifier, statistics: Floats, data: LocalData) -> Floats:
    """Return P(y | x) of each record, missing values left out."""
    return posterior(classifier.columns(data), classifier.weights(statistics).values)


def error_rates(classifier: GenerativeClassifier, statistics: Floats, examples: Examples) -> Floats:
    """Return the share of records that each of several models classifies wrongly."""
    records = len(examples.classes)
    if not records:
        raise ValueError("error rates need at least one record of a known class, got 0")
    models, classes, width = statistics.shape
    weights = classifier.weights(statistics).values.reshape(models * classes, width).T
    wrong = np.zeros(models, np.int64)
    step = max(1, BLOCK // (models * classes))
    for at in range(0, records, step):
        scores = examples.columns[at : at + step] @ weights
        best = scores.reshape(-1, models, classes).argmax(axis=2)
        wrong += (best != examples.classes[at : at + step, None]).sum(axis=0)
    return np.asarray(wrong / records)


def scales_of(data: LocalData) -> dict[str, Scale]:
    """Return the mean and the standard deviation of each column of numbers.

    Only simulations have all records in one place; nodes on several machines take `scales_within`
    of `vertibayes_protocols.calibration.classifier`.
    """
    scales = {}
    for name, numeric in data.numerics.items():
        values = np.clip(data.numbers[name], numeric.low, numeric.high)
        known = values[~np.isnan(values)]
        constant = not len(known) or known.min() == known.max()
        if constant:
            reason = "is constant" if len(known) else "has no numbers"
            warnings.warn(
                f"the column {name} {reason}: no class can be predicted from it", stacklevel=2
            )
        centre = known.mean() if len(known) else numeric.middle
        scales[name] = Scale(float(centre), 1.0 if constant else float(known.std()))
    return scales
