"""Validation on records that the sites leave out of learning.

    learn      asks for tables of the other records alone
    holdout    asks for one exact table of the records that were left out

Of a target of two states, the table says how many records of each class have log odds in each of
128 bins (`prediction_over_sites.scored_bins`): a bin that one combination of values has is a cell
of the table of the target and its Markov blanket. Of other targets, and where values are missing so
that these log odds cannot be looked up, it is the table of the target and its Markov blanket:
exact, and more revealing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Counter
from vertibayes.counting.counter import MOST_CELLS
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.intervals import Interval
from vertibayes.inference.prediction import predicted
from vertibayes.network import Network
from vertibayes.prediction_over_sites import scored_bins
from vertibayes.validation.measures import (
    Estimate,
    auc_interval,
    brier,
    entropy,
    log_loss,
)
from vertibayes.validation.methods import DIGITS, Scored, Validation, validated
from vertibayes.words import counted
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable, axis_lengths

FEWEST = 10  # held-out records of each of two classes

Names: TypeAlias = tuple[str, ...]


class TooLargeError(ValueError):
    """The only table that could tell how well a target is predicted is too large."""


@dataclass(frozen=True)
class HeldOut(Validation):
    """The result of a validation on real records that were not used to learn.

    The intervals are 95 % intervals of what the network has on new records of the same kind. They
    do not say how another network, learned from other records, would do.
    """

    auc_interval: Interval | None = None
    log_loss: Estimate | None = None  # in nats; None if a true class has the probability 0
    brier: Estimate | None = None
    base_rate: float = 0.0  # log-loss of predicting by the shares of the classes alone, in nats
    evidence: Names = ()  # the variables that predict the target
    by: str = ""  # what was revealed: "score table" or "table of the Markov blanket"

    @property
    def test_records(self) -> str:
        """What the scored records are."""
        return "held-out"

    @property
    def interval(self) -> Interval | None:
        """A 95 % interval of the AUC."""
        return self.auc_interval

    def as_json(self) -> dict[str, Any]:
        """Return what other validations do not have, as JSON data."""
        return {
            "log_loss": self.log_loss,
            "log_loss_of_the_shares_of_the_classes": self.base_rate,
            "brier": self.brier,
            "evidence": list(self.evidence),
            "revealed": self.by,
        }


def held_out(records: int, share: float, seed: int = 0) -> tuple[Rows, Rows]:
    """Return the records that are left out and all others, by a seed; refuse fewer than 10."""
    count = round(share * records)
    if not FEWEST <= count <= records - FEWEST:
        raise ValueError(
            f"`holdout` {share:g} holds out {count} of {counted(records, 'record')}: at least "
            f"{FEWEST} must be held out, and as many left"
        )
    return Rows(seed, 0, count), Rows(seed, count, records)


def check_classes(counter: Counter, target: str) -> None:
    """Refuse held-out records of too few classes: reveals how many records each class has."""
    (table,) = counter.tables([Family(target)])
    if (table >= FEWEST).sum() < 2:
        states = counter.variables[target].states
        shown = ", ".join(f"{n} of {state}" for n, state in zip(table, states, strict=True) if n)
        raise ValueError(
            f"`validate` holdout: the {counted(counter.records, 'held-out record')} have "
            f"{shown or 'no value'} in {target}; two states need {FEWEST} records each: hold out "
            "more by `holdout`, merge rare states, or leave out `validate` holdout"
        )


def holdout(network: Network, counter: Counter, target: str) -> HeldOut:
    """Validate a network on records of a counter, from which it was not learned, by one table."""
    scored, by = None, "score table"
    if isinstance(counter, SecureCounter) and len(network.variable(target).states) == 2:
        scored = _by_bins(network, counter, target)
    if scored is None:
        scored, by = _by_blanket(network, counter, target), "table of the Markov blanket"
    evidence, predictions = scored
    return held_out_validation(counter.variables[target], predictions, evidence, by)


def held_out_validation(
    variable: Variable, scored: Scored, evidence: Names = (), by: str = ""
) -> HeldOut:
    """Return the validation of predicted records."""
    each = scored.classes, scored.probabilities, variable.states
    plain = validated(variable, [scored])
    return HeldOut(
        target=plain.target,
        overall=plain.overall,
        curves=plain.curves,
        impossible=plain.impossible,
        auc_interval=auc_interval(*each),
        log_loss=log_loss(*each),
        brier=brier(*each),
        base_rate=entropy(scored.classes, variable.states),
        evidence=evidence,
        by=by,
    )


def _by_bins(network: Network, counter: SecureCounter, target: str) -> tuple[Names, Scored] | None:
    """Return predictions from a score table; None if it cannot be asked for."""
    bins = scored_bins(counter.open_study, network, target, counter.rows)
    if bins is None:
        return None
    counter.note((f"log odds of {target}", target), bins.table)
    return bins.evidence, _repeated(bins.probabilities, bins.table)


def _by_blanket(network: Network, counter: Counter, target: str) -> tuple[Names, Scored]:
    """Return predictions from the table of the target and its Markov blanket."""
    evidence = markov_blanket(network.structure, target)
    _check_size(counter, target, evidence)
    (table,) = counter.tables([Family(target, evidence)], missing=True)
    flat = table.reshape(len(table), -1)
    places = np.flatnonzero(flat.any(axis=0))
    columns = np.unravel_index(places, table.shape[1:]) if evidence else ()
    codes = dict(zip(evidence, columns, strict=True))
    codes[target] = np.zeros(len(places), np.intp)  # which is not evidence
    known = {name: counter.variables[name] for name in codes}
    narrow = {name: column.astype(np.uint16) for name, column in codes.items()}
    prediction = predicted(network, SiteData(known, narrow), target)
    states = len(counter.variables[target].states)
    probabilities = prediction.probabilities[:, :states]
    probabilities /= probabilities.sum(axis=1, keepdims=True)  # without a state for missing values
    counts = flat[:, places].T
    impossible = int(counts[prediction.impossible, :states].sum())
    return evidence, _repeated(probabilities, counts, impossible)


def markov_blanket(structure: Structure, target: str) -> Names:
    """Return the parents, the children and the other parents of the children of a node.

    Examples
    --------
    >>> markov_blanket(Structure({"a": (), "b": ("a",), "c": (), "d": ("b", "c"), "e": ()}), "b")
    ('a', 'c', 'd')
    """
    parents = structure.parents
    families = [(node, *parents[node]) for node in structure.nodes if target in parents[node]]
    near = {*parents[target], *(name for family in families for name in family)} - {target}
    return tuple(name for name in structure.nodes if name in near)


def _check_size(counter: Counter, target: str, evidence: Names) -> None:
    """Refuse a table that is too wide or too large."""
    lengths = axis_lengths(counter.variables, missing=True)
    cells = prod(lengths[name] for name in (target, *evidence))
    most = counter.most_variables
    if cells <= MOST_CELLS and (most is None or len(evidence) < most):
        return
    wide = f"at most {most} variables and " if most is not None else "at most "
    raise TooLargeError(
        f"the validation holdout was not done: the table of {target} and the "
        f"{counted(len(evidence), 'variable')} around it has {cells:,} cells, and {wide}"
        f"{MOST_CELLS:,} cells are possible; a target of two states without missing values needs "
        "no such table: learn with fewer parents, or predict another variable"
    )


def _repeated(
    probabilities: NDArray[np.float64], counts: NDArray[np.int64], impossible: int = 0
) -> Scored:
    """Return the predictions of each record: counts by predicted distribution, and class."""
    rows, classes = np.nonzero(counts)
    times = counts[rows, classes]
    each = np.round(probabilities[np.repeat(rows, times)], DIGITS)
    return Scored(np.repeat(classes, times), each, impossible)
