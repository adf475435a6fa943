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
    """A ROC curve.

    Parameters
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (points,)
        The corners of the curve, from (0, 0) to (1, 1).
    """

    false_positive_rate: Floats
    true_positive_rate: Floats


class Band(NamedTuple):
    """The mean of the ROC curves of folds.

    Parameters
    ----------
    false_positive_rate, true_positive_rate, low, high : ndarray of shape (points,)
        The points of the mean curve, and the bounds of a 95 % interval of the true positive rate.
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    low: Floats
    high: Floats


class Calibration(NamedTuple):
    """How often records are of a class, by the predicted probability of the class.

    Parameters
    ----------
    predicted : ndarray of shape (bins,)
        The mean predicted probability in each bin that has records.
    observed : ndarray of shape (bins,)
        The share of each bin's records that are of the class.
    records : ndarray of shape (bins,), dtype int64
        The number of records in each bin.
    """

    predicted: Floats
    observed: Floats
    records: NDArray[np.int64]


class Curves(NamedTuple):
    """The quality of predictions of a target.

    Parameters
    ----------
    roc, calibration : mapping of str to Roc, Calibration
        The curves of each class. There is a ROC curve only if some, but not all, scored records
        have the class; of two classes, only the last has one: the other is its mirror image.
    confusion : ndarray of shape (states, states), dtype int64
        The number of records by class (axis 0) and predicted class (axis 1).
    """

    roc: Mapping[str, Roc]
    calibration: Mapping[str, Calibration]
    confusion: NDArray[np.int64]


def curves(classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]) -> Curves:
    """Return the curves of predicted probabilities, over records with a class and a prediction.

    Parameters
    ----------
    classes, probabilities, states
        As `vertibayes.validation.auc.auc`.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
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
    """Return the ROC curve of one class against the rest; equal scores make one step.

    Raises
    ------
    ValueError
        If all records, or no records, are of the class.
    """
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

    Parameters
    ----------
    folds : sequence of Roc
        The curves of two or more folds.

    References
    ----------
    Fawcett (2006), "An introduction to ROC analysis", section 8.2: vertical averaging.
    """
    grid = np.linspace(0, 1, POINTS)
    heights = np.array([np.append(0, np.interp(grid, *fold)) for fold in folds])
    mean, half = heights.mean(axis=0), half_width(heights)
    return Band(np.append(0, grid), mean, np.maximum(mean - half, 0), np.minimum(mean + half, 1))


def calibration(inside: NDArray[np.bool_], scores: Floats, bins: int = BINS) -> Calibration:
    """Return the calibration of a class in bins of equal width.

    Parameters
    ----------
    inside : ndarray of shape (n,), dtype bool
        Whether each record is of the class.
    scores : ndarray of shape (n,)
        The predicted probability of the class, for each record.
    bins : int, default=10
        The number of bins.
    """
    place = np.minimum((scores * bins).astype(np.intp), bins - 1)
    records = np.bincount(place, minlength=bins)
    filled = records > 0
    counts = records[filled]
    predicted = np.bincount(place, scores, bins)[filled] / counts
    observed = np.bincount(place, inside, bins)[filled] / counts
    return Calibration(predicted, observed, counts)
