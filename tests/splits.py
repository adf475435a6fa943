"""Pooled data dealt to parties by records, for tests and benchmarks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vertibayes_protocols.site.data import SiteData


def split_rows(data, sites, shared, seed=0):
    """Deal columns to sites, and the rows of some columns to all sites."""
    generator = np.random.default_rng(seed)
    alone = generator.permutation([name for name in data.variables if name not in set(shared)])
    owner = {name: generator.integers(0, sites, data.records) for name in shared}
    owner |= {str(name): np.full(data.records, k % sites) for k, name in enumerate(alone)}
    parts = {}
    for site in range(sites):
        held = [n for n in data.variables if n in shared or (owner[n] == site).any()]
        parts[f"site-{site + 1}"] = _rows_of(data, {n: owner[n] == site for n in held})
    return parts


def _rows_of(data, held):
    """Return columns of which a site holds some values; the others are missing."""
    variables, codes = {}, {}
    for name, here in held.items():
        variable, states = data.variables[name], len(data.variables[name].states)
        column = data.codes[name].astype(np.min_scalar_type(states))
        codes[name] = np.where(here, column, states).astype(column.dtype)
        variables[name] = variable if here.all() else replace(variable, missing=True)
    return SiteData(variables, codes)


def deal_records(data, sizes, generator):
    """Deal records to nodes of these sizes at random."""
    ends = np.cumsum(sizes)
    assert ends[-1] == data.records
    return [data.rows(places) for places in np.split(generator.permutation(ends[-1]), ends[:-1])]
