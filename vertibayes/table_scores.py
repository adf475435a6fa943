"""Scores of families, in nats, from contingency tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
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
    totals = [table.sum(axis=0) for table in flat]
    cells = _each(lambda counts: gammaln(counts + 1.0), [table.ravel() for table in flat])
    states = np.repeat([float(len(table)) for table in flat], [len(total) for total in totals])
    each = (gammaln(states) - gammaln(np.concatenate(totals) + states)).tolist()
    configurations = _parts(each, [len(total) for total in totals])
    return [fsum([*cell, *of]) for cell, of in zip(cells, configurations, strict=True)]


def _each(
    function: Callable[[NDArray[np.int64]], NDArray[np.float64]], counts: Sequence[Table]
) -> Iterator[list[float]]:
    """Yield a function of the counts of each table, without those where it is 0: of 0 and 1.

    Most cells of wide tables are 0.
    """
    some = [count[(count != 0) & (count != 1)] for count in counts]
    return _parts(function(np.concatenate(some)).tolist(), list(map(len, some)))


def _parts(values: list[float], lengths: Sequence[int]) -> Iterator[list[float]]:
    return (values[start:end] for start, end in pairwise(accumulate(lengths, initial=0)))


def log_likelihoods(tables: Sequence[Table]) -> list[float]:
    """Return, for each table, the largest log-likelihood of its child given its parents, in nats.

    Examples
    --------
    >>> log_likelihoods([np.array([[2], [2]])])  # 4 ln 1/2
    [-2.772588722239781]
    """
    if not tables:
        return []
    from scipy.special import xlogy  # sites choose without it

    flat = [table.reshape(table.shape[0], -1) for table in tables]
    cells, columns = (
        map(fsum, _each(lambda counts: xlogy(counts, counts), counts))
        for counts in ([table.ravel() for table in flat], [table.sum(axis=0) for table in flat])
    )
    return [cell - column for cell, column in zip(cells, columns, strict=True)]


def free_parameters(shape: Sequence[int]) -> int:
    """Return the number of free parameters of a family's CPT."""
    return (shape[0] - 1) * int(np.prod(shape[1:], dtype=np.int64))


def nats_per_parameter(records: int) -> float:
    """Return what BIC subtracts for each free parameter: ln(n) / 2; 0 without records."""
    return log(max(records, 1)) / 2
