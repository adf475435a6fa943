"""Three hospitals hold attributes of the same patients; an analyst classifies new patients.

python examples/vdpnb.py
"""

from __future__ import annotations

import numpy as np

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.vertical import most_probable, predict_joint_log_proba, tables_of
from vertibayes_protocols.federation import ANALYST, federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Publish
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.variables import Variable

CLASSES = ("benign", "malignant")
ATTRIBUTES = {"age": ("<50", "50+"), "size": ("small", "medium", "large"), "smoker": ("no", "yes")}


def patients(count: int, seed: int) -> LocalData:
    """Draw patients whose attributes depend on their class alone."""
    generator = np.random.default_rng(seed)
    variables = {name: Variable(name, states) for name, states in ATTRIBUTES.items()}
    y = generator.integers(0, 2, count)
    codes = {"class": y}
    for name, states in ATTRIBUTES.items():
        steps = generator.random(count) < np.where(y == 1, 0.7, 0.05)
        codes[name] = np.where(steps, len(states) - 1, generator.integers(0, len(states), count))
    return LocalData({"class": Variable("class", CLASSES)} | variables, codes)


def part(data: LocalData, *names: str) -> SiteData:
    """Return the columns of one hospital."""
    codes = {name: data.codes[name].astype(np.uint8) for name in names}
    return SiteData({name: data.variables[name] for name in names}, codes)


def classify() -> dict[str, float]:
    """Classify new patients over three hospitals, without and with noise; return accuracies."""
    training, new = patients(500, seed=1), patients(100, seed=2)
    variables = training.variables
    schema = Schema(variables["class"], {name: variables[name] for name in ATTRIBUTES})
    holders = {f"hospital of {name}": (name,) for name in ATTRIBUTES}
    # These are public: the schema, who holds which attribute, and the records of each class.
    split = Split.of(schema, holders, tuple(np.bincount(training.codes["class"]).tolist()))
    # Each hospital adds noise to what it publishes, and charges eps / 3 to its budget.
    noise = RecordNoise(eps=1.0)
    trained = {site: part(training, *held, "class") for site, held in holders.items()}
    with federate(trained, policy=Policy(most_epsilon=0.5, free_tables=True)) as hospitals:
        noisy = hospitals.session.ask(Publish.of(split, noise))
    print(noise.promise(schema).sentence)
    pooled = NaiveBayes(schema).fit(training)
    accuracies = {"pooled": pooled.score(new)}
    asked = {site: part(new, *held) for site, held in holders.items()}
    for label, tables in (("exact", tables_of(pooled, tuple(ATTRIBUTES))), ("noisy", noisy)):
        with federate(asked, policy=Policy(most_scores=100, free_tables=True)) as hospitals:
            session, dealer = hospitals.session, hospitals.dealer
            joint = predict_joint_log_proba(session, dealer, split, tables, (0, 100))
            sent = max(hospitals.traffic.bytes_sent[site, ANALYST] for site in holders)
        predicted = most_probable(split, joint)
        accuracies[label] = float((predicted == np.array(CLASSES)[new.codes["class"]]).mean())
        if label == "exact":
            assert (predicted == pooled.predict(new)).all()
            print(f"100 patients in one batch: {sent:,} bytes from each hospital")
    for label, accuracy in accuracies.items():
        print(f"accuracy, {label}: {accuracy:.2f}")
    return accuracies


if __name__ == "__main__":
    classify()
