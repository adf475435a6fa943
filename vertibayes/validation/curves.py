"""Compute ROC curves, calibration and confusion of predicted probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.validation.auc import check_shape, half_width

Floats = NDArray[np.float64]

BINS = 10
POINTS = 101  # of a band


class Roc(NamedTuple):
    """A ROC curve."""

    # The corners of the curve, from (0, 0) to (1, 1).
    false_positive_rate: Floats
    true_positive_rate: Floats


class Band(NamedTuple):
    """The mean of the ROC curves of folds."""

    false_positive_rate: Floats
    true_positive_rate: Floats
    low: Floats
    high: Floats


class Calibration(NamedTuple):
    """How often records are of a class, by the predicted probability of the class."""

    predicted: Floats  # the mean predicted probability in each bin that has records
    observed: Floats  # the share of each bin's records that are of the class
    records: NDArray[np.int64]  # the number of records in each bin


class Curves(NamedTuple):
    """The quality of predictions of a target."""

    # The curves of each class.
    roc: Mapping[str, Roc]
    calibration: Mapping[str, Calibration]
    confusion: NDArray[np.int64]


def curves(classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]) -> Curves:
    """Return the curves of predicted probabilities, over records with a class and a prediction."""
    check_shape(classes, probabilities, states)
    known = classes < len(states)
    truth, scores = classes[known], probabilities[known]
    rocs, calibrations = {}, {}
    for code, state in enumerate(states):
        inside = truth == code
        mirrored = len(states) == 2 and code == 0
        if inside.any() and not inside.all() and not mirrored:
            rocs[state] = roc(inside, scores[:, code])
        calibrations[state] = calibration(inside, scores[:, code])
    places = truth * len(states) + scores.argmax(axis=1)
    counts = np.bincount(places, minlength=len(states) ** 2)
    return Curves(rocs, calibrations, counts.reshape(len(states), len(states)))


def roc(inside: NDArray[np.bool_], scores: Floats) -> Roc:
    """Return the ROC curve of one class against the rest; equal scores make one step."""
    count = int(inside.sum())
    if not 0 < count < len(inside):
        raise ValueError("there must be records of the class and records of other classes")
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = np.append(0, np.cumsum(inside[order])[last])
    false_alarms = np.append(0, last + 1) - hits
    up, right = np.diff(hits), np.diff(false_alarms)
    corner = np.ones(len(hits), np.bool_)
    corner[1:-1] = up[:-1] * right[1:] != up[1:] * right[:-1]
    return Roc(false_alarms[corner] / (len(inside) - count), hits[corner] / count)


def band_of(folds: Sequence[Roc]) -> Band:
    """Return the mean of folds' ROC curves, averaged at equal false positive rates.

    References
    ----------
    Fawcett (2006), "An introduction to ROC analysis", section 8.2: vertical averaging.
    """
    grid = np.linspace(0, 1, POINTS)
    heights = np.array([np.append(0, np.interp(grid, *fold)) for fold in folds])
    mean, half = heights.mean(axis=0), half_width(heights)
    return Band(np.append(0, grid), mean, np.maximum(mean - half, 0), np.minimum(mean + half, 1))


def calibration(inside: NDArray[np.bool_], scores: Floats, bins: int = BINS) -> Calibration:
    """Return the calibration of a class in bins of equal width."""
    place = np.minimum((scores * bins).astype(np.intp), bins - 1)
    records = np.bincount(place, minlength=bins)
    filled = records > 0
    counts = records[filled]
    predicted = np.bincount(place, scores, bins)[filled] / counts
    observed = np.bincount(place, inside, bins)[filled] / counts
    return Calibration(predicted, observed, counts)
