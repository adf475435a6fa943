"""What the estimators have in common: reading records, prediction, scikit-learn's attributes.

The parameters are fields of data classes, so that estimators inherit them: `__init__` then has each
of them by name, as scikit-learn expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import (
    assert_all_finite,
    check_consistent_length,
    check_scalar,
    column_or_1d,
    get_tags,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vertibayes.naive_bayes.base import Floats, NaiveBayes
from vertibayes.sklearn.columns import Bounds, Categories, Columns
from vertibayes_protocols.site.statistics import LocalData

MOST = 1e6  # of epsilon: more protects nothing, and no such noise is drawn


@dataclass(eq=False, repr=False)
class PrivateNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all estimators here have in common: columns, prediction, scikit-learn's attributes."""

    epsilon: float | None = 1.0
    _: KW_ONLY
    bounds: Bounds = None
    categories: Categories = None
    classes: Sequence[Any] | None = None
    alpha: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        if self.epsilon is not None:  # noise comes from the operating system
            tags.non_deterministic = tags.classifier_tags.poor_score = True
        return tags

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return ``log P(y | x)``: shape (n, n_classes), in nats; missing values are left out.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            Records with the columns of `fit`.

        Raises
        ------
        ValueError
            If the columns are others, or a category was never declared.
        """
        check_is_fitted(self, "model_")
        data = self._prepared(self.columns_.records(_frame(self, X, reset=False)))
        model: NaiveBayes = self.model_
        with np.errstate(over="ignore"):  # a number far beyond the bounds has the density 0
            return model.predict_log_proba(data)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return ``P(y | x)``: shape (n, n_classes); as `predict_log_proba`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable classes: shape (n,); as `predict_log_proba`."""
        places = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])

    def _prepared(self, data: LocalData) -> LocalData:
        """Return records as the model needs them."""
        return data

    def _read(self, X: Any, y: Any, classes: Any, *, missing: bool = False) -> LocalData:  # noqa: N803
        """Learn what the columns and the classes are, and return the records."""
        if self.epsilon is not None:
            check_scalar(
                self.epsilon, "epsilon", Real, min_val=0, max_val=MOST, include_boundaries="right"
            )
        frame = _frame(self, X, reset=True)
        y = _checked(frame, y)
        self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        if len(self.classes_) < 2:
            raise ValueError(
                f"y of one class cannot be learned: got the classes {self.classes_.tolist()}; "
                "expected at least two"
            )
        self.columns_ = Columns.of(
            frame,
            self.classes_.tolist(),
            bounds=self.bounds,
            categories=self.categories,
            private=self.epsilon is not None,
            missing=missing,
        )
        by_dtype = ", ".join(self.columns_.by_dtype)
        self._shown = (
            *(["which classes there are"] if classes is None else []),
            *([f"which values the dtypes of {by_dtype} list"] if by_dtype else []),
        )
        return self.columns_.records(frame, y)

    def _more(self, X: Any, y: Any) -> LocalData:  # noqa: N803
        """Return further records with the columns that are known."""
        frame = _frame(self, X, reset=False)
        return self.columns_.records(frame, _checked(frame, y))


def _frame(estimator: PrivateNaiveBayes, X: Any, *, reset: bool) -> pd.DataFrame:  # noqa: N803
    """Return records as a data frame; the columns of an array get the names of `fit`."""
    frame: pd.DataFrame = X
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not len(X):
            raise ValueError("X must have one record or more, got 0")
    else:
        array = validate_data(
            estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan"
        )
        numbered = [f"x{place}" for place in range(array.shape[1])]
        frame = pd.DataFrame(array, columns=numbered if reset else estimator.columns_.names)
    if not get_tags(estimator).input_tags.allow_nan and (absent := frame.isna().any()).any():
        name = absent.idxmax()
        raise ValueError(
            f"X contains NaN: {name} has missing values; set missing=True, or drop them"
        )
    return frame


def _checked(frame: pd.DataFrame, y: Any) -> NDArray[Any]:
    """Return classes, one per record."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if pd.isna(y).any():
        raise ValueError("y contains NaN: each record must have a class")
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    check_consistent_length(frame, y)
    return np.asarray(y)
