"""A calibrated Bayesian network classifier, as a network: it predicts as the classifier does."""

from __future__ import annotations

import numpy as np
import pytest

from vertibayes.calibration.models import predict_proba
from vertibayes.calibration.network_model import even_network, to_network
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.parameters.cpt import fit_cpts
from vertibayes_protocols.calibration.classifier import network_classifier
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

SIZES = {"a": 2, "y": 3, "b": 4, "c": 2, "d": 3}
STRUCTURES = {
    "the class has parents, and is between others": {
        "y": ("a", "d"), "a": (), "b": ("a", "y"), "c": ("y", "b", "d"), "d": ("a",),
    },
    "the class is a root": {"y": (), "a": ("y",), "b": ("y", "a"), "c": ("b",), "d": ("c", "y")},
    "the class has no children": {"y": ("b", "c"), "a": (), "b": (), "c": (), "d": ()},
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(6)
    y = draw.integers(0, 3, 400)
    codes = {n: ((y + draw.integers(0, k, 400)) % k).astype(np.uint8) for n, k in SIZES.items()}
    states = {n: tuple(f"{n}{code}" for code in range(k)) for n, k in SIZES.items()}
    return SiteData({n: Variable(n, states[n]) for n in SIZES}, codes | {"y": y.astype(np.uint8)})


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_network_predicts_as_the_classifier(data, name):
    structure = Structure(STRUCTURES[name])
    classifier = network_classifier("y", data.variables, structure.families)
    statistics = risk_based_calibration(classifier, classifier.examples(data.local), 9).last
    expected = predict_proba(classifier, statistics, data.local)
    learned = fit_cpts(PlainCounter(data), structure)
    for others in (learned, even_network(structure, data.variables)):
        network = to_network(classifier, statistics, others)
        shares = network.predict_proba(data, "y")[[f"y{code}" for code in range(3)]]
        assert shares.to_numpy() == pytest.approx(expected, abs=1e-9)
        alone = [n for n, parents in structure.parents.items() if "y" not in (n, *parents)]
        assert all(network.cpts[n] is others.cpts[n] for n in alone)


def test_configurations_that_nobody_has_are_named_of_tables_that_nobody_calibrated(data):
    structure = Structure(STRUCTURES["the class has parents, and is between others"])
    few = data.rows(np.arange(8))
    others = fit_cpts(PlainCounter(few), structure)
    classifier = network_classifier("y", data.variables, structure.families)
    network = to_network(classifier, classifier.uniform(8.0), others)
    assert others.unseen["c"] > 0 and set(network.unseen) <= {"a", "d"}
