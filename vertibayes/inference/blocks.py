"""Many records in batches, each small enough to be propagated within a bound of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.algebra import Array
from vertibayes.inference.junction_tree import JunctionTree
from vertibayes.inference.propagation import Batch
from vertibayes.network import Network

MOST_NUMBERS = 1 << 23  # of a batch: 64 MiB, held some three times over


def batches(
    tree: JunctionTree,
    states: Mapping[str, int],
    codes: Mapping[str, NDArray[np.integer]],
    most_numbers: int = MOST_NUMBERS,
) -> list[Batch]:
    """Put records into as few batches as their distributions have room for.

    Records with the same case are computed once a batch: halves are tried until each fits.

    Parameters
    ----------
    tree : JunctionTree
    states : mapping of str to int
        The number of states of each variable.
    codes : mapping of str to ndarray of shape (n,), dtype int
        As of `Batch`.
    most_numbers : int
        Of a batch; a single record is not divided.

    Returns
    -------
    batches : list of Batch
        Of the records in their order.

    Raises
    ------
    ValueError, TypeError
        As `Batch`.
    """
    whole = Batch(tree, states, codes)
    if whole.numbers <= most_numbers or whole.records == 1:
        return [whole]
    half = whole.records // 2
    parts = [{n: column[rows] for n, column in codes.items()} for rows in _halves(half)]
    return [batch for part in parts for batch in batches(tree, states, part, most_numbers)]


def _halves(half: int) -> tuple[slice, slice]:
    return slice(None, half), slice(half, None)


def expectation(records: Sequence[Batch], network: Network) -> tuple[float, list[Array]]:
    """Return what EM's first step gives, over all batches.

    Returns
    -------
    log_likelihood : float
        Of all records, in nats.
    counts : list of ndarray
        The expected counts of each family, in the order of the structure's nodes; axis 0 the node.
    """
    families = network.structure.families
    total, counts = 0.0, [np.zeros(network.cpts[family.child].shape) for family in families]
    for batch in records:
        beliefs = batch.propagate(network)
        total += beliefs.log_likelihood
        for count, family in zip(counts, families, strict=True):
            count += beliefs.expected_counts(family.members)
    return total, counts
