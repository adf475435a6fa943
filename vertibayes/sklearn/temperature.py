"""The temperature of a classifier: one number that makes its probabilities less sure, or surer.

Naive Bayes and trees count the evidence of dependent columns several times, so that their
probabilities come too close to 0 and 1. With P(y) the shares of the classes, the estimators return

    P_t(y | x)  proportional to  P(y) (P(y | x) / P(y)) ^ t

t = 1 changes nothing, and t = 0 leaves the shares. The chosen t is the one under which the classes
of the records of `fit` are most probable. A network predicts each record as if it had been learned
from the others, with the same structure: a closed form, without a second fit.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017). On calibration of modern neural networks. ICML,
section 4.2 (there without P(y)).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from vertibayes.counting import PlainCounter
from vertibayes.inference.prediction import known_codes, posterior
from vertibayes.naive_bayes.base import log_proba
from vertibayes.network import Network
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family

Floats = NDArray[np.float64]
CHOSEN = "chosen"
TEMPERATURE = "the temperature of the probabilities, one number"  # for ledgers
HIGHEST = 4.0
FEW = 200  # of fewer records nobody expects much
WORTHLESS = (
    "the model predicts records that it has not seen no better than the shares of the classes do, "
    "and returns these for every record; temperature=1 returns its own probabilities"
)
LEAST = float(np.log(np.finfo(float).tiny))  # the logarithm of an impossible class
ENOUGH = 10_000  # records, at even distances, of which the temperature is chosen


def check_temperature(temperature: Any) -> None:
    """Refuse what is neither "chosen" nor a finite number of at least 0."""
    is_number = isinstance(temperature, Real) and 0 <= float(temperature) < np.inf
    if not is_number and not (isinstance(temperature, str) and temperature == CHOSEN):
        raise ValueError(
            f'temperature must be "chosen" or a finite number of at least 0, got {temperature!r}'
        )


def some_of(records: int) -> NDArray[np.intp]:
    """Return the places of the records of which the temperature is chosen."""
    return np.arange(0, records, -(-records // ENOUGH) or 1)


def shares_of(codes: NDArray[np.integer], classes: int, pseudo_count: float = 0.0) -> Floats:
    """Return the shares of the classes, with a number of records added to each."""
    counts = np.bincount(codes, minlength=classes) + pseudo_count
    return np.asarray(counts / counts.sum())


def tempered(logs: Floats, shares: Floats, temperature: float) -> Floats:
    """Return the logarithms of tempered probabilities: shape (n, classes).

    Examples
    --------
    >>> sure, shares = np.log([[0.01, 0.99]]), np.array([0.8, 0.2])
    >>> [np.exp(tempered(sure, shares, t)).round(2).tolist() for t in (0, 0.5, 1)]
    [[[0.8, 0.2]], [[0.17, 0.83]], [[0.01, 0.99]]]
    """
    prior = np.log(np.maximum(shares, np.exp(LEAST)))
    return log_proba(prior + temperature * (np.maximum(logs, LEAST) - prior))


def best_temperature(logs: Floats, codes: NDArray[np.integer], shares: Floats) -> float:
    """Return the temperature of the smallest log-loss, which is a convex function of it.

    A temperature of 0 causes a warning, unless records are few: every record then has the shares.
    """

    def loss(temperature: float) -> float:
        return -float(tempered(logs, shares, temperature)[np.arange(len(codes)), codes].sum())

    found = minimize_scalar(loss, bounds=(0.0, HIGHEST), method="bounded")
    best = float(min((0.0, HIGHEST, float(found.x)), key=loss))
    if best == 0 and len(codes) >= FEW:
        warnings.warn(WORTHLESS, stacklevel=2)
    return best


def chosen_by_records(
    network: Network, data: Mapping[str, SiteData], target: str, pseudo_count: float
) -> tuple[float, Floats]:
    """Return the temperature of a network, chosen by the records of all sites, and the shares.

    The temperature is 1 if records miss so many values that the sums over them are too large.
    """
    variables = {name: v for each in data.values() for name, v in each.variables.items()}
    codes = {name: column for each in data.values() for name, column in each.codes.items()}
    own, places = codes[target], some_of(len(codes[target]))
    shares = shares_of(own, len(variables[target].states), pseudo_count)
    try:
        logs = without_each(network, SiteData(variables, codes), target, pseudo_count, places)
    except ValueError:
        return 1.0, shares
    return best_temperature(logs, own[places], shares), shares


def without_each(
    network: Network, data: SiteData, target: str, pseudo_count: float, places: NDArray[np.intp]
) -> Floats:
    """Return log P(class | x) of the records at some places, each by the CPTs of all others.

    A record has one cell in the table of each family. Without it, a CPT (n + a) / (N + ra) has
    (n - 1 + a) / (N - 1 + ra) there: only the columns of its own class change. The result is exact
    for records that have all values of the target's Markov blanket, if the CPTs are fitted to
    counts; `data` are all records, with their classes.
    """
    structure = network.structure
    codes = known_codes(network, data)
    some = {name: column[places].astype(np.intp) for name, column in codes.items()}
    with np.errstate(divide="ignore"):
        logs = np.log(posterior(network, {n: c for n, c in some.items() if n != target}, target))
    if len(logs) < len(places):  # no column matters
        logs = logs.repeat(len(places), axis=0)
    families = [family for family in structure.families if target in family.members]
    tables = PlainCounter(data).tables(families, missing=bool(network.missing_states))
    for family, table in zip(families, tables, strict=True):
        gain = _gain(network, family, table, pseudo_count, is_target=family.child == target)
        cells = tuple(some[name] for name in family.members)
        known = np.all([c < k for c, k in zip(cells, gain.shape, strict=True)], axis=0)
        own = tuple(cell[known] for cell in cells)
        logs[np.flatnonzero(known), some[target][known]] -= gain[own]
    return log_proba(np.maximum(logs, LEAST))


def _gain(
    network: Network, family: Family, table: NDArray[Any], pseudo_count: float, *, is_target: bool
) -> Floats:
    """Return what a record adds to the log probability of its own cell, against other classes."""
    totals = np.maximum(table.sum(axis=0, keepdims=True) + pseudo_count * len(table), 1.0)
    own = network.cpts[family.child] * totals
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(own) - np.log(np.maximum(own - 1, 0.0))
        if not is_target:  # the column of another class keeps its total
            gain = gain + np.log(np.maximum(totals - 1, 0.0)) - np.log(totals)
    return np.asarray(np.clip(np.nan_to_num(gain, nan=0.0, posinf=-LEAST, neginf=0.0), 0, -LEAST))
