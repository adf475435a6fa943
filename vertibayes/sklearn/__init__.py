"""Naive Bayes under differential privacy as scikit-learn estimators on data frames.

    from vertibayes.sklearn import FederatedNB
    model = FederatedNB(epsilon=1.0, nodes=10, bounds={"age": (17, 90)}, categories={...})
    model.fit(X, y).predict(X_new)

`CalibratedNB` has no noise: it is naive Bayes by risk-based calibration of pooled records.
scikit-learn and OpenDP are extras: ``pip install 'vertibayes[noise,sklearn]'``.
See docs/sklearn.md.
"""

from vertibayes.sklearn.calibrated import CalibratedNB
from vertibayes.sklearn.local import LocalNB
from vertibayes.sklearn.nodes import FederatedNB, GossipNB

__all__ = ["CalibratedNB", "FederatedNB", "GossipNB", "LocalNB"]
