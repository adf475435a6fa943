"""Bayesian networks and naive Bayes as scikit-learn estimators on data frames.

    from vertibayes.sklearn import BayesianNetworkClassifier
    model = BayesianNetworkClassifier().fit(X, y)
    model.predict_proba(X_new)

`BayesianNetworkClassifier` and `NaiveBayes` take pooled records, or sites with records or columns,
and learn the same model from both. `FederatedNB`, `GossipNB` and `LocalNB` add noise for
differential privacy. `CalibratedNB` is naive Bayes by risk-based calibration of pooled records.

scikit-learn is an extra, and noise needs OpenDP: ``pip install 'vertibayes[noise,sklearn]'``.
See docs/sklearn.md.
"""

from vertibayes.sklearn.calibrated import CalibratedNB
from vertibayes.sklearn.local import LocalNB
from vertibayes.sklearn.naive_bayes import NaiveBayes
from vertibayes.sklearn.network import BayesianNetworkClassifier
from vertibayes.sklearn.nodes import FederatedNB, GossipNB

__all__ = [
    "BayesianNetworkClassifier",
    "CalibratedNB",
    "FederatedNB",
    "GossipNB",
    "LocalNB",
    "NaiveBayes",
]
