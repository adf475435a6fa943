"""Pooled data as if its columns lay at several sites: for trying, testing and measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from protocols.site.data import SiteData

if TYPE_CHECKING:
    from pandas import DataFrame


def deal_columns(names: Sequence[str], sites: int, seed: int = 0) -> dict[str, list[str]]:
    """Deal columns to sites at random, each site as many as another or one more.

    Parameters
    ----------
    names : sequence of str
    sites : int
    seed : int, default=0
        Equal seeds give equal splits.

    Returns
    -------
    parts : dict of str to list of str
        ``site-1`` and so on, each with its columns in the order of `names`.

    Raises
    ------
    ValueError
        If there are more sites than columns, or none, or the seed is negative.
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
    """Deal the columns of pooled data to sites; see `deal_columns` and `SiteData.from_frame`."""
    pooled = data if isinstance(data, SiteData) else SiteData.from_frame(data)
    parts = deal_columns(list(pooled.variables), sites, seed)
    return {site: pooled.take(names) for site, names in parts.items()}
