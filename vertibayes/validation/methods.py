"""Validation on public records, and without any: SCV and SVDG (van Daalen et al. 2024).

SCV splits synthetic records of the intermediate network into folds: it opens no table more, and is
optimistic where the network's structure is wrong, since its test records follow it. SVDG splits
the private records: in each fold a network is trained on the others' tables, and tested on
synthetic records of a network that has the fold's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from protocols.variables import Family, Rows, Variable
from vertibayes.counting import Counter, Table
from vertibayes.inference.prediction import posterior
from vertibayes.network import Network, Structure
from vertibayes.parameters.em import fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic
from vertibayes.validation.auc import Auc, auc
from vertibayes.validation.curves import Curves, curves

Fit = Callable[[Counter, Structure], Network]

PSEUDO_COUNT = 0.5  # no test record is impossible


@dataclass(frozen=True)
class Validation:
    """What a validation found.

    Attributes
    ----------
    target : str
    overall : Auc
        Over the predictions of all folds together.
    curves : Curves
        Of the same predictions.
    by_fold : tuple of Auc
    """

    target: str
    overall: Auc
    curves: Curves = field(repr=False)
    by_fold: tuple[Auc, ...] = ()

    @property
    def impossible(self) -> int:
        """How many scored records have probability zero: ranked last in each class's AUC."""
        return self.overall.scored - int(self.curves.confusion.sum())


class Without:
    """A counter of all records but some: counts are additive, so it takes a difference.

    Parameters
    ----------
    counter : Counter
    rows : Rows
        Those left out.
    """

    def __init__(self, counter: Counter, rows: Rows) -> None:
        self._counter, self._rows = counter, rows
        self.variables, self.most_variables = counter.variables, counter.most_variables
        self.records = counter.records - rows.count(counter.records)

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families over all records but those left out; see `Counter.tables`.

        Raises
        ------
        ValueError
            Also if a choice of rows is asked.
        """
        if rows != Rows():
            raise ValueError("rows cannot be chosen among those of a difference")
        everything = self._counter.tables(families, missing=missing)
        some = self._counter.tables(families, missing=missing, rows=self._rows)
        return [a - b for a, b in zip(everything, some, strict=True)]


def public(network: Network, data: SiteData, target: str) -> Validation:
    """Validate on records that the analyst has.

    Raises
    ------
    ValueError
        If the target is none of the network's, or a variable's states differ from the network's.
    """
    for name, variable in network.variables.items():
        if name in data.variables and data.variables[name].states != variable.states:
            raise ValueError(f"{name} has other states in the data than in the network")
    if target not in data.variables:
        raise ValueError(f"the data have no variable {target!r}")
    found = [_prediction(network, data, target, np.arange(data.records))]
    return _validated(network.variables[target], found)


def scv(
    counter: Counter, structure: Structure, target: str, *, folds: int = 10, seed: int = 0
) -> Validation:
    """Validate by synthetic cross-fold validation: the tables of the families are opened, no more.

    Raises
    ------
    ValueError
        If there are fewer than two folds, more than records, or the target is unknown.
    """
    _check(counter, structure, target, folds)
    synthetic = draw_synthetic(counter, structure, seed=seed)
    order = np.random.default_rng(seed).permutation(synthetic.records)
    found = []
    for part in np.array_split(order, folds):
        training = _rows_of(synthetic, np.setdiff1d(order, part))
        network = fit_em(training, structure, pseudo_count=PSEUDO_COUNT).network
        found.append(_prediction(network, synthetic, target, part))
    return _validated(counter.variables[target], found)


def svdg(
    counter: Counter,
    structure: Structure,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    fit: Fit | None = None,
) -> Validation:
    """Validate by synthetic validation data: the sites split their records by their common seed.

    The training tables are all records' less the fold's, so that each fold opens the families'
    tables once more.

    Parameters
    ----------
    fit : callable, optional
        (counter, structure) -> network, of the training records; EM from tables if None.

    Raises
    ------
    ValueError
        As `scv`.
    """
    _check(counter, structure, target, folds)
    learn = fit or _fit_from_tables
    found = []
    for number, rows in enumerate(_folds(counter.records, folds, seed)):
        network = learn(Without(counter, rows), structure)
        test = draw_synthetic(counter, structure, seed=seed + number + 1, rows=rows)
        found.append(_prediction(network, test, target, np.arange(test.records)))
    return _validated(counter.variables[target], found)


def _fit_from_tables(counter: Counter, structure: Structure) -> Network:
    return fit_em_from_tables(counter, structure, pseudo_count=PSEUDO_COUNT).network


def _check(counter: Counter, structure: Structure, target: str, folds: int) -> None:
    if target not in structure.nodes:
        raise ValueError(f"the structure has no node {target!r}")
    if not 2 <= folds <= counter.records:
        raise ValueError(f"{folds} folds: from 2 to {counter.records}, the records, is wanted")


def _folds(records: int, folds: int, seed: int) -> Iterator[Rows]:
    ends = [round(k * records / folds) for k in range(folds + 1)]
    for first, last in pairwise(ends):
        yield Rows(seed, first, last)


def _rows_of(data: SiteData, places: NDArray[np.integer]) -> SiteData:
    return SiteData(data.variables, {name: column[places] for name, column in data.codes.items()})


def _prediction(
    network: Network, data: SiteData, target: str, places: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
    """Return the classes of some records, and their predicted probabilities."""
    known = {n: column[places] for n, column in data.codes.items() if n in network.variables}
    return data.codes[target][places], posterior(network, known, target)


def _validated(
    target: Variable, found: Sequence[tuple[NDArray[np.integer], NDArray[np.float64]]]
) -> Validation:
    states = target.states
    classes = np.concatenate([fold[0] for fold in found])
    probabilities = np.concatenate([fold[1] for fold in found])
    by_fold = tuple(auc(*fold, states) for fold in found) if len(found) > 1 else ()
    overall = auc(classes, probabilities, states)
    return Validation(target.name, overall, curves(classes, probabilities, states), by_fold)
