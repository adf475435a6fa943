"""The area under the ROC curve, one class against the rest, weighted by class as WEKA has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata


@dataclass(frozen=True)
class Auc:
    """An area under the ROC curve.

    Attributes
    ----------
    auc : float or None
        The mean of the classes' areas, weighted by their records; None if there is none.
    by_class : mapping of str to float
        Of each class that some scored records have, and others have not.
    scored, left_out : int
        Records with a known class, and without.
    """

    auc: float | None
    by_class: Mapping[str, float]
    scored: int
    left_out: int


def auc(
    classes: NDArray[np.integer], probabilities: NDArray[np.float64], states: Sequence[str]
) -> Auc:
    """Return the area under the ROC curve of predicted probabilities.

    Parameters
    ----------
    classes : ndarray of shape (n,), dtype int
        The code of each record's class; ``len(states)`` where it is missing: such records are left
        out.
    probabilities : ndarray of shape (n, states)
    states : sequence of str

    Raises
    ------
    ValueError
        If the shapes do not fit.

    References
    ----------
    Hanley and McNeil (1982): the area is the chance that a record of the class has a higher
    probability of it than one that is not, ties counting a half.
    """
    if probabilities.shape != (len(classes), len(states)):
        raise ValueError(
            f"probabilities of shape {probabilities.shape}, {(len(classes), len(states))} is wanted"
        )
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
    return Auc(mean, by_class, int(known.sum()), int((~known).sum()))
