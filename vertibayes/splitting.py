"""Split pooled data into columns or records at several sites: for experiments and tests.

References
----------
.. [1] L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic
   Decentralized Naive Bayes with Differential Privacy. Section 4.2.
.. [2] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Section IV-C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from vertibayes.settings import Drift
from vertibayes_protocols.calibration.factors import Categorical
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData

if TYPE_CHECKING:
    from pandas import DataFrame

DISTRIBUTIONS = ("equal", "uniform", "exponential", "log-uniform")  # of the sizes of nodes


def deal_columns(names: Sequence[str], sites: int, seed: int = 0) -> dict[str, list[str]]:
    """Deal columns to sites at random; the numbers of columns differ by at most one.

    Examples
    --------
    >>> deal_columns(["age", "smoker", "cancer"], sites=2)
    {'site-1': ['smoker', 'cancer'], 'site-2': ['age']}
    """
    if sites > 1 == len(names):
        raise ValueError(
            f"--sites {sites}: the data have one column, {names[0]!r}; if they have more, "
            "--separator says what is between them"
        )
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

    Returns
    -------
    sites : dict of str to SiteData
        The columns of each site, by its name.

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
    """Return how many records each node has, which add up to `records` ([1]_, section 4.2)."""
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
    """Return numbers whose logarithm is uniform: sizes or budgets of any order of magnitude."""
    if not 0 < low <= high:
        raise ValueError(f"low must be above 0 and at most high, got {low} and {high}")
    return np.exp(generator.uniform(np.log(low), np.log(high), count))


def drift_parts(
    data: LocalData,
    sizes: NDArray[np.int64],
    drift: str,
    generator: np.random.Generator,
    *,
    target: str,
) -> list[NDArray[np.int64]]:
    """Return the places of the records of each node, where nodes may have other distributions.

    Records are sorted, and each node takes the next ones: neighbours of a chain are alike.
    """
    if drift not in get_args(Drift):
        raise ValueError(f"drift must be one of {', '.join(get_args(Drift))}, got {drift!r}")
    if target not in data.codes:
        raise ValueError(f"the class {target!r} is not a categorical column of the data")
    keys: list[NDArray[Any]] = [generator.permutation(data.records)]  # the last key counts most
    if "x" in drift:
        keys.append(_component(data, target))
    if "y" in drift:
        keys.append(data.codes[target])
    return _cut(np.lexsort(keys), sizes)


def _cut(order: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    if (sizes < 0).any():
        raise ValueError(f"sizes must not be negative, got {sizes.min()}")
    if sizes.sum() != len(order):
        raise ValueError(f"sizes must add up to the {len(order)} records, got {sizes.sum()}")
    return np.split(order, np.cumsum(sizes)[:-1])


def _component(data: LocalData, target: str) -> NDArray[np.float64]:
    """Return the first principal component of the features of each record."""
    columns = [
        Categorical(variable).columns(data)
        for name, variable in data.variables.items()
        if name != target
    ]
    for name, numeric in data.numerics.items():
        within = np.clip(data.numbers[name], numeric.low, numeric.high)
        columns.append(_standardized(within)[:, None])
    features = np.concatenate([np.zeros((data.records, 1)), *columns], axis=1)
    features -= features.sum(axis=0) / max(data.records, 1)
    _, directions = np.linalg.eigh(features.T @ features)
    first = directions[:, -1]  # of the largest variance; its sign is arbitrary
    first *= np.sign(first[np.abs(first).argmax()])
    scores = np.round(features @ first, 9)  # equal records are equal in spite of rounding
    return np.asarray(scores, np.float64)


def _standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers with mean 0 and variance 1: zeros where missing, or if all are equal."""
    known = ~np.isnan(values)
    low, high = values[known].min(initial=np.inf), values[known].max(initial=-np.inf)
    if low >= high:
        return np.zeros(len(values))
    scaled = np.where(known, values, 0.0) / max(-low, high)  # so that squares do not overflow
    centred = np.where(known, scaled - scaled[known].mean(), 0.0)
    return np.asarray(centred / centred[known].std())
