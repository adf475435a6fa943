"""Validation on public records, and without any: SCV and SVDG (van Daalen et al. 2024).

SCV splits synthetic records of the intermediate network into folds: it opens no table more, and is
optimistic where CPTs have few records a column, since its test records follow their chance patterns
as its training records do. SVDG splits the private records: in each fold a network is trained on
the others' tables, and tested on synthetic records of a network that has the fold's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from protocols.variables import Rows, Variable
from vertibayes.counting import Counter, PlainCounter
from vertibayes.counting.counter import Without
from vertibayes.inference.prediction import predicted
from vertibayes.network import Network, Structure
from vertibayes.parameters.em import fit_em
from vertibayes.parameters.em_steps import NoValueError
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic
from vertibayes.validation.auc import Auc, auc, interval_of, mean_of
from vertibayes.validation.curves import Band, Curves, band_of, curves

Fit = Callable[[Counter, Structure], Network]
FoldDone = Callable[[int, int], None]  # folds done, folds


DIGITS = 12  # of a probability: what differs beyond is rounding, and no reason to rank


class Scored(NamedTuple):
    """Records that were predicted: their classes, the probabilities, how many are impossible."""

    classes: NDArray[np.integer]
    probabilities: NDArray[np.float64]
    impossible: int


@dataclass(frozen=True)
class Validation:
    """What a validation found.

    Attributes
    ----------
    target : str
    overall : Auc
        The mean of the folds', weighted by their records: folds have different networks, whose
        predictions are not ranked together.
    curves : Curves
        Of the predictions of all folds together.
    by_fold : tuple of Auc
    bands : mapping of str to Band
        Of each class with a ROC curve in two folds or more, the mean of the folds' curves.
    impossible : int
        The scored records that the model calls impossible (`predicted`).
    synthetic : bool
        Whether the records that were scored are synthetic.
    """

    target: str
    overall: Auc
    curves: Curves = field(repr=False)
    by_fold: tuple[Auc, ...] = ()
    bands: Mapping[str, Band] = field(default_factory=dict, repr=False)
    impossible: int = 0
    synthetic: bool = False

    @property
    def interval(self) -> tuple[float, float] | None:
        """A 95 % interval of the AUC, over the folds."""
        return interval_of(self.by_fold)


def public(network: Network, data: SiteData, target: str) -> Validation:
    """Validate on records that the analyst has.

    Returns
    -------
    validation : Validation
        Without folds.

    Raises
    ------
    ValueError
        If the data have no target, the network has none, or a variable's states differ from the
        network's.
    """
    if target not in data.variables:
        raise ValueError(f"the data have no variable {target!r}")
    return _validated(data.variables[target], [_prediction(network, data, target)])


def scv(
    counter: Counter,
    structure: Structure,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    fit: Fit | None = None,
    progress: FoldDone | None = None,
) -> Validation:
    """Validate by synthetic cross-fold validation.

    Opens the families' tables, missing as a state, and no more.

    Parameters
    ----------
    counter : Counter
    structure : Structure
    target : str
    folds : int, default=10
    seed : int, default=0
        Of the synthetic records and their folds.
    fit : callable, optional
        (counter, structure) -> network, of the training records; exact EM with the
        default pseudo-count if None.
    progress : callable, optional
        Called with (folds done, folds).

    Returns
    -------
    validation : Validation
        A fold whose training records lack all values of a variable has no AUC.

    Raises
    ------
    ValueError
        If there are fewer than two folds, more than records, or the target is unknown.
    """
    check_folds(counter.records, folds)
    _check_target(structure, target)
    synthetic = draw_synthetic(counter, structure, seed=seed)
    order = np.random.default_rng(seed).permutation(synthetic.records)

    def fold(part: NDArray[np.intp]) -> Scored:
        training = synthetic.rows(np.setdiff1d(order, part))
        if fit is not None:
            network = fit(PlainCounter(training), structure)
        else:
            network = fit_em(training, structure).network
        return _prediction(network, synthetic.rows(part), target)

    runs = [partial(fold, part) for part in np.array_split(order, folds)]
    return _folds_run(counter.variables[target], runs, progress)


def svdg(
    counter: Counter,
    structure: Structure,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    fit: Fit | None = None,
    progress: FoldDone | None = None,
) -> Validation:
    """Validate by synthetic validation data: the sites split their records by their common seed.

    The training tables are all records' less the fold's, so that each fold opens the families'
    tables once more. The structure is the one given: learned, it has seen the folds.

    Parameters
    ----------
    counter, structure, target, folds, progress
        As `scv`.
    seed : int, default=0
        Of the folds, with the sites' common one, and of the synthetic records.
    fit : callable, optional
        (counter, structure) -> network, of the training records; EM from tables with the
        default pseudo-count if None.

    Returns
    -------
    validation : Validation
        As `scv`.

    Raises
    ------
    ValueError
        As `scv`.
    QueryRefusedError
        If a site refuses a fold: too few records, or too many record sets.
    """
    check_folds(counter.records, folds)
    _check_target(structure, target)

    def fold(number: int, rows: Rows) -> Scored:
        rest = Without(counter, rows)
        if fit is not None:
            network = fit(rest, structure)
        else:
            network = fit_em_from_tables(rest, structure).network
        test = draw_synthetic(counter, structure, seed=seed + number + 1, rows=rows)
        return _prediction(network, test, target)

    parts = enumerate(_parts(counter.records, folds, seed))
    runs = [partial(fold, number, rows) for number, rows in parts]
    return _folds_run(counter.variables[target], runs, progress)


def check_folds(records: int, folds: int) -> None:
    """Refuse fewer than two folds, and more than records.

    Raises
    ------
    ValueError
        It names the numbers.
    """
    if not 2 <= folds <= records:
        raise ValueError(f"{folds} folds: from 2 to {records}, the records, is wanted")


def _check_target(structure: Structure, target: str) -> None:
    if target not in structure.nodes:
        raise ValueError(f"the structure has no node {target!r}")


def _parts(records: int, folds: int, seed: int) -> Iterator[Rows]:
    ends = [round(k * records / folds) for k in range(folds + 1)]
    for first, last in pairwise(ends):
        yield Rows(seed, first, last)


def _prediction(network: Network, data: SiteData, target: str) -> Scored:
    """Return the classes of records, and their predicted probabilities.

    That of a missing class, where it is a state, is left out.
    """
    found = predicted(network, data, target)
    states = len(data.variables[target].states)
    classes = data.codes[target]
    impossible = int((found.impossible & (classes < states)).sum())
    return Scored(classes, np.round(found.probabilities[:, :states], DIGITS), impossible)


def _folds_run(
    target: Variable, runs: Sequence[Callable[[], Scored]], progress: FoldDone | None
) -> Validation:
    """Run the folds; one that cannot be learned predicts nothing."""
    found: list[Scored] = []
    for done, run in enumerate(runs):
        if progress is not None:
            progress(done, len(runs))
        try:
            found.append(run())
        except NoValueError:
            found.append(Scored(np.empty(0, np.uint8), np.empty((0, len(target.states))), 0))
    return replace(_validated(target, found), synthetic=True)


def _validated(target: Variable, found: Sequence[Scored]) -> Validation:
    states = target.states
    classes = np.concatenate([fold.classes for fold in found])
    probabilities = np.concatenate([fold.probabilities for fold in found])
    by_fold = tuple(auc(fold.classes, fold.probabilities, states) for fold in found)
    return Validation(
        target.name,
        mean_of(by_fold),
        curves(classes, probabilities, states),
        by_fold if len(found) > 1 else (),
        _bands([curves(fold.classes, fold.probabilities, states) for fold in found]),
        sum(fold.impossible for fold in found),
    )


def _bands(folds: Sequence[Curves]) -> dict[str, Band]:
    """Return the mean of the folds' ROC curves, of each class that two or more have one of."""
    states = dict.fromkeys(state for fold in folds for state in fold.calibration)
    rocs = {state: [fold.roc[state] for fold in folds if state in fold.roc] for state in states}
    return {state: band_of(found) for state, found in rocs.items() if len(found) > 1}
