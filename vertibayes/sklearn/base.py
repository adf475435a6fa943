"""What the naive Bayes estimators have in common: reading records, prediction, attributes.

The parameters are fields of data classes, so that estimators inherit them: `__init__` then has each
of them by name, as scikit-learn expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from vertibayes.naive_bayes.base import Floats, NaiveBayes
from vertibayes.sklearn.columns import Bounds, Categories, Columns
from vertibayes.sklearn.reading import distinct_classes, read_classes, read_frame
from vertibayes_protocols.site.statistics import LocalData

MOST = 1e6  # of epsilon: more protects nothing, and no such noise is drawn


@dataclass(eq=False, repr=False)
class NaiveBayesEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A naive Bayes estimator: its columns, prediction and scikit-learn's attributes."""

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
        """Return ``log P(y | x)``: shape (n, n_classes), in nats; missing values are left out."""
        check_is_fitted(self, "model_")
        data = self._prepared(self.columns_.records(read_frame(self, X, self.columns_.names)))
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
        frame = read_frame(self, X)
        y = read_classes(frame, y)
        self.classes_ = distinct_classes(y, classes)
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
        frame = read_frame(self, X, self.columns_.names)
        return self.columns_.records(frame, read_classes(frame, y))
