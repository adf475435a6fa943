"""Fifty clinics learn naive Bayes from noisy statistics, with an aggregator and without one.

python examples/federated_naive_bayes.py
"""

from __future__ import annotations

import numpy as np

from vertibayes.naive_bayes.federated import aggregate, exact_updates, local_updates, promised
from vertibayes.naive_bayes.gossip import gossip, models_of
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

# States and bounds are declared before any data: bounds of the data would reveal values.
SCHEMA = Schema(
    Variable("ill", ("no", "yes")),
    {"fever": Variable("fever", ("no", "yes")), "age": Numeric("age", 0.0, 100.0)},
    centred=True,
)
CLINICS = 50
GENERATOR = np.random.default_rng(1)


def patients(count: int) -> LocalData:
    """Draw patients: ill patients have fever more often, and are older."""
    ill = GENERATOR.integers(0, 2, count)
    fever = (GENERATOR.random(count) < 0.2 + 0.6 * ill).astype(int)
    age = np.clip(GENERATOR.normal(40 + 20 * ill, 15), 0, 100)
    return LocalData(SCHEMA.variables, {"ill": ill, "fever": fever}, SCHEMA.numerics, {"age": age})


def learn() -> dict[str, float]:
    """Learn in four ways and return the accuracies on new patients."""
    clinics, test = [patients(100) for _ in range(CLINICS)], patients(5000)
    local = Privacy(eps=1.0, noise="laplace")  # each clinic adds whole copies of noise
    shared = Privacy(eps=1.0, noise="polya")  # all clinics together add one copy
    updates = local_updates(SCHEMA, clinics, local)
    *_, last = gossip(updates, 40, GENERATOR)
    nodes = [model.score(test) for model in models_of(SCHEMA, last.estimates)]
    found = {
        "without noise": aggregate(SCHEMA, exact_updates(SCHEMA, clinics)).score(test),
        "one copy of noise in all": aggregate(SCHEMA, local_updates(SCHEMA, clinics, shared)).score(
            test
        ),
        "a copy of noise per clinic": aggregate(SCHEMA, updates).score(test),
        "gossip, median of the clinics": float(np.median(nodes)),
    }
    # A clinic that comes later: its update is added to the model, whose old updates are gone.
    newcomer = local_updates(SCHEMA, [patients(100)], local)[0]
    online = aggregate(SCHEMA, updates).add_sums(newcomer)
    found["a copy each, one clinic more"] = online.score(test)
    for way, accuracy in found.items():
        print(f"{way:30} accuracy {accuracy:.3f}")
    promise = promised(SCHEMA, local, CLINICS)
    assert promise is not None, "noise of declared bounds has a promise"
    print(promise.sentence)
    return found


if __name__ == "__main__":
    learn()
