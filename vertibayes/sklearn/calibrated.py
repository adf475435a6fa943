"""Naive Bayes by risk-based calibration, as a scikit-learn estimator: pooled records, no noise.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers. Algorithm 1.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, Self

from sklearn.utils import check_scalar

from vertibayes.calibration.models import scales_of, to_naive_bayes
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes.sklearn.base import NaiveBayesEstimator
from vertibayes_protocols.calibration.classifier import naive_bayes

SMOOTHING = 1e-9  # added to each variance, where that of all numbers is 1, as GaussianNB does


@dataclass(eq=False, repr=False)
class CalibratedNB(NaiveBayesEstimator):
    """Naive Bayes whose statistics risk-based calibration moves towards fewer errors ([1]_).

    Parameters
    ----------
    rate : float, default=0.05
        The learning rate.
    iterations : int, default=64
        How often the statistics are updated; 0 is naive Bayes of maximum likelihood.
    bounds : (float, float) or mapping, optional
        The bounds of all numbers, or of each column of numbers; those of the records if not given.
    categories : mapping, optional
        The values of each categorical column whose dtype does not declare them.
    classes : sequence, optional
        The classes; those of y if not given.
    alpha : float, default=1.0
        Added to each count of a categorical feature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : vertibayes.naive_bayes.NaiveBayes
        The model of the iterate with the lowest loss.
    soft_losses_ : ndarray of shape (iterations + 1,), dtype float64
        The soft 0-1 loss of each iterate, summed over records.
    best_iteration_ : int
        The number of the iterate with the lowest loss; 0 is maximum likelihood.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> first, last = (CalibratedNB(iterations=count).fit(X, y) for count in (0, 64))
    >>> bool(last.score(X, y) > first.score(X, y))
    True
    """

    epsilon: None = field(default=None, init=False)
    _: KW_ONLY
    rate: float = 0.05
    iterations: int = 64

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Calibrate the model.

        Parameters
        ----------
        X : DataFrame or array of shape (n, n_features)
            The records; missing values are left out.
        y : array of shape (n,)
            Their classes.

        Raises
        ------
        ValueError
            If the records, the classes or a parameter cannot be used, or the statistics diverge.
        """
        check_scalar(self.rate, "rate", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.iterations, "iterations", Integral, min_val=0)
        check_scalar(self.alpha, "alpha", Real, min_val=0)
        data = self._read(X, y, self.classes)
        schema = self.columns_.schema
        with warnings.catch_warnings():  # of constant columns
            warnings.simplefilter("ignore", UserWarning)
            scales = scales_of(data)
        classifier = naive_bayes(schema, scales, alpha=self.alpha, smoothing=SMOOTHING)
        examples = classifier.examples(data)
        calibrated = risk_based_calibration(
            classifier, examples, int(self.iterations), rate=self.rate
        )
        self.soft_losses_, self.best_iteration_ = calibrated.soft, calibrated.best
        self.model_ = to_naive_bayes(classifier, schema, calibrated.statistics)
        return self
