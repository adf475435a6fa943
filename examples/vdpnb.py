"""Three hospitals hold attributes of the same patients; an aggregator classifies new patients.

python examples/vdpnb.py
"""

from __future__ import annotations

import numpy as np

from mpc.additive_scheme import draw_modulus
from protocols.site.statistics import LocalData
from protocols.variables import Variable
from vertibayes.naive_bayes.base import NaiveBayes, Schema
from vertibayes.naive_bayes.scores import Logarithms, Split
from vertibayes.naive_bayes.vertical import RecordNoise, Study, count_tables

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


def part(data: LocalData, *names: str) -> LocalData:
    """Return the columns of one hospital."""
    return LocalData({n: data.variables[n] for n in names}, {n: data.codes[n] for n in names})


def classify() -> dict[str, float]:
    """Classify new patients over three hospitals, without and with noise; return accuracies."""
    training, new = patients(500, seed=1), patients(100, seed=2)
    variables = training.variables
    schema = Schema(variables["class"], {name: variables[name] for name in ATTRIBUTES})
    holders = {f"hospital of {name}": (name,) for name in ATTRIBUTES}
    # These are public: the schema, who holds which attribute, and the records of each class.
    split = Split(schema, holders, tuple(np.bincount(training.codes["class"]).tolist()))
    modulus = draw_modulus()  # the dealer draws it and forgets its factors
    pooled = NaiveBayes(schema).fit(training)
    accuracies = {"pooled": pooled.score(new)}
    for label, noise in (("exact", None), ("noisy", RecordNoise(eps=1.0))):
        how = {} if noise is None else {"noise": noise.of_a_table(schema)}
        tables = {
            site: count_tables(split, site, part(training, *held, "class"), **how)
            for site, held in holders.items()
        }
        study = Study(Logarithms(split, b"example", modulus), tables)
        predicted = study.predict({site: part(new, *held) for site, held in holders.items()})
        accuracies[label] = float((predicted == np.array(CLASSES)[new.codes["class"]]).mean())
        if noise is None:
            assert (predicted == pooled.predict(new)).all()
            sent = max(study.bytes.values())
            print(f"100 patients in one batch: {sent:,} bytes from each hospital")
        else:
            promise = noise.promise(schema)
            each = promise["eps_of_a_count"]
            print(f"eps = {promise['eps_of_a_record']:.2f} a record, {each:.2f} a count")
    for label, accuracy in accuracies.items():
        print(f"accuracy, {label}: {accuracy:.2f}")
    return accuracies


if __name__ == "__main__":
    classify()
