"""What nodes start from, and the statistics that a relay makes of the sums that it knows.

The leading axes of all arrays are nodes: a party has none, a simulation has one.
"""

from __future__ import annotations

import numpy as np

from vertibayes_protocols.calibration.choices import Start
from vertibayes_protocols.calibration.classifier import GenerativeClassifier
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.calibration.local import Wholes

OWN = 0.9  # the part of the records in a start from data; the rest is uniform


def start_of(
    classifier: GenerativeClassifier,
    sums: Floats,
    scale: Floats | float,
    size: float,
    start: Start,
) -> Floats:
    """Return the statistics that nodes start from.

    All nodes of a mean have one `scale`. Divided by their own numbers of records, counts would have
    different denominators, and who knows these could separate the counts in a sum over nodes.
    """
    even = np.broadcast_to(classifier.uniform(size), sums.shape)
    if start == "uniform":
        return even.copy()
    return np.asarray(OWN * scale * sums + (1 - OWN) * even)


def contribution(sums: Floats, records: Floats | Wholes) -> Floats:
    """Return what nodes of a relay contribute at first: s(X, Y), differences of 0, and records."""
    flat = sums.reshape(*sums.shape[:-2], -1)
    return np.concatenate([flat, np.zeros_like(flat), records[..., None]], axis=-1)


def of_contributions(
    classifier: GenerativeClassifier, total: Floats, rate: float, start: Start
) -> tuple[Floats, Floats]:
    """Return b = start + rate G / m of sums of contributions, and rate / m."""
    shape = *total.shape[:-1], 2, len(classifier.classes), classifier.width
    sums, differences = np.moveaxis(total[..., :-1].reshape(shape), -3, 0)
    scale = 1 / np.maximum(total[..., -1], 1.0)[..., None, None]
    first = start_of(classifier, sums, scale, 1.0, start)
    return first + rate * scale * differences, rate * scale
