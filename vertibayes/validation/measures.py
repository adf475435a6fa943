"""How good predicted probabilities are: areas under ROC curves, curves, calibration, confusion.

Areas and curves are of one class against the rest; areas are weighted by class as WEKA has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cbrt, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.intervals import Interval, wilson

Floats = NDArray[np.float64]

BINS = 10
POINTS = 101  # of a band


class Estimate(NamedTuple):
    """A mean over records, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Auc:
    """An area under the ROC curve."""

    auc: float | None  # the mean of the classes' areas, weighted by their records
    by_class: Mapping[str, float]
    scored: int  # the number of records with a known class and a prediction
    left_out: int  # the number of records whose class is missing


def auc(classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]) -> Auc:
    """Return the area under the ROC curve of predicted probabilities.

    References
    ----------
    Hanley and McNeil (1982): the area is the probability that a record of the class has a higher
    score than a record of another class; ties count one half.

    Examples
    --------
    >>> scores = np.array([0.9, 0.8, 0.3, 0.1])
    >>> auc(np.array([0, 1, 0, 1]), np.column_stack([scores, 1 - scores]), ["no", "yes"]).auc
    0.75
    """
    from scipy.stats import rankdata

    truth, scores, known = _known(classes, probabilities, states)
    by_class: dict[str, float] = {}
    weights: list[int] = []
    for code, state in enumerate(states):
        inside = truth == code
        count, others = int(inside.sum()), int((~inside).sum())
        if count and others:
            ranks = rankdata(scores[:, code])[inside].sum()
            by_class[state] = float((ranks - count * (count + 1) / 2) / (count * others))
            weights.append(count)
    mean = float(np.average(list(by_class.values()), weights=weights)) if by_class else None
    return Auc(mean, by_class, len(truth), int((~known).sum()))


def _known(
    classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]
) -> tuple[NDArray[np.integer], Floats, NDArray[np.bool_]]:
    """Return the records with a class: the classes, the probabilities, and which records."""
    shape = len(classes), len(states)
    if probabilities.shape != shape:
        raise ValueError(f"probabilities must have the shape {shape}, got {probabilities.shape}")
    known = classes < len(states)
    return classes[known], probabilities[known], known


def auc_interval(
    classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]
) -> Interval | None:
    """Return a 95 % interval of `auc` on independent records; None if it has no area.

    The variance is that of DeLong et al., for more than two classes that of the weighted mean with
    its weights taken as given. The interval is Wilson's, of as many records as have this variance
    (Korn and Graubard): it stays within 0 and 1, and has a width where the area is 1.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988). Korn, Graubard (1998), section 2.
    """
    from scipy.stats import rankdata

    area = auc(classes, probabilities, states)
    if area.auc is None:
        return None
    truth, scores, _ = _known(classes, probabilities, states)
    counts = np.bincount(truth, minlength=len(states))
    weight = sum(counts[code] for code, state in enumerate(states) if state in area.by_class)
    influence = np.zeros(len(truth))
    for code, state in enumerate(states):
        if state not in area.by_class:
            continue
        inside, ranks = truth == code, rankdata(scores[:, code])
        mine, others = int(counts[code]), int(len(truth) - counts[code])
        won = (ranks[inside] - rankdata(scores[inside, code])) / others
        lost = (ranks[~inside] - rankdata(scores[~inside, code])) / mine
        share, mean = mine / weight, area.by_class[state]
        influence[inside] += share * (won - mean) / sqrt(mine * max(mine - 1, 1))
        influence[~inside] += share * (1 - mean - lost) / sqrt(others * max(others - 1, 1))
    largest = int(counts.max())
    fewest, variance = min(largest, len(truth) - largest), float(influence @ influence)
    value = area.auc
    if value * (1 - value) <= 0 or variance <= 0:
        return wilson(value, fewest)
    return wilson(value, min(value * (1 - value) / variance, len(truth)))


def log_loss(
    classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]
) -> Estimate | None:
    """Return the mean of minus the logarithm of the true class's probability, in nats.

    It is None if the true class of a record has the probability 0.
    """
    truth, scores, _ = _known(classes, probabilities, states)
    chosen = scores[np.arange(len(truth)), truth]
    return _mean(-np.log(chosen)) if (chosen > 0).all() else None


