"""Split pooled data into columns at several sites, for experiments, tests and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from protocols.site.data import SiteData

if TYPE_CHECKING:
    from pandas import DataFrame


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
