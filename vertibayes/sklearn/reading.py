"""Records and classes as scikit-learn hands them over: checked, as data frames and as states."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from vertibayes.network import Network
from vertibayes.records import Records
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoded import Nearest, Unseen, encode_known
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Advice
from vertibayes_protocols.site.frame import columns_of
from vertibayes_protocols.variables import Variable

EXACT_DIGITS = 15  # decimals of so few digits are floating-point numbers and back, unchanged
LARGEST_WHOLE = 2**53  # larger whole numbers are not exact as floating-point numbers
IN_PYTHON = Advice(
    exclude="drop {names}",
    categorical="astype('category') for {names}",
    ignore_case="str.lower() for {names}",
    more_states="max_states={count}",
    cut="pandas.cut for {names}",
    edges="pandas.cut",
    identifies="use {names} as the index",
    missing="replace {code} by None",
    for_shell=False,
)


def read_frame(
    estimator: BaseEstimator,
    X: Any,  # noqa: N803
    names: Sequence[Hashable] | None = None,
    *,
    texts: bool = False,
) -> pd.DataFrame:
    """Return records as a data frame."""
    if are_sites(X):
        raise TypeError(
            "X must be one data frame with all columns, got a mapping; join the data frames first, "
            "as with pandas.concat"
        )
    reset = names is None
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not len(X):
            raise ValueError("X must have one record or more, got 0")
        frame: pd.DataFrame = X
    else:
        array = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=None if texts else "numeric",
            ensure_all_finite="allow-nan",
        )
        own = [f"x{place}" for place in range(array.shape[1])]
        frame = pd.DataFrame(array, columns=own if names is None else list(names))
    if not get_tags(estimator).input_tags.allow_nan and (absent := frame.isna().any()).any():
        name = absent.idxmax()
        raise ValueError(
            f"X contains NaN: {name} has missing values; set missing=True, or drop them"
        )
    return frame


def read_classes(frame: pd.DataFrame, y: Any) -> NDArray[Any]:
    """Return classes, one for each record."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if pd.isna(y).any():
        raise ValueError("y contains NaN: each record must have a class")
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    check_consistent_length(frame, y)
    return np.asarray(y)


def distinct_classes(y: NDArray[Any], declared: Sequence[Any] | None) -> NDArray[Any]:
    """Return the classes, sorted: those of `y` unless they are declared."""
    classes = np.unique(y if declared is None else np.asarray(declared))
    if len(classes) < 2:
        raise ValueError(
            f"y of one class cannot be learned: got the classes {classes.tolist()}; expected at "
            "least two"
        )
    return classes


