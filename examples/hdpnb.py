"""Forty clinics learn one naive Bayes classifier; one joins, one fails; new records come.

python examples/hdpnb.py
"""

from __future__ import annotations

import json

import numpy as np

from protocols.site.statistics import LocalData
from protocols.variables import Variable
from vertibayes.naive_bayes.accounting import Privacy
from vertibayes.naive_bayes.base import Schema
from vertibayes.naive_bayes.distributed import HDPNB
from vertibayes.naive_bayes.parties import Terms

SCHEMA = Schema(
    Variable("ill", ("no", "yes")),
    {"fever": Variable("fever", ("no", "yes")), "age": Variable("age", ("young", "old"))},
)
GENERATOR = np.random.default_rng(1)


def patients(count: int) -> LocalData:
    """Draw patients: the ill have fever more often, and are older."""
    ill = GENERATOR.integers(0, 2, count)
    fever, age = (GENERATOR.random((2, count)) < 0.3 + 0.4 * ill).astype(int)
    return LocalData(SCHEMA.variables, {"ill": ill, "fever": fever, "age": age})


def learn(via: str = "masked") -> HDPNB:
    """Run two releases; print what they promise."""
    # A tenth of the clinics may be missing; the other nine tenths are trusted to add their noise.
    privacy = Privacy(eps=1.0, protects="record", noise="polya", gamma=0.9)
    terms = Terms(SCHEMA, most_parties=50, most_records=60, privacy=privacy, dropouts=0.1)
    study = HDPNB(terms, {f"clinic-{i:02}": patients(25) for i in range(40)}, via=via)
    study.join("newcomer", patients(30))
    study.round(absent=["clinic-07"])
    print("after one round:", study.spent.sentence)
    study.add("clinic-03", patients(20))
    model = study.increment()  # also takes in what clinic-07 missed
    print(f"records in the model, noise included: {model.class_count_.sum():.0f} (really 1050)")
    print(f"accuracy on new patients: {model.score(patients(2000)):.3f}")
    print(json.dumps(study.spent.to_json(), indent=1))
    return study


if __name__ == "__main__":
    learn()
