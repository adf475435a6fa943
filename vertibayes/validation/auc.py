"""The area under the ROC curve, one class against the rest, weighted by class as WEKA has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Auc:
    """An area under the ROC curve."""

    auc: float | None  # the mean of the classes' areas, weighted by their records
    by_class: Mapping[str, float]
    scored: int  # the number of records with a known class and a prediction
    left_out: int  # the number of records whose class is missing


def auc(
    classes: NDArray[np.integer], probabilities: NDArray[np.float64], states: Sequence[str]
) -> Auc:
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

    check_shape(classes, probabilities, states)
    known = classes < len(states)
    truth, scores = classes[known], probabilities[known]
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


def check_shape(
    classes: NDArray[np.integer], probabilities: NDArray[np.float64], states: Sequence[str]
) -> None:
    """Refuse probabilities of another shape than (records, states)."""
    shape = len(classes), len(states)
    if probabilities.shape != shape:
        raise ValueError(f"probabilities must have the shape {shape}, got {probabilities.shape}")


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


def interval_of(folds: Sequence[Auc]) -> tuple[float, float] | None:
    """Return a 95 % interval of the mean of folds' areas; None if fewer than two have an area.

    The interval is Student's t over the areas, cut at 0 and 1. It is slightly too narrow, because
    the folds' networks share training records, and ignores errors that all folds share.
    """
    areas = np.array([fold.auc for fold in folds if fold.auc is not None])
    if len(areas) < 2:
        return None
    mean, half = mean_of(folds).auc or 0.0, float(half_width(areas))
    return max(mean - half, 0.0), min(mean + half, 1.0)


def half_width(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the width of the 95 % interval of the mean over axis 0, of two or more values."""
    from scipy.stats import t

    count = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    return np.asarray(error * t.ppf(0.975, count - 1))


def _weighted(pairs: Sequence[tuple[float, int]]) -> float:
    values, weights = zip(*pairs, strict=True)
    return float(np.average(values, weights=weights))
