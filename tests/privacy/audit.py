"""An empirical audit of a promise of differential privacy, for any mechanism.

The audit runs the mechanism many times on two neighbouring inputs. From one half of the outputs it
chooses an event that is much more probable for one input than for the other. On the other half it
bounds both probabilities by Clopper and Pearson. A mechanism that keeps its promise yields a bound
above eps with probability at most 1 - confidence.

A bound below eps proves no privacy: the audit may have missed the best event. Run the same audit
on the mechanism with too little noise, where it must exceed eps.

References
----------
.. [1] M. Jagielski, J. Ullman, A. Oprea (2020). Auditing Differentially Private Machine Learning:
   How Private is Private SGD? NeurIPS. Algorithm 2, section 4.1.
.. [2] Z. Ding, Y. Wang, G. Wang, D. Zhang, D. Kifer (2018). Detecting Violations of Differential
   Privacy. CCS: the event is chosen on runs other than those that test it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta

LEVELS = (8, 64, 256)  # bins of a coordinate; rarer values share a bin with their neighbours
STEPS = np.linspace(0, 1, 513)  # events that are tried: quantiles of a score


def audited_eps(mechanism, runs, delta=0.0, confidence=0.9999):
    """Return a lower bound on the eps of a mechanism that is (eps, delta)-private.

    Parameters
    ----------
    mechanism : callable
        From a neighbour (0 or 1) and a number of runs to the outputs of as many runs: an array of
        shape (runs,), or (runs, k) for vectors. Runs are independent of each other.
    runs : int
        Runs for each of the two neighbours. Half of the runs chooses the event.
    delta : float, default=0.0
        The delta of the promise.
    confidence : float, default=0.9999
        The least probability that the returned bound is at most the mechanism's eps.

    Returns
    -------
    eps : float
        At least 0.
    """
    outputs = [_rows(mechanism(neighbour, runs), runs) for neighbour in (0, 1)]
    quarter, half = runs // 4, runs // 2
    parts = slice(quarter), slice(quarter, half), slice(half, runs)
    tail = (1 - confidence) / 2  # two bounds hold together with the stated confidence
    best, measured = -math.inf, -math.inf
    for scores in _scores(outputs, parts[0]):
        chosen, others = ([score[part] for score in scores] for part in parts[1:])
        for likely in (0, 1):
            steps = np.unique(np.quantile(chosen[likely], STEPS, method="nearest"))
            bounds = _bound(*_above(chosen, steps, likely), half - quarter, delta, tail)
            if bounds.max() > best:
                best, step = bounds.max(), steps[[bounds.argmax()]]
                (measured,) = _bound(*_above(others, step, likely), runs - half, delta, tail)
    return max(0.0, float(measured))


def _rows(outputs, runs):
    rows = np.asarray(outputs, dtype=float)
    assert rows.ndim in (1, 2) and len(rows) == runs, "one output per run"
    assert np.isfinite(rows).all(), "outputs are finite numbers"
    return rows.reshape(runs, -1)


def _scores(outputs, part):
    """Yield scores of the outputs, one array per neighbour; an event is a score above a step.

    A score is the log ratio of the neighbours' frequencies in the given part of the outputs, or a
    number that the mechanism returned, with either sign. Vectors of few values are counted whole;
    for other vectors, the log ratios of the coordinates are added as if they were independent.
    """
    runs, width = outputs[0].shape
    rows = np.concatenate(outputs)
    seen = np.concatenate([own[part] for own in outputs])
    if width > 1 and len(np.unique(seen, axis=0)) <= LEVELS[-1]:
        rows = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1, 1)
    ratios = [sum(_log_ratios(c, runs, part, levels) for c in rows.T) for levels in LEVELS]
    for score in [*ratios, *(rows.T if rows.shape[1] == 1 else ())]:
        yield score[:runs], score[runs:]
        yield -score[:runs], -score[runs:]


def _log_ratios(column, runs, part, levels):
    """Return the log ratio of the neighbours' frequencies in the bin of each output."""
    both = [column[:runs][part], column[runs:][part]]
    ranks = np.arange(1, levels) / levels
    edges = np.unique(np.quantile(np.concatenate(both), ranks, method="nearest"))
    bins = 2 * np.searchsorted(edges, column) + np.isin(column, edges)
    counts = [
        np.bincount(own[part], minlength=2 * len(edges) + 1) for own in (bins[:runs], bins[runs:])
    ]
    return np.log((counts[1] + 0.5) / (counts[0] + 0.5))[bins]


def _above(scores, steps, likely):
    """Return how often the likely neighbour's score, and the other's, reaches each step."""
    ordered = np.sort(scores[likely]), np.sort(scores[1 - likely])
    return tuple(len(one) - np.searchsorted(one, steps) for one in ordered)


def _bound(likely, unlikely, runs, delta, tail):
    """Return a lower bound of the log ratio of two probabilities, by Clopper and Pearson."""
    low = np.where(likely > 0, beta.ppf(tail, np.maximum(likely, 1), runs - likely + 1), 0.0)
    high = np.where(
        unlikely < runs, beta.ppf(1 - tail, unlikely + 1, np.maximum(runs - unlikely, 1)), 1.0
    )
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0) / high)
