"""What a node refuses: choices, records and statistics that it cannot calibrate with."""

from __future__ import annotations

from typing import get_args

import numpy as np

from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.classifier import Examples, GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.errors import DataError

SMALL = "specify a larger size, or a lower rate"  # the advice where statistics are averaged
GROWTH = 1e3  # of a statistic, in units of the largest sum over the classes


def check_choices(mixing: str, start: str) -> None:
    """Refuse ways that do not exist."""
    for name, value, choices in (
        ("mixing", mixing, get_args(Mixing)),
        ("start", start, get_args(Start)),
    ):
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_examples(node: str, classifier: GenerativeClassifier, examples: Examples) -> None:
    """Refuse records that do not fit the classifier, or are not finite."""
    columns, classes = examples
    if columns.ndim != 2 or columns.shape != (len(classes), classifier.width):
        raise DataError(
            f"{node}: examples of shape {columns.shape} with {len(classes)} classes; expected"
            f" {classifier.width} columns and one class per record"
        )
    bad = np.flatnonzero(~np.isfinite(columns).all(axis=1))
    if len(bad):
        raise DataError(f"{node}: record {bad[0]} has a value that is not finite")
    if len(classes) and not 0 <= classes.min() <= classes.max() < len(classifier.classes):
        raise DataError(f"{node}: classes must be between 0 and {len(classifier.classes) - 1}")


def growth(statistics: Floats) -> Floats:
    """Return how large statistics are, in units of their largest sum over the classes.

    Updates keep the sums over the classes, so that valid statistics have a growth of at most 1:
    a larger one shows that some are negative. Under a learning rate that is too high it has no
    bound.
    """
    with np.errstate(all="ignore"):
        sums = np.abs(statistics.sum(axis=-2)).max(axis=-1)
        ratio = np.abs(statistics).max(axis=(-2, -1)) / np.maximum(sums, np.finfo(float).tiny)
    return np.where(np.isfinite(ratio), ratio, np.inf)


def check_statistics(
    node: str, statistics: Floats, moment: str, advice: str = "specify a lower rate"
) -> None:
    """Refuse statistics that a learning rate has driven out of bounds."""
    times = float(growth(statistics))
    if times > GROWTH:
        raise ValueError(
            f"{node}: the statistics diverge in {moment}: they are {times:.3g} times as large as"
            f" their sums over the classes, and at most {GROWTH:g} times is expected; {advice}"
        )
