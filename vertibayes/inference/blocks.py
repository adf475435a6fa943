"""Divide many records into batches that can be propagated within bounded memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import Array
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import Batch
from vertibayes.model import Model

MOST_NUMBERS = 1 << 23  # per batch: 64 MiB, of which about three copies exist at a time


def batches(
    tree: JunctionTree,
    states: Mapping[str, int],
    codes: Mapping[str, NDArray[np.integer]],
    most_numbers: int = MOST_NUMBERS,
) -> list[Batch]:
    """Divide records into few batches of bounded size.

    Records with the same case are computed once per batch. The records are halved until each batch
    is small enough; a single record is not divided.
    """
    whole = Batch(tree, states, codes)
    if whole.numbers <= most_numbers or whole.records == 1:
        return [whole]
    half = whole.records // 2
    halves = slice(half), slice(half, None)
    parts = [{n: column[rows] for n, column in codes.items()} for rows in halves]
    return [batch for part in parts for batch in batches(tree, states, part, most_numbers)]


def expectation(records: Sequence[Batch], network: Model) -> tuple[float, list[Array]]:
    """Return the result of the E step of EM over all batches."""
    families = network.structure.families
    total, counts = 0.0, [np.zeros(network.cpts[family.child].shape) for family in families]
    for batch in records:
        beliefs = batch.propagate(network)
        total += beliefs.log_likelihood
        for count, family in zip(counts, families, strict=True):
            count += beliefs.expected_counts(family.members)
    return total, counts
