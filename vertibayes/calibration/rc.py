"""Risk-based calibration (RC) of records in one place: the reference that networks are measured by.

    s <- s + rate (s(X, Y) - s(X, theta(s)))                              ([1]_, Algorithm 1)

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Algorithm 1, equation 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from vertibayes_protocols.calibration.checks import check_examples, check_statistics
from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Update, Wholes, statistics_of, update
from vertibayes_protocols.errors import DataError

BLOCK = 1 << 14  # records that are updated at once


class Calibrated(NamedTuple):
    """Calibrated statistics, and how the calibration went."""

    statistics: Floats  # those of the iterate with the lowest soft 0-1 loss, the first of several
    best: int  # the number of this iterate; 0 is the start
    soft: Floats  # the soft 0-1 loss of each iterate, summed over records
    errors: Wholes  # how many records each iterate classifies wrongly
    repairs: Wholes  # how many statistics of each iterate were not valid; see `Weights`
    last: Floats  # the statistics of the last iterate


def risk_based_calibration(
    classifier: GenerativeClassifier,
    examples: Examples,
    iterations: int,
    *,
    rate: float = 0.05,
    start: Floats | None = None,
) -> Calibrated:
    """Calibrate a classifier with all records ([1]_, Algorithm 1)."""
    check_schedule(rate, iterations, "iterations", least=0)
    check_examples("the records", classifier, examples)
    if not len(examples.classes):
        raise DataError("the records: RC needs at least one record of a known class, got 0")
    expected = (len(classifier.classes), classifier.width)
    if start is not None and start.shape != expected:
        raise ValueError(f"the start must have the shape {expected}, got {start.shape}")
    warn_of_one_class(classifier, [examples])
    blocks = _blocks(examples)
    current = statistics_of(classifier, examples) if start is None else start.astype(np.float64)
    best, least, trace = (0, current), np.inf, []
    for iteration in range(iterations + 1):
        check_statistics("the records", current, f"iteration {iteration}")
        step = _update(classifier, current, blocks)
        if step.soft < least:
            best, least = (iteration, current), float(step.soft)
        trace.append((step.soft, step.errors, step.repairs))
        last, current = current, current + rate * step.difference
    soft, errors, repairs = (np.array(values) for values in zip(*trace, strict=True))
    return Calibrated(best[1], best[0], soft, errors, repairs, last)


def check_schedule(rate: float, times: int, name: str, least: int = 1) -> None:
    """Refuse a learning rate or a number of steps that is out of range."""
    if not 0 < rate < np.inf:
        raise ValueError(f"the learning rate must be a positive number, got {rate}")
    if times < least:
        raise ValueError(f"{name} must be at least {least}, got {times}")


def warn_of_one_class(
    classifier: GenerativeClassifier, parts: Iterable[Examples], level: int = 3
) -> None:
    """Warn if all records have one class: there is nothing that a classifier could learn."""
    classes = np.unique(np.concatenate([part.classes for part in parts]))
    if len(classes) == 1:
        only = classifier.classes[classes[0]]
        warnings.warn(f"all records have the class {only!r}", stacklevel=level)


def _blocks(examples: Examples) -> list[Examples]:
    """Return the records in blocks, so that probabilities take little memory."""
    columns, classes = examples
    places = range(0, len(classes), BLOCK)
    return [Examples(columns[at : at + BLOCK], classes[at : at + BLOCK]) for at in places]


def _update(classifier: GenerativeClassifier, statistics: Floats, blocks: list[Examples]) -> Update:
    """Return the update of all blocks."""
    parts = [update(classifier, statistics, block) for block in blocks]
    difference, soft, errors, _ = (sum(values) for values in zip(*parts, strict=True))
    return Update(difference, soft, errors, parts[0].repairs)
