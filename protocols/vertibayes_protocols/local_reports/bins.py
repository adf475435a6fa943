"""Bins of equal width over declared bounds: numbers become codes, the same way for all people.

The edges follow from the bounds alone, so that they say nothing about any record.

References
----------
.. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
   Classification. Section 3.2: equal-width discretization.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.binning import bin_names, bins_at
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable


def binned_schema(schema: Schema, bins: int, *, missing: bool = False) -> Schema:
    """Return a schema in which each number is a variable of as many states as there are bins.

    Examples
    --------
    >>> schema = Schema(Variable("ill", ("no", "yes")), {"age": Numeric("age", 0, 100)})
    >>> binned_schema(schema, 4).features["age"].states
    ('le_25', 'from_25_to_50', 'from_50_to_75', 'gt_75')
    """
    features = {
        name: _variable(feature, bins, missing) if isinstance(feature, Numeric) else feature
        for name, feature in schema.features.items()
    }
    return replace(schema, features=features)


def binned_data(schema: Schema, data: LocalData) -> LocalData:
    """Return records whose numbers are replaced by codes of a schema of `binned_schema`.

    A number at an edge is in the bin below the edge; a number beyond a bound is in the outer bin.
    """
    codes = {
        name: _codes(schema.variables[name], numeric, data.numbers[name])
        for name, numeric in data.numerics.items()
        if name in schema.variables
    }
    added = {name: schema.variables[name] for name in codes}
    return LocalData({**data.variables, **added}, {**data.codes, **codes})


def _edges(numeric: Numeric, bins: int) -> NDArray[np.float64]:
    return np.linspace(numeric.low, numeric.high, bins + 1)[1:-1]


def _variable(numeric: Numeric, bins: int, missing: bool) -> Variable:
    edges = _edges(numeric, bins)
    if (np.diff([numeric.low, *edges, numeric.high]) <= 0).any():
        raise ValueError(f"{numeric.name}: bounds are too close for {bins} bins")
    names = bin_names(bins_at([Decimal(str(float(edge))) for edge in edges]))
    return Variable(numeric.name, names, missing)


def _codes(variable: Variable, numeric: Numeric, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    bins = len(variable.states)
    places = np.searchsorted(_edges(numeric, bins), numbers)
    return np.where(np.isnan(numbers), bins, places).astype(np.int64)