def brier(
    classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]
) -> Estimate | None:
    """Return the mean squared error of the probabilities, 0 to 1 for two states.

    It is summed over the states (Brier 1950), and halved for two states, as scikit-learn has it.
    """
    truth, scores, _ = _known(classes, probabilities, states)
    errors = ((scores - np.eye(len(states))[truth]) ** 2).sum(axis=1)
    return _mean(errors / 2 if len(states) == 2 else errors)


def _mean(losses: Floats) -> Estimate | None:
    """Return the mean of losses, which are 0 or more, with its 95 % interval.

    A few large losses skew it: Student's t is transformed as Hall (1992) has it, by which the
    interval reaches further up than down.
    """
    from scipy.stats import skew, t

    if len(losses) < 2:
        return None
    mean, error = float(losses.mean()), float(losses.std(ddof=1) / sqrt(len(losses)))
    low = high = float(t.ppf(0.975, len(losses) - 1))
    slant = float(skew(losses)) / sqrt(len(losses)) if error > 0 else 0.0
    if abs(slant) > 1e-9:
        low, high = (3 / slant * (cbrt(1 + slant * (q - slant / 6)) - 1) for q in (low, -high))
        high = -high
    return Estimate(mean, max(mean - low * error, 0.0), mean + high * error)


def entropy(classes: NDArray[np.integer], states: Sequence[str]) -> float:
    """Return the log-loss of predicting each record by the classes' shares alone, in nats."""
    counts = np.bincount(classes[classes < len(states)], minlength=len(states))
    shares = counts[counts > 0] / counts.sum()
    return -float(shares @ np.log(shares))


def mean_of(folds: Sequence[Auc]) -> Auc:
    """Return the mean of the folds' areas, weighted by their scored records."""
    counted = [fold for fold in folds if fold.auc is not None]
    states = dict.fromkeys(state for fold in counted for state in fold.by_class)
    by_class = {
        state: _weighted([(f.by_class[state], f.scored) for f in counted if state in f.by_class])
        for state in states
    }
    areas = [(fold.auc, fold.scored) for fold in counted if fold.auc is not None]
    return Auc(
        _weighted(areas) if areas else None,
        by_class,
        sum(fold.scored for fold in folds),
        sum(fold.left_out for fold in folds),
    )


def interval_of(folds: Sequence[Auc]) -> Interval | None:
    """Return a 95 % interval of the mean of folds' areas; None if fewer than two have an area.

    The interval is Student's t over the areas, cut at 0 and 1. It is slightly too narrow, because
    the folds' networks share training records, and ignores errors that all folds share.
    """
    areas = np.array([fold.auc for fold in folds if fold.auc is not None])
    if len(areas) < 2:
        return None
    mean, half = mean_of(folds).auc or 0.0, float(half_width(areas))
    return Interval(max(mean - half, 0.0), min(mean + half, 1.0))


def half_width(values: Floats) -> Floats:
    """Return half the width of the 95 % interval of the mean over axis 0, of two or more values."""
    from scipy.stats import t

    count = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    return np.asarray(error * t.ppf(0.975, count - 1))


def _weighted(pairs: Sequence[tuple[float, int]]) -> float:
    values, weights = zip(*pairs, strict=True)
    return float(np.average(values, weights=weights))


class Roc(NamedTuple):
    """A ROC curve."""

    false_positive_rate: Floats  # of the corners of the curve, from (0, 0) to (1, 1)
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
    low: Floats  # the 95 % intervals of the shares, if the records are independent
    high: Floats


class Curves(NamedTuple):
    """The quality of predictions of a target."""

    roc: Mapping[str, Roc]  # by class, as the calibrations
    calibration: Mapping[str, Calibration]
    confusion: NDArray[np.int64]


def curves(classes: NDArray[np.integer], probabilities: Floats, states: Sequence[str]) -> Curves:
    """Return the curves of predicted probabilities, over records with a class and a prediction."""
    truth, scores, _ = _known(classes, probabilities, states)
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
    ends = [wilson(*each) for each in zip(observed.tolist(), counts.tolist(), strict=True)]
    low, high = np.array(ends).reshape(-1, 2).T
    return Calibration(predicted, observed, counts, low, high)
