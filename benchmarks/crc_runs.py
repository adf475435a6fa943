"""Runs of RC and CRC on data sets of Pérez et al. (2025), for `crc_tables.py`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import crc_arrays
import numpy as np
import pandas as pd
from crc_arrays import Nodes, Rule

from vertibayes.calibration.models import error_rates, scales_of
from vertibayes.calibration.rc import risk_based_calibration
from vertibayes.calibration.topologies import Changing, network_of, node_names
from vertibayes.splitting import drift_parts
from vertibayes_protocols.calibration.classifier import Examples, FactoredClassifier, naive_bayes
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.local import statistics_of
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

SETS = {
    "skin": ("skin", ["skin-segmentation.csv.gz"]),
    "bank": ("y", ["bank-full.csv.gz"]),
    "adult": ("income", ["adult_train.csv.gz", "adult_test.csv.gz"]),
    "letter": ("letter", ["letter.csv.gz"]),
}  # class, files
# Letter's numbers from 0 to 15 as categories, by which the paper's figures of RC are reproduced.
LETTERS = "letter, categories"
FEW = 10  # a number with so many values or fewer is a category
TEST = 8000  # records of the test, at most
ROUNDS, RATE = 64, 0.05


RULES = {
    "mean": Rule("mean"),
    "without the node": Rule("others"),
    "mean, data": Rule("mean", "data"),
    "metropolis": Rule("metropolis"),
    "metropolis, data": Rule("metropolis", "data"),
    "relay": Rule("relay"),
    "relay, data": Rule("relay", "data"),
    "mean, no repairs": Rule("mean", repairs=False),
    "without the node, no repairs": Rule("others", repairs=False),
}


class Setting(NamedTuple):
    """What a table varies."""

    nodes: int = 50
    each: int = 50  # records of a node
    network: str = "tree"
    more: int = 0  # edges
    drift: str = "none"
    iterations: int = 1
    every: int = 0  # rounds that a network lasts; 0: all


class Source(NamedTuple):
    """Where records come from, and how text of many values is read."""

    folder: Path
    name: str
    text: str


class Split(NamedTuple):
    """Training and test records of a repetition."""

    classifier: FactoredClassifier
    training: LocalData
    examples: Examples
    test: Examples


class Scores(NamedTuple):
    """Shares of wrong records, of one model or of each node's."""

    training: np.ndarray
    test: np.ndarray


@cache
def load(source: Source) -> tuple[Schema, LocalData]:
    """Read all records; a missing value (`?` in Adult) is a value like any other."""
    target, files = SETS[source.name.removesuffix(", categories")]
    few = 16 if source.name == LETTERS else FEW
    parts = [pd.read_csv(source.folder / "uci" / file, skipinitialspace=True) for file in files]
    frame = pd.concat(parts, ignore_index=True)
    frame[target] = frame[target].astype(str).str.strip().str.rstrip(".")
    variables, numbers, features = {}, {}, {}
    for name, column in frame.items():
        is_number = pd.api.types.is_numeric_dtype(column)
        many = name != target and column.nunique() > few
        if many and (is_number or source.text == "codes"):
            values = column if is_number else pd.factorize(column, sort=True)[0]
            numbers[name] = np.asarray(values, float)
            features[name] = Numeric(name, numbers[name].min(), numbers[name].max())
        else:
            texts = column.astype(str)
            features[name] = variables[name] = Variable(name, tuple(sorted(texts.unique())))
            frame[name] = pd.Categorical(texts, list(variables[name].states)).codes
    codes = {name: frame[name].to_numpy(np.int64) for name in variables}
    numeric = {name: features[name] for name in numbers}
    of_class = features.pop(target)
    return Schema(of_class, features), LocalData(variables, codes, numeric, numbers)


