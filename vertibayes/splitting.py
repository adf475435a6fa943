"""Split pooled data into columns or records at several sites: for experiments and tests.

References
----------
.. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from protocols.site.statistics import LocalData

if TYPE_CHECKING:
    from pandas import DataFrame

DISTRIBUTIONS = ("equal", "uniform", "exponential", "log-uniform")  # of the sizes of nodes


def deal_columns(names: Sequence[str], sites: int, seed: int = 0) -> dict[str, list[str]]:
    """Deal columns to sites at random; the numbers of columns differ by at most one.

    Parameters
    ----------
    names, sites : sequence of str, int
        The names of the columns, and the number of sites.
    seed : int, default=0
        The seed; equal seeds give equal splits.

    Returns
    -------
    parts : dict of str to list of str
        The columns of ``site-1``, ``site-2`` and so on, in the order of `names`.

    Raises
    ------
    ValueError
        If there are more sites than columns, no sites, or the seed is negative.

    Examples
    --------
    >>> deal_columns(["age", "smoker", "cancer"], sites=2)
    {'site-1': ['smoker', 'cancer'], 'site-2': ['age']}
    """
    if not 1 <= sites <= len(names):
        raise ValueError(
            f"--sites must be between 1 and {len(names)} (the number of columns), got {sites}"
        )
    if seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")
    order = np.random.default_rng(seed).permutation(len(names))
    return {
        f"site-{k + 1}": [names[i] for i in sorted(order[k::sites].tolist())] for k in range(sites)
    }


def split_columns(data: SiteData | DataFrame, sites: int, seed: int = 0) -> dict[str, SiteData]:
    """Deal the columns of pooled data to sites.

    Parameters
    ----------
    data : SiteData or DataFrame
        The pooled data; a data frame is encoded by `SiteData.from_frame`.
    sites, seed
        As `deal_columns`.

    Raises
    ------
    ValueError
        As `deal_columns`, or if a column stays a number: tables over columns need its states.
    """
    pooled = data if isinstance(data, SiteData) else SiteData.from_frame(data)
    if pooled.numerics:
        raise ValueError(
            f"{', '.join(pooled.numerics)}: tables over columns have no numbers; omit the bounds"
        )
    parts = deal_columns(list(pooled.variables), sites, seed)
    return {site: pooled.take(names) for site, names in parts.items()}


def node_sizes(
    distribution: str, nodes: int, records: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return how many records each node has, which add up to `records` ([1]_, section 4.2).

    Parameters
    ----------
    distribution : {"equal", "uniform", "exponential", "log-uniform"}
        Sizes are proportional to 1, U(1, 10), Exp(2), or e^U(ln 2, ln(records / 5)).
    nodes, records : int
        How many nodes there are, and how many records they hold together.
    generator : numpy.random.Generator
        Draws the weights.

    Raises
    ------
    ValueError
        If the distribution is unknown, or there are no nodes or too few records.
    """
    if nodes < 1 or records < 10:
        raise ValueError(
            f"nodes must be at least 1 and records at least 10, got {nodes}, {records}"
        )
    if distribution not in DISTRIBUTIONS:
        known = ", ".join(DISTRIBUTIONS)
        raise ValueError(f"distribution must be one of {known}, got {distribution!r}")
    if distribution == "uniform":
        weights = generator.uniform(1, 10, nodes)
    elif distribution == "exponential":
        weights = generator.exponential(2, nodes)
    elif distribution == "log-uniform":
        weights = log_uniform(2, records / 5, nodes, generator)
    else:
        weights = np.ones(nodes)
    shares = np.cumsum(weights)
    ends = np.rint(shares / shares[-1] * records).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))


def log_uniform(
    low: float, high: float, count: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return numbers whose logarithm is uniform: sizes or budgets of any order of magnitude.

    Raises
    ------
    ValueError
        If `low` is not above 0, or above `high`.
    """
    if not 0 < low <= high:
        raise ValueError(f"low must be above 0 and at most high, got {low} and {high}")
    return np.exp(generator.uniform(np.log(low), np.log(high), count))


def deal_records(
    data: LocalData, sizes: NDArray[np.int64], generator: np.random.Generator
) -> list[LocalData]:
    """Deal records to nodes of these sizes at random.

    Parameters
    ----------
    data : LocalData
        All records.
    sizes : ndarray of shape (nodes,), dtype int64
        How many records each node gets; see `node_sizes`.
    generator : numpy.random.Generator
        Draws who gets which records.

    Raises
    ------
    ValueError
        If a size is negative, or the sizes do not add up to the number of records.
    """
    if (sizes < 0).any() or sizes.sum() != data.records:
        raise ValueError(f"sizes must add up to the {data.records} records, got {sizes.sum()}")
    places = generator.permutation(data.records)
    return [data.rows(rows) for rows in np.split(places, np.cumsum(sizes)[:-1])]
