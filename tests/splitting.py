"""Splits of pooled data over sites."""

from __future__ import annotations

import numpy as np

from protocols.site.data import SiteData


def take(data, names):
    """Return some columns of data."""
    codes = {name: data.codes[name] for name in names}
    return SiteData({name: data.variables[name] for name in names}, codes, data.ids)


def split(data, sites, seed=0):
    """Deal the columns of data to sites at random."""
    names = np.random.default_rng(seed).permutation(list(data.variables)).tolist()
    return {f"site-{k}": take(data, names[k::sites]) for k in range(sites)}
