"""Forty clinics learn one naive Bayes classifier.

A clinic joins, another fails, and new records arrive.

    python examples/hdpnb.py
"""

from __future__ import annotations

import json

import numpy as np

from vertibayes.naive_bayes.distributed import HDPNB
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

SCHEMA = Schema(
    Variable("ill", ("no", "yes")),
    {"fever": Variable("fever", ("no", "yes")), "age": Variable("age", ("young", "old"))},
)
GENERATOR = np.random.default_rng(1)


def patients(count: int) -> LocalData:
    """Draw patients: ill patients have fever more often, and are older."""
    ill = GENERATOR.integers(0, 2, count)
    fever, age = (GENERATOR.random((2, count)) < 0.3 + 0.4 * ill).astype(int)
    return LocalData(SCHEMA.variables, {"ill": ill, "fever": fever, "age": age})


def learn(via: str = "masked") -> HDPNB:
    """Make two releases and print what they promise."""
    # A tenth of the clinics may be absent; the other nine tenths are trusted to add their noise.
    privacy = Privacy(eps=1.0, protects="record", noise="polya", gamma=0.9)
    terms = Terms(SCHEMA, most_parties=50, most_records=60, privacy=privacy, dropouts=0.1)
    study = HDPNB(terms, {f"clinic-{i:02}": patients(25) for i in range(40)}, via=via)
    study.join("newcomer", patients(30))
    study.round(absent=["clinic-07"])
    print("after one round:", spent(study).sentence)
    study.add("clinic-03", patients(20), disjoint=True)
    model = study.increment()  # also takes in the records of clinic-07, which was absent
    print(f"records in the model, noise included: {model.class_count_.sum():.0f} (really 1050)")
    print(f"accuracy on new patients: {model.score(patients(2000)):.3f}")
    print(json.dumps(spent(study).to_json(), indent=1))
    return study


def spent(study: HDPNB) -> Promise:
    """Return what all releases so far promise together."""
    promise = study.spent
    assert promise is not None, "a study with noise has a promise after its first release"
    return promise


if __name__ == "__main__":
    learn()
