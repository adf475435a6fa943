"""The temperature of classifiers: chosen as if each record were left out, the same everywhere."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from tests.vertibayes.test_network_classifier import at_sites, people
from vertibayes import PlainCounter, Rule, federate
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predict_proba
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sklearn import BayesianNetworkClassifier, NaiveBayes
from vertibayes.sklearn.temperature import best_temperature, tempered, without_each
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

STRUCTURES = [
    Structure({"y": (), "a": ("y",), "b": ("a", "y"), "c": ("y", "b")}),
    Structure({"a": (), "y": ("a",), "b": ("y",), "c": ("b", "a")}),
    Structure({"a": (), "b": (), "y": ("b", "a"), "c": ("y",)}),
]


def drawn(records, seed):
    """Return random records of three features and a class of three states."""
    generator = np.random.default_rng(seed)
    states = {"a": 2, "b": 3, "c": 4, "y": 3}
    variables = {n: Variable(n, tuple(f"s{k}" for k in range(r))) for n, r in states.items()}
    y = generator.integers(3, size=records)
    codes = {n: (y + generator.integers(r, size=records)) % r for n, r in states.items()} | {"y": y}
    return SiteData(variables, {name: column.astype(np.uint8) for name, column in codes.items()})


@pytest.mark.parametrize("structure", STRUCTURES, ids=["tan", "parent", "sink"])
@pytest.mark.parametrize("pseudo_count", [0.5, 2.0])
def test_the_closed_form_is_a_fit_to_all_other_records(structure, pseudo_count):
    data, places = drawn(60, 1), np.arange(0, 60, 2)
    network = fit_cpts(PlainCounter(data), structure, pseudo_count=pseudo_count)
    ours = without_each(network, data, "y", pseudo_count, places)
    for place, logs in zip(places, ours, strict=True):
        others = data.rows(np.delete(np.arange(60), place))
        without = fit_cpts(PlainCounter(others), structure, pseudo_count=pseudo_count)
        expected = predict_proba(without, data.rows(np.array([place])).take("abc"), "y")[0]
        np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-9)


def test_the_best_temperature_finds_the_one_of_the_classes():
    generator = np.random.default_rng(3)
    shares, logs = np.array([0.7, 0.3]), np.log(generator.dirichlet([0.3, 0.3], 40_000))
    true = np.exp(tempered(logs, shares, 0.4))
    codes = (generator.random(len(true)) < true[:, 1]).astype(int)
    assert best_temperature(logs, codes, shares) == pytest.approx(0.4, abs=0.02)
    at_random = (generator.random(len(true)) < 0.3).astype(int)
    assert best_temperature(logs, at_random, shares) < 0.01


def copies(records, seed):
    """Return twelve noisy copies of one cause, which say the same."""
    generator = np.random.default_rng(seed)
    cause = generator.normal(size=records)
    near = cause[:, None] + 0.4 * generator.normal(size=(records, 12))
    X = pd.DataFrame(near.round(3), columns=[f"x{place}" for place in range(12)])
    return X, pd.Series(generator.random(records) < 1 / (1 + np.exp(1.5 - 0.8 * cause)), name="y")


def losses(model, X, y, X_new, y_new):
    """Return the log-loss of a model, and that of the shares of the classes."""
    model.fit(X, y)
    shares = np.tile([np.mean(y == label) for label in model.classes_], (len(X_new), 1))
    each = model.predict_proba(X_new), shares
    return [log_loss(y_new, p, labels=model.classes_) for p in each]


MODELS = [
    NaiveBayes(),
    BayesianNetworkClassifier(),
    BayesianNetworkClassifier("tan"),
    BayesianNetworkClassifier("tan", binning="mdlp"),
]
NAMES = ["naive Bayes", "hybrid", "tan", "tan mdlp"]


@pytest.mark.parametrize("model", MODELS[:3], ids=NAMES[:3])
def test_copies_of_one_cause_are_not_taken_for_more_evidence(model):
    ours, base = losses(model, *copies(3000, 1), *copies(3000, 2))
    assert ours < base
    if model is not MODELS[1]:
        as_learned, _ = losses(
            model.__class__(**model.get_params() | {"temperature": 1}),
            *copies(3000, 1),
            *copies(3000, 2),
        )
        assert as_learned > base, "what the temperature is for"


@pytest.mark.skipif("VERTIBAYES_DATA" not in os.environ, reason="needs the data of the papers")
@pytest.mark.filterwarnings("ignore")  # of values that a part does not have, and constant columns
@pytest.mark.parametrize("model", MODELS, ids=NAMES)
@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("australian.csv", "class"),
        ("car.csv", "class"),
        ("pima-diabetes.csv.gz", "outcome"),
        ("spect", "diagnosis"),
    ],
)
def test_the_log_loss_is_not_above_that_of_the_base_rate(model, file, target):
    folder = Path(os.environ["VERTIBAYES_DATA"]) / "uci"
    files = [f"spect_{part}.csv" for part in ("train", "test")] if file == "spect" else [file]
    frame = pd.concat([pd.read_csv(folder / name) for name in files], ignore_index=True)
    X, y = frame.drop(columns=target), frame[target]
    each = []
    for seed in range(5):
        A, B, ya, yb = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        each.append(losses(model, A, ya, B, yb))
    ours, base = np.mean(each, axis=0)
    assert ours <= base


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_sites_have_the_temperature_of_pooled_records_and_their_ledger_says_so(missing):
    X, y = people(600, 3, missing=missing)
    pooled = BayesianNetworkClassifier("tan").fit(X, y)
    apart = BayesianNetworkClassifier("tan").fit(at_sites(X, y), "ill")
    assert apart.temperature_ == pooled.temperature_ != 1
    assert "temperature" in apart.ledger_.facts[-1].what
    plain = BayesianNetworkClassifier("tan", temperature=1).fit(at_sites(X, y), "ill")
    assert not any("temperature" in fact.what for fact in plain.ledger_.facts)
    logs = np.log(plain.predict_proba(X))
    counts = np.array([(y == "no").sum(), (y == "yes").sum()])
    shares = (counts + 0.5) / (len(y) + 1)
    expected = np.exp(tempered(logs, shares, pooled.temperature_))
    np.testing.assert_allclose(pooled.predict_proba(X), expected)


def test_a_release_and_a_counter_have_no_records_to_choose_by():
    X, y = people(600, 4)
    cut = BayesianNetworkClassifier(release=Rule("cut", fewest=5)).fit(at_sites(X, y), "ill")
    data = SiteData.from_frame(X.assign(ill=y))
    counted = BayesianNetworkClassifier().fit(PlainCounter(data), "ill")
    with federate({"a": data}) as federation:
        federated = BayesianNetworkClassifier().fit(federation, "ill")
    assert cut.temperature_ == counted.temperature_ == federated.temperature_ == 1
    given = BayesianNetworkClassifier(temperature=0.5).fit(PlainCounter(data), "ill")
    assert given.temperature_ == 0.5
    assert (np.abs(given.predict_proba(X) - counted.predict_proba(X)) > 0.01).any()


@pytest.mark.parametrize("kind", [BayesianNetworkClassifier, NaiveBayes])
@pytest.mark.parametrize("wrong", [-1, np.inf, "cold", None])
def test_a_temperature_that_cannot_be_is_refused(kind, wrong):
    X, y = people(60, 5)
    with pytest.raises(ValueError, match='temperature must be "chosen" or a finite number'):
        kind(temperature=wrong).fit(X, y)


def test_a_model_that_is_worth_nothing_says_so():
    logs = np.log(np.array([[0.9, 0.1], [0.1, 0.9]] * 100))
    with pytest.warns(UserWarning, match="no better than the shares of the classes"):
        assert best_temperature(logs, np.array([1, 0] * 100), np.array([0.5, 0.5])) == 0
