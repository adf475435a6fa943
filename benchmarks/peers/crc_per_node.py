"""CRC beside a loop over nodes, features and classes: Algorithms 2 and 3 of Pérez et al. (2025).

The loop is what the algorithms say, with numpy for the records of one node: naive Bayes with one
table or three moments for each feature, the plain mean, a uniform start. It repairs statistics by
the rule of `vertibayes_protocols.calibration.factors`, so that both reach the same statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from time import process_time

import numpy as np
from crc_runs import RATE, ROUNDS, RULES, Rule, Setting, Source, given, load, rounds

from vertibayes.calibration.crc import collaborative_rc
from vertibayes.calibration.models import scales_of
from vertibayes_protocols.calibration.classifier import Examples
from vertibayes_protocols.calibration.factors import LEAST, TINY
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric

SETTING = Setting(nodes=320)

Tables = list[np.ndarray]  # the counts of classes, then a table or moments for each feature


class PerNode:
    """One node of the loop."""

    def __init__(self, schema: Schema, scales: Mapping, data: LocalData, size: float) -> None:
        self.classes = data.codes[schema.target.name]
        self.number = len(schema.target.states)
        self.columns: list[tuple[np.ndarray, int]] = []  # values, and states: 0 for a number
        self.tables: Tables = [np.full(self.number, size / self.number)]
        for name, feature in schema.features.items():
            if isinstance(feature, Numeric):
                centre, spread = scales[name]
                self.columns.append(((data.numbers[name] - centre) / spread, 0))
                row = np.array([1.0, 0.0, 1.0]) * size / self.number
                self.tables.append(np.tile(row, (self.number, 1)))
            else:
                states = len(feature.states)
                self.columns.append((data.codes[name], states))
                self.tables.append(np.full((self.number, states), size / (self.number * states)))
        self.own = self.sums(np.eye(self.number)[self.classes])

    def sums(self, weights: np.ndarray) -> Tables:
        """Return the statistics of records that count in each class with a weight."""
        tables: Tables = [weights.sum(axis=0)]
        for values, states in self.columns:
            rows = []
            for of_class in weights.T:
                if states:
                    rows.append(np.bincount(values, of_class, states))
                else:
                    rows.append([of_class.sum(), of_class @ values, of_class @ values**2])
            tables.append(np.array(rows))
        return tables

    def posterior(self, tables: Tables) -> np.ndarray:
        """Return the probabilities of the classes, for each record."""
        counts = positive(tables[0][:, None])[:, 0]
        scores = np.tile(np.log(counts / counts.sum()), (len(self.classes), 1))
        for (values, states), table in zip(self.columns, tables[1:], strict=True):
            if states:
                counts = positive(table)
                for place in range(self.number):
                    scores[:, place] += np.log(counts[place] / counts[place].sum())[values]
            else:
                counts, mean, variance = moments(table)
                for place in range(self.number):
                    distance = (values - mean[place]) ** 2 / variance[place]
                    scores[:, place] -= 0.5 * (distance + np.log(2 * np.pi * variance[place]))
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def update(self, mean: Tables) -> None:
        """LocalRC with one iteration (Algorithm 3)."""
        probable = self.sums(self.posterior(mean))
        self.tables = [m + o - p for m, o, p in zip(mean, self.own, probable, strict=True)]


def positive(counts: np.ndarray) -> np.ndarray:
    """Return counts of shape (classes, states), none below the least valid one."""
    share = counts.sum(axis=0) / len(counts)
    return np.maximum(counts, np.maximum(LEAST * share, TINY * share.sum()))


def moments(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, means and variances of the classes."""
    counts = positive(table[:, :1])[:, 0]
    mean = table[:, 1] / counts
    everyone = table.sum(axis=0)
    least = LEAST * max(everyone[2] / max(everyone[0], TINY), TINY)
    return counts, mean, np.maximum(table[:, 2] / counts - mean**2, least)


def loop(nodes: Mapping[str, PerNode], neighbours: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Run Algorithm 2; return the statistics of all nodes, each of shape (classes, width)."""
    for _ in range(ROUNDS):
        means = {}
        for name, peers in neighbours.items():
            hood = [nodes[peer].tables for peer in (*peers, name)]
            means[name] = [sum(parts) / len(hood) for parts in zip(*hood, strict=True)]
        for name, node in nodes.items():
            node.update(means[name])
    rows = [[table.reshape(node.number, -1) for table in node.tables] for node in nodes.values()]
    return np.stack([np.concatenate(tables, axis=1) for tables in rows])


def parties(source: Source, setting: Setting, rule: Rule) -> np.ndarray:
    """Return the statistics of the nodes of parties, one node at a time."""
    run = given(source, 0, setting)
    columns, classes = run.split.examples
    examples = {name: Examples(columns[at], classes[at]) for name, at in run.parts.items()}
    *_, last = collaborative_rc(
        run.split.classifier, examples, run.network, ROUNDS,
        rate=RATE, mixing=rule.mixing, start=rule.start,
    )  # fmt: skip
    return last.statistics


def arrays(source: Source, setting: Setting, rule: Rule) -> np.ndarray:
    """Return the statistics of all nodes at once, by which the other tables are computed."""
    *_, last = rounds(source, 0, setting, rule)[1]
    return last


def speed(source: Source, times: int = 3) -> tuple[list[str], list[list[object]]]:
    """Return the header and row of a table: median CPU seconds of the loop, and of both of ours.

    Raises
    ------
    AssertionError
        If statistics differ by more than 1e-8.
    """
    run = given(source, 0, SETTING)
    scales = scales_of(run.split.training)
    size = run.split.training.records / (RATE * SETTING.nodes)
    schema, _ = load(source)
    seconds: list[list[float]] = [[], [], []]
    for _ in range(times):
        nodes = {name: PerNode(schema, scales, run.split.training.rows(places), size)
                 for name, places in run.parts.items()}  # fmt: skip
        ways = (
            lambda nodes=nodes: loop(nodes, run.network.neighbours),
            lambda: parties(source, SETTING, RULES["mean"]),
            lambda: arrays(source, SETTING, RULES["mean"]),
        )
        found = []
        for place, way in enumerate(ways):
            start = process_time()
            found.append(way())
            seconds[place].append(process_time() - start)
    apart = [np.abs(each - found[0]).max() for each in found[1:]]
    few = Setting(nodes=20)
    for rule in RULES.values():
        if rule.repairs and rule.mixing != "others":
            apart.append(np.abs(parties(source, few, rule) - arrays(source, few, rule)).max())
    assert max(apart) < 1e-8, f"the statistics differ by {apart}"
    texts = [f"{median(each):.2f}" for each in seconds]
    header = ["loop, CPU s", "nodes of parties, CPU s", "arrays, CPU s",
              "largest difference of statistics"]  # fmt: skip
    return header, [[*texts, f"{max(apart):.1e}"]]
