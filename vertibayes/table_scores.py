"""Scores of families, in nats, from contingency tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, log

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]


def k2_scores(tables: Sequence[Table]) -> list[float]:
    """Return the K2 score of each table.

    The score is the sum over the joint states j of the parents of
    ln G(r) - ln G(N_j + r) + sum_k ln G(a_jk + 1), where r is the number of states of the child
    (Cooper and Herskovits 1992, eq. 8). Joint states that no record has add zero.

    Examples
    --------
    >>> k2_scores([np.array([[2], [1]])])  # ln 1! - ln 4! + ln 2! + ln 1!
    [-2.4849066497880004]
    """
    if not tables:
        return []
    from scipy.special import gammaln  # sites choose without it

    flat = [table.reshape(table.shape[0], -1) for table in tables]
    states = [table.shape[0] for table in flat]
    cells = gammaln(np.concatenate([table.ravel() for table in flat]) + 1.0)
    totals = np.concatenate([table.sum(axis=0) for table in flat])
    r = np.repeat(np.array(states, float), [table.shape[1] for table in flat])
    configurations = gammaln(r) - gammaln(totals + r)
    cell_ends = np.cumsum([table.size for table in flat])[:-1]
    ends = np.cumsum([table.shape[1] for table in flat])[:-1]
    parts = zip(np.split(cells, cell_ends), np.split(configurations, ends), strict=True)
    return [fsum([*cell.tolist(), *config.tolist()]) for cell, config in parts]


def log_likelihoods(tables: Sequence[Table]) -> list[float]:
    """Return, for each table, the largest log-likelihood of its child given its parents, in nats.

    Examples
    --------
    >>> log_likelihoods([np.array([[2], [2]])])  # 4 ln 1/2
    [-2.772588722239781]
    """
    from scipy.special import xlogy  # sites choose without it

    likelihoods = []
    for table in tables:
        flat = table.reshape(table.shape[0], -1).astype(float)
        totals = flat.sum(axis=0)
        cells, columns = (fsum(xlogy(n, n).ravel().tolist()) for n in (flat, totals))
        likelihoods.append(cells - columns)
    return likelihoods


def free_parameters(shape: Sequence[int]) -> int:
    """Return the number of free parameters of a family's CPT."""
    return (shape[0] - 1) * int(np.prod(shape[1:], dtype=np.int64))


def nats_per_parameter(records: int) -> float:
    """Return what BIC subtracts for each free parameter: ln(n) / 2; 0 without records."""
    return log(max(records, 1)) / 2
