"""Records and classes as scikit-learn hands them over: checked, and records as a data frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data


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