@lru_cache(maxsize=2)
def split(source: Source, records: int, repetition: int) -> Split:
    """Return disjoint training and test records; the training's mean and sd are the scales."""
    schema, data = load(source)
    places = np.random.default_rng(repetition).permutation(data.records)
    training, test = data.rows(places[:records]), data.rows(places[records:][:TEST])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the column .* is constant")  # in some 20 records
        classifier = naive_bayes(schema, scales_of(training))
    return Split(classifier, training, classifier.examples(training), classifier.examples(test))


def scores(own: Split, statistics: np.ndarray) -> Scores:
    """Return the errors of models."""
    both = (error_rates(own.classifier, statistics, part) for part in (own.examples, own.test))
    return Scores(*both)


@lru_cache(maxsize=64)
def pooled(source: Source, records: int, repetition: int) -> dict[str, Scores]:
    """Return the errors of maximum likelihood, and of RC from either start after 64 iterations."""
    own = split(source, records, repetition)
    likely = statistics_of(own.classifier, own.examples)
    starts = {"uniform": own.classifier.uniform(records), "data": likely}
    trained = {
        name: risk_based_calibration(
            own.classifier, own.examples, ROUNDS, rate=RATE, start=start
        ).last
        for name, start in starts.items()
    }
    models = np.stack([likely, *trained.values()])
    training, test = scores(own, models)
    names = ("likelihood", *trained)
    return {name: Scores(training[i], test[i]) for i, name in enumerate(names)}


class Given(NamedTuple):
    """What the nodes of a repetition have."""

    split: Split
    parts: dict[str, np.ndarray]
    network: Graph | Changing


def given(source: Source, repetition: int, setting: Setting) -> Given:
    """Draw the records of the nodes, and their network."""
    own = split(source, setting.nodes * setting.each, repetition)
    names = node_names(setting.nodes)
    generator = np.random.default_rng((repetition, setting.nodes))
    sizes = np.full(setting.nodes, setting.each)
    target = own.classifier.target.name
    parts = drift_parts(own.training, sizes, setting.drift, generator, target=target)
    return Given(own, dict(zip(names, parts, strict=True)), network(setting, generator))


def nodes_of(source: Source, repetition: int, setting: Setting) -> Nodes:
    """Return the nodes of a repetition as arrays."""
    run = given(source, repetition, setting)
    columns, classes = run.split.examples
    places = np.stack([*run.parts.values()])
    return Nodes(run.split.classifier, columns[places], classes[places], run.network)


def rounds(
    source: Source, repetition: int, setting: Setting, rule: Rule
) -> tuple[Nodes, Iterator[np.ndarray]]:
    """Return the nodes, and their statistics after each round."""
    nodes = nodes_of(source, repetition, setting)
    return nodes, crc_arrays.rounds(nodes, ROUNDS, rule, RATE, setting.iterations)


def network(setting: Setting, generator: np.random.Generator) -> Graph | Changing:
    """Draw the network of a repetition."""
    names = node_names(setting.nodes)
    if setting.every:
        return Changing(setting.network, names, setting.every, generator)
    return network_of(setting.network, names, generator, extra_edges=setting.more)


def last_scores(source: Source, repetition: int, setting: Setting, rule: Rule) -> Scores:
    """Return the errors of all nodes after the last round."""
    nodes, states = rounds(source, repetition, setting, rule)
    *_, last = states
    own = split(source, setting.nodes * setting.each, repetition)
    return Scores(*(crc_arrays.errors_of(nodes, last, e, rule) for e in (own.examples, own.test)))


def gaps_by_round(
    source: Source, repetition: int, setting: Setting, rule: Rule, test: int
) -> np.ndarray:
    """Return the gap after each round, on the first records of the test."""
    own = split(source, setting.nodes * setting.each, repetition)
    few = Examples(own.test.columns[:test], own.test.classes[:test])
    start = own.classifier.uniform(len(own.examples.classes))
    reference = risk_based_calibration(
        own.classifier, own.examples, ROUNDS, rate=RATE, start=start
    ).last
    goal = error_rates(own.classifier, reference[None], few)[0]
    _, states = rounds(source, repetition, setting, rule)
    return np.array([error_rates(own.classifier, s, few).mean() - goal for s in states])
