"""Predict incomes by naive Bayes from a data frame with missing values, under differential privacy.

Three situations: ten banks send noisy statistics to an aggregator; the banks gossip without an
aggregator; people perturb their records before they send them.

    python examples/private_naive_bayes.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vertibayes.sklearn import FederatedNB, GossipNB, LocalNB

JOBS = ["clerk", "craft", "farming", "manager", "service"]
BOUNDS = {"age": (17, 90), "hours": (0, 99)}
CATEGORIES = {"job": JOBS}
CLASSES = ["low", "high"]


def people(count: int, generator: np.random.Generator) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Invent people: those of high income are older, work longer, and more are managers."""
    high = generator.random(count) < 0.25
    ages = np.clip(generator.normal(np.where(high, 46, 35), 11), 17, 90).round()
    hours = np.clip(generator.normal(np.where(high, 46, 38), 9), 0, 99)
    jobs = np.where(
        high,
        generator.choice(JOBS, count, p=[0.15, 0.15, 0.02, 0.6, 0.08]),
        generator.choice(JOBS, count, p=[0.3, 0.25, 0.05, 0.15, 0.25]),
    )
    frame = pd.DataFrame({"age": ages, "hours": hours, "job": jobs.astype(object)})
    frame["married"] = generator.random(count) < np.where(high, 0.85, 0.35)
    frame.loc[generator.random(count) < 0.05, "job"] = None
    return frame, pd.Series(np.where(high, "high", "low"), name="income")


def compare(records: int = 20_000) -> dict[str, float]:
    """Fit the estimators, print what they promise, and return their accuracies."""
    generator = np.random.default_rng(1)
    X, y = people(records, generator)  # noqa: N806
    X_new, y_new = people(5_000, generator)  # noqa: N806
    declared: dict[str, Any] = {"bounds": BOUNDS, "categories": CATEGORIES, "classes": CLASSES}
    models = {
        "without noise": FederatedNB(None, **declared),
        "federated": FederatedNB(1.0, **declared),
        "federated, one copy of noise": FederatedNB(1.0, noise="polya", **declared),
        "gossip": GossipNB(1.0, **declared),
        "local": LocalNB(1.0, missing=True, **declared),
    }
    accuracies = {}
    for name, model in models.items():
        accuracies[name] = model.fit(X, y).score(X_new, y_new)
        print(f"{name}: accuracy {accuracies[name]:.3f}")
        if model.promise_ is not None:
            print("   ", model.promise_.sentence)
    return accuracies


if __name__ == "__main__":
    compare()
