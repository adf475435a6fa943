"""What nodes start from, and the statistics that a relay makes of the sums that it knows."""

from __future__ import annotations

import numpy as np

from vertibayes_protocols.calibration.choices import Start
from vertibayes_protocols.calibration.classifier import GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats

OWN = 0.9  # the part of the records in a start from data; the rest is uniform


def start_of(
    classifier: GenerativeClassifier,
    sums: Floats,
    scale: float,
    size: float,
    start: Start,
) -> Floats:
    """Return the statistics that nodes start from.

    All nodes of a mean have one `scale`. Divided by their own numbers of records, counts would have
    different denominators, and who knows these could separate the counts in a sum over nodes.
    """
    even = classifier.uniform(size)
    return even if start == "uniform" else OWN * scale * sums + (1 - OWN) * even


def contribution(sums: Floats, records: int) -> Floats:
    """Return what a node of a relay contributes first: s(X, Y), differences of 0, and records."""
    return np.concatenate([sums.ravel(), np.zeros(sums.size), [records]])


def of_contributions(
    classifier: GenerativeClassifier, total: Floats, rate: float, start: Start
) -> tuple[Floats, float]:
    """Return b = start + rate G / m of sums of contributions, and rate / m."""
    sums, differences = total[:-1].reshape(2, len(classifier.classes), classifier.width)
    scale = float(1 / max(total[-1], 1.0))
    first = start_of(classifier, sums, scale, 1.0, start)
    return first + rate * scale * differences, rate * scale