def side_by_side(sites: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the columns of sites that hold the same people, site after site."""
    (first, own), *others = sites.items()
    for site, frame in others:
        if not frame.index.equals(own.index):
            raise ValueError(
                f"the data frames of {first} and {site} have different indices: each row must be "
                "the same person at all sites; sort both by an identifier, and set it as the index"
            )
    joined = pd.concat(list(sites.values()), axis=1)
    if twice := joined.columns[joined.columns.duplicated()].tolist():
        raise ValueError(f"two sites have a column named {twice[0]!r}: rename one of them")
    return joined


def are_sites(records: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether records come by site; some sparse matrices are mappings too."""
    return isinstance(records, Mapping) and not issparse(records)


def check_sites(sites: Mapping[str, Any]) -> None:
    """Refuse a mapping that is not one of names of sites to data frames."""
    wrong = [site for site, frame in sites.items() if not isinstance(frame, pd.DataFrame)]
    if wrong or not sites:
        given = f"{wrong[0]!r}: {type(sites[wrong[0]]).__name__}" if wrong else "no site"
        raise TypeError(f"X as a mapping must have a data frame for each site, got {given}")


def class_column(joined: pd.DataFrame, y: Any) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the features and the class of joined columns."""
    if not isinstance(y, str) or y not in joined.columns:
        known = ", ".join(map(str, joined.columns))
        given = repr(y) if isinstance(y, str) else f"a value of type {type(y).__name__}"
        raise ValueError(
            f"y must be the name of the column of the class, got {given}; the columns are {known}"
        )
    return joined.drop(columns=y), joined[y]


# ---- columns as states: numbers are binned in `fit`, and meet the same bins later ----------------


def encoded(
    sites: Mapping[str, pd.DataFrame], encoding: Encoding
) -> tuple[dict[str, SiteData], dict[str, str]]:
    """Return the data of each site, and why columns are left out."""
    how = replace(encoding, advice=IN_PYTHON)
    data = {
        site: SiteData.from_frame(frame, how, site=site, strict=False)
        for site, frame in sites.items()
    }
    reports = [each.report for each in data.values()]
    return data, {name: report.reason(name) for report in reports for name in report.left_out}


def with_class(
    frame: pd.DataFrame, name: str, y: NDArray[Any], classes: NDArray[Any]
) -> pd.DataFrame:
    """Return records with their class as a column of declared states."""
    texts = [str(label) for label in classes]
    if len(set(texts)) < len(texts) or not all(map(str.strip, texts)):
        raise ValueError(f"the classes must be different texts, got {', '.join(map(repr, texts))}")
    codes: NDArray[Any] = pd.Index(classes, tupleize_cols=False).get_indexer(pd.Index(y))
    if (codes < 0).any():
        unknown = np.asarray(y)[codes < 0][0]
        raise ValueError(
            f"y has the class {unknown!r}, which is not one of the declared classes, "
            f"{', '.join(texts)}"
        )
    column = pd.Categorical.from_codes(codes, categories=pd.Index(texts))
    return frame.assign(**{name: column})


def known_states(frame: pd.DataFrame, network: Network, target: str) -> SiteData:
    """Return records in the states of a network; warn of values without one: missing."""
    states = {
        name: variable.states[: -1 if name in network.missing_states else None]
        for name, variable in network.variables.items()
    }
    codes: dict[str, NDArray[np.unsignedinteger]] = {}
    unseen: list[Unseen | Nearest] = []
    for place, name in enumerate(map(str, frame.columns)):
        if name in states and name != target:
            column = frame.iloc[:, place]
            fast = _codes_of_numbers(column, states[name])
            if fast is None:  # as files are read
                texts = columns_of("X", column.to_frame(name)).columns[name]
                how = Encoding(states={name: states[name]})
                fast = encode_known("X", name, texts, how, unseen).codes
            codes[name] = fast
    codes[target] = np.full(len(frame), len(states[target]), np.uint16)
    data = SiteData({name: Variable(name, states[name], missing=True) for name in codes}, codes)
    missing = tuple(value for value in unseen if isinstance(value, Unseen))
    nearest = tuple(value for value in unseen if isinstance(value, Nearest))
    for told in Records(data, (), (), missing, nearest=nearest).warnings_of_values("X"):
        warnings.warn(told, stacklevel=3)
    return data


def _codes_of_numbers(
    column: pd.Series[Any], states: Sequence[str]
) -> NDArray[np.unsignedinteger] | None:
    """Return the bins of a column of numbers; None if only the texts of its values say them.

    It compares floating-point numbers where the texts would be compared as decimals. The result is
    the same if all edges have so few digits that they are the texts of their floating-point
    numbers.
    """
    bins = bins_of(states)
    if bins is None or not (column.dtype == np.float64 or column.dtype.kind in "iu"):
        return None
    numbers = column.to_numpy(np.float64, na_value=np.nan)
    edges = [edge for one in bins for edge in (one.low, one.high) if edge is not None]
    if (np.abs(numbers) >= LARGEST_WHOLE).any() or not all(
        len(edge.as_tuple().digits) <= EXACT_DIGITS and Decimal(repr(float(edge))) == edge
        for edge in edges
    ):
        return None
    dtype = np.uint8 if len(states) < 256 else np.uint16
    codes: NDArray[Any] = np.full(len(numbers), len(states), dtype)
    for place, one in sorted(enumerate(bins), key=lambda numbered: numbered[1].single):
        low = -np.inf if one.low is None else float(one.low)
        high = np.inf if one.high is None else float(one.high)
        codes[(numbers == low) if one.single else (low < numbers) & (numbers <= high)] = place
    unknown = (codes == len(states)) & ~np.isnan(numbers)
    return None if unknown.any() else codes
