"""Differentially private naive Bayes of Vaidya et al. (2013), at one holder or at several.

    count of a class, or of a class and a state    + Lap(1 / e)
    mean of a number within a class of n           + Lap((high - low) / ((n + 1) e))
    standard deviation within a class of n         + Lap(sqrt(n) (high - low) / ((n + 1) e))

A record that is added changes the three by these numerators at most (a test finds the largest
changes). e is eps divided by the 1 + F_cat + 2 F_num parts of a record, as Giaretta et al. (2023)
divide it, whose baseline this is: the paper of 2013 was not at hand, and they do not print its
mechanism. The scale of the noise depends on n, which is private: eps does not cover this.

    at one holder           central: the baseline of figure 2
    horizontally, at nodes  each node's own counts, means and deviations with noise of its own, from
                            which the aggregator pools moments with the noisy counts as weights
    vertically, at parties  each party has one feature and the class: it adds noise to its counts of
                            classes and to its feature; counts of classes are averaged over parties

The noise is numpy's floating-point noise: for experiments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from local_noise import Way

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_protocols.variables import Variable


@dataclass(frozen=True)
class Holders:
    """What holders of records know exactly: counts, means and deviations, on the grid of `Way`."""

    counts: np.ndarray  # of classes: shape (holders, classes)
    means: np.ndarray  # of numbers within classes: shape (holders, numbers, classes)
    deviations: np.ndarray
    spans: np.ndarray  # high - low: shape (holders, numbers, 1)


def hold(way: Way, nodes: Sequence[np.ndarray]) -> Holders:
    """Return what nodes with these records know; *measured* spans are of the node's records."""
    classes, target = len(way.schema.target.states), way.training.codes[way.schema.target.name]
    rows, owners = np.concatenate(nodes), np.repeat(np.arange(len(nodes)), [*map(len, nodes)])
    cells, shape = owners * classes + target[rows], (len(nodes), classes)

    def sums(values: np.ndarray | None) -> np.ndarray:
        return np.bincount(cells, values, len(nodes) * classes).reshape(shape)

    counts, means, deviations, spans = sums(None), [], [], []
    known = np.maximum(counts, 1)
    for name, numeric in way.schema.numerics.items():
        values = numeric.centred(way.training.numbers[name])[rows].astype(float)
        means.append(sums(values) / known)
        squares = sums((values - means[-1].reshape(-1)[cells]) ** 2)
        deviations.append(np.sqrt(squares / known))
        spans.append(span(way.mode, values, owners, len(nodes)))
    numbers = (np.array(a).reshape(-1, *shape).swapaxes(0, 1) for a in (means, deviations))
    return Holders(counts, *numbers, np.array(spans).reshape(-1, len(nodes), 1).swapaxes(0, 1))


def span(mode: str, values: np.ndarray, owners: np.ndarray, nodes: int) -> np.ndarray:
    """Return the width of a number's bounds at each node, on the grid."""
    if mode == "declared":
        return np.full(nodes, 2.0**12)  # twice 2^11 steps
    low, high = np.full(nodes, np.inf), np.full(nodes, -np.inf)
    np.minimum.at(low, owners, values)
    np.maximum.at(high, owners, values)
    return np.where(high > low, high - low, 1.0)


def sensitivities(counts: np.ndarray, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much one more record changes a mean, and a standard deviation, at most."""
    n = counts[:, None, :]
    return spans / (n + 1), np.sqrt(n) * spans / (n + 1)


def central(way: Way, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the budgets of the counts of classes, and of each feature, at one holder or node."""
    e = eps / len(way.cells)
    return np.array([e]), np.full(len(way.schema.features), e)


def vertical(way: Way, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the budgets of parties with one feature each: eps at each party."""
    kinds = way.schema.features.values()
    e = np.array([eps / (2 if isinstance(kind, Variable) else 3) for kind in kinds])
    return e, e


def model(
    way: Way, held: Holders, budgets, generator: np.random.Generator, *, spread: str = "noisy"
) -> NaiveBayes:
    """Draw a model; the floor and the pseudo-counts are those of `Way.model`.

    If `spread` is "raised", a deviation below the standard error of its noise becomes this error;
    if it is "exact", deviations have no noise, which is not private.
    """
    of_classes, of_features = budgets
    budget = dict(zip(way.schema.features, of_features, strict=True))
    nodes, classes = held.counts.shape
    drawn = generator.laplace(size=(len(of_classes), nodes, classes)) / of_classes[:, None, None]
    noisy = held.counts + drawn.mean(axis=0)
    sums, first = [noisy.sum(axis=0)], classes
    cells = dict(zip(way.schema.categorical, way.cells[1:], strict=False))
    for name in way.schema.categorical:
        noise = generator.laplace(scale=1 / budget[name], size=(nodes, cells[name])).sum(axis=0)
        sums.append(way.sums[first : first + cells[name]] + noise)
        first += cells[name]
    e = np.array([budget[name] for name in way.schema.numeric]).reshape(1, -1, 1)
    of_mean, of_deviation = sensitivities(held.counts, held.spans)
    means = held.means + generator.laplace(scale=of_mean / e)
    deviations = held.deviations
    if spread != "exact":
        deviations = deviations + generator.laplace(scale=of_deviation / e)
    if spread == "raised":
        deviations = np.maximum(deviations, np.sqrt(2) * of_deviation / e)
    weights = np.maximum(noisy, 1e-6)[:, None, :]
    weights = weights / weights.sum(axis=0)
    squares = np.maximum(deviations, 0.0) ** 2 + means**2
    known = np.maximum(sums[0], 1.0)
    for pair in zip((weights * means).sum(axis=0), (weights * squares).sum(axis=0), strict=True):
        sums += [known * moment for moment in pair]
    return way.model(np.concatenate(sums))
