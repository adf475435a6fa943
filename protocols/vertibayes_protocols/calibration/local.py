"""Local risk-based calibration (LRC): nodes move statistics towards their own records.

    s <- s + s(X, Y) - s(X, theta(s))        `iterations` times           ([1]_, Algorithm 3)

where s(X, theta) counts each record in each class with the probability that theta gives it. With
``s(x, y) = e_y (x) phi(x)``, the difference is (Y - P)' Phi, for the indicators Y of the classes
and their probabilities P.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Algorithm 3, equation 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats

Wholes = NDArray[np.int64]


class Update(NamedTuple):
    """How nodes' own records change their statistics, and how well they are classified before."""

    difference: Floats  # s(X, Y) - s(X, theta(s))
    soft: Floats  # the soft 0-1 loss of theta(s), summed over records
    errors: Wholes  # how many records have a most probable class that is wrong
    repairs: Wholes  # how many statistics were not valid; see `Weights`


def statistics_of(classifier: GenerativeClassifier, examples: Examples) -> Floats:
    """Return s(X, Y): the sums of phi(x) over the records of each class."""
    places = np.arange(len(classifier.classes))[:, None] == examples.classes
    return np.asarray(places.astype(float) @ examples.columns)


def posterior(columns: Floats, weights: Floats) -> Floats:
    """Return P(y | x) of each record: shape (..., n, classes)."""
    scores = columns @ np.swapaxes(weights, -1, -2)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return np.asarray(scores)


def update(classifier: GenerativeClassifier, statistics: Floats, examples: Examples) -> Update:
    """Return s(X, Y) - s(X, theta(s)), and the loss of theta(s) ([1]_, equation 3)."""
    weights, repairs = classifier.weights(statistics)
    probable = posterior(examples.columns, weights)
    places = examples.classes[..., None]
    of_class = np.take_along_axis(probable, places, axis=-1)
    wrong = probable.argmax(axis=-1) != examples.classes
    soft = (1.0 - of_class[..., 0]).sum(axis=-1)
    np.negative(probable, out=probable)
    np.put_along_axis(probable, places, 1.0 + np.take_along_axis(probable, places, -1), axis=-1)
    difference = np.swapaxes(probable, -1, -2) @ examples.columns
    return Update(difference, soft, wrong.sum(axis=-1), repairs)


def local_rc(
    update_of: Callable[[Floats], Update],
    statistics: Floats,
    iterations: int = 1,
    step: float = 1.0,
) -> tuple[Floats, Update]:
    """LocalRC: return the sum of the differences, and the first update ([1]_, Algorithm 3)."""
    first = update_of(statistics)
    change = first.difference
    for _ in range(iterations - 1):
        change = change + update_of(statistics + step * change).difference
    return change, first
