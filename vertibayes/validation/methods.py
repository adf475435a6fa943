"""Validation on public records, or without public records by SCV and SVDG (van Daalen et al. 2024).

SCV splits synthetic records of the intermediate network into folds. It reveals no additional
tables. SVDG splits the private records: in each fold, a network is trained on the tables of the
other folds, and tested on synthetic records of a network of the fold's tables. Both say how well a
network predicts records of its own kind: their test records have no dependency that it lacks. How
well it predicts real ones, `vertibayes.holdout` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Counter, PlainCounter
from vertibayes.counting.counter import Without
from vertibayes.dag import Structure
from vertibayes.inference.intervals import Interval
from vertibayes.inference.prediction import predicted
from vertibayes.network import Network
from vertibayes.parameters.em import NoValueError, fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic
from vertibayes.validation.measures import (
    Auc,
    Band,
    Curves,
    auc,
    band_of,
    curves,
    interval_of,
    mean_of,
)
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Rows, Variable

Fit = Callable[[Counter, Structure], Network]
FoldDone = Callable[[int, int], None]  # folds done, folds
P = TypeVar("P")

DIGITS = 12  # of a probability; smaller differences are rounding errors and do not affect ranks


class Scored(NamedTuple):
    """The classes and predicted probabilities of records, and the number of impossible records."""

    classes: NDArray[np.integer]
    probabilities: NDArray[np.float64]
    impossible: int


@dataclass(frozen=True)
class Validation:
    """The result of a validation.

    Attributes
    ----------
    target : str
        The variable that was predicted.
    overall : Auc
        The mean of the folds' areas, weighted by their records: predictions of different folds come
        from different networks and are not ranked together.
    curves : Curves
        The curves of the predictions of all folds together.
    by_fold : tuple of Auc
        The areas of each fold.
    bands : mapping of str to Band
        The mean of the folds' ROC curves, for each class that has a curve in two or more folds.
    impossible : int
        The number of scored records that are impossible under the network (`predicted`).
    synthetic : bool
        Whether the scored records are synthetic.
    spread : float or None
        The standard deviation of the AUC over further draws of synthetic records; None without any.
    """

    target: str
    overall: Auc
    curves: Curves = field(repr=False)
    by_fold: tuple[Auc, ...] = ()
    bands: Mapping[str, Band] = field(default_factory=dict, repr=False)
    impossible: int = 0
    synthetic: bool = False
    spread: float | None = None

    @property
    def test_records(self) -> str:
        """What the scored records are."""
        return "synthetic" if self.synthetic else "public"

    @property
    def interval(self) -> Interval | None:
        """A 95 % interval of the AUC over the folds."""
        return interval_of(self.by_fold)


def public(network: Network, data: SiteData, target: str) -> Validation:
    """Validate on records that the analyst has, without folds.

    Parameters
    ----------
    network : Network
    data : SiteData
    target : str
        The variable that is predicted.

    Raises
    ------
    ValueError
        If the data or the network do not have the target, or a variable's states differ from those
        of the network.
    """
    if target not in data.variables:
        raise ValueError(f"the data have no variable {target!r}")
    return validated(data.variables[target], [_prediction(network, data, target)])


def scv(
    counter: Counter,
    structure: Structure,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    draws: int = 1,
    fit: Fit | None = None,
    progress: FoldDone | None = None,
) -> Validation:
    """Validate by synthetic cross-fold validation.

    SCV only reveals the families' tables, with missing values as a state. A fold in whose training
    records a variable has no value has no AUC.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    target : str
        The variable that is predicted.
    folds : int, default=10
        The number of folds.
    seed : int, default=0
        The seed of the synthetic records and their folds.
    draws : int, default=1
        How often synthetic records are drawn; the result is that of the first, with the spread.
    fit : callable, optional
        Takes (counter, structure) of the training records and returns a network; exact EM with the
        default pseudo-count if None.
    progress : callable, optional
        Called with (folds done, folds).

    Raises
    ------
    ValueError
        If there are fewer than two folds, more folds than records, or the target is unknown.
    """
    _check(counter, structure, target, folds)

    def drawn(draw: int, done: FoldDone | None) -> Validation:
        synthetic = draw_synthetic(counter, structure, seed=seed + draw)
        order = np.random.default_rng(seed + draw).permutation(synthetic.records)

        def fold(part: NDArray[np.intp]) -> Scored:
            training = synthetic.rows(np.setdiff1d(order, part))
            if fit is None:
                network = fit_em(training, structure).network
            else:
                network = fit(PlainCounter(training), structure)
            return _prediction(network, synthetic.rows(part), target)

        return _over_folds(counter.variables[target], np.array_split(order, folds), fold, done)

    return _over_draws(drawn, draws, progress)


def svdg(
    counter: Counter,
    structure: Structure,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    draws: int = 1,
    fit: Fit | None = None,
    progress: FoldDone | None = None,
) -> Validation:
    """Validate by synthetic validation data: the sites split their records by their common seed.

    The training tables are the tables of all records minus those of the fold: each fold reveals the
    families' tables once more. The structure is the same in all folds; a learned structure has used
    the records of all folds.

    Parameters
    ----------
    counter, structure, target, folds, draws, progress
        As `scv`.
    seed : int, default=0
        The seed of the synthetic records and, with the sites' common seed, of the folds.
    fit : callable, optional
        As `scv`; EM from tables with the default pseudo-count if None.

    Raises
    ------
    ValueError
        As `scv`.
    QueryRefusedError
        If a site refuses a fold because of too few records or too many record sets.
    """
    _check(counter, structure, target, folds)

    @cache  # all draws test the same networks
    def learned(rows: Rows) -> Network:
        rest = Without(counter, rows)
        if fit is None:
            return fit_em_from_tables(rest, structure).network
        return fit(rest, structure)

    def drawn(draw: int, done: FoldDone | None) -> Validation:
        def fold(rows: Rows) -> Scored:
            own = seed + 1 + parts.index(rows) + draw * folds
            network = learned(rows)
            test = draw_synthetic(counter, structure, seed=own, rows=rows)
            return _prediction(network, test, target)

        return _over_folds(counter.variables[target], parts, fold, done)

    ends = [round(k * counter.records / folds) for k in range(folds + 1)]
    parts = [Rows(seed, first, last) for first, last in pairwise(ends)]
    return _over_draws(drawn, draws, progress)


def check_folds(records: int, folds: int) -> None:
    """Refuse fewer than two folds, and more folds than records."""
    if not 2 <= folds <= records:
        raise ValueError(
            f"folds must be between 2 and {records} (the number of records), got {folds}"
        )


def _check(counter: Counter, structure: Structure, target: str, folds: int) -> None:
    check_folds(counter.records, folds)
    if target not in structure.nodes:
        raise ValueError(f"the structure has no node {target!r}")


def _prediction(network: Network, data: SiteData, target: str) -> Scored:
    """Return the classes of records and their probabilities, without that of a missing class."""
    prediction = predicted(network, data, target)
    states = len(data.variables[target].states)
    classes = data.codes[target]
    impossible = int((prediction.impossible & (classes < states)).sum())
    return Scored(classes, np.round(prediction.probabilities[:, :states], DIGITS), impossible)


def _over_draws(
    drawn: Callable[[int, FoldDone | None], Validation], draws: int, progress: FoldDone | None
) -> Validation:
    """Return the result of the first draw, with the spread of the areas of all draws."""

    def done(draw: int) -> FoldDone | None:
        if progress is None:
            return None
        return lambda folds, most: progress(draw * most + folds, draws * most)

    results = [drawn(draw, done(draw)) for draw in range(draws)]
    areas = [result.overall.auc for result in results if result.overall.auc is not None]
    return replace(results[0], spread=float(np.std(areas, ddof=1)) if len(areas) > 1 else None)


def _over_folds(
    target: Variable,
    parts: Sequence[P],
    fold: Callable[[P], Scored],
    progress: FoldDone | None,
) -> Validation:
    """Run the folds; a fold that cannot be learned has no predictions."""
    folds: list[Scored] = []
    for part in parts:
        if progress is not None:
            progress(len(folds), len(parts))
        try:
            folds.append(fold(part))
        except NoValueError:
            folds.append(Scored(np.empty(0, np.uint8), np.empty((0, len(target.states))), 0))
    return replace(validated(target, folds), synthetic=True)


def validated(target: Variable, folds: Sequence[Scored]) -> Validation:
    """Return the validation of the predictions of one or more folds."""
    states = target.states
    classes = np.concatenate([fold.classes for fold in folds])
    probabilities = np.concatenate([fold.probabilities for fold in folds])
    by_fold = tuple(auc(fold.classes, fold.probabilities, states) for fold in folds)
    rocs = [curves(fold.classes, fold.probabilities, states).roc for fold in folds]
    by_class = {state: [roc[state] for roc in rocs if state in roc] for state in states}
    return Validation(
        target.name,
        mean_of(by_fold),
        curves(classes, probabilities, states),
        by_fold if len(folds) > 1 else (),
        {state: band_of(own) for state, own in by_class.items() if len(own) > 1},
        sum(fold.impossible for fold in folds),
    )
