"""The area under the ROC curve on private records, which lie at several sites."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.odds_tables import odds_tables
from vertibayes.network import Network
from vertibayes.prediction_over_sites import evidence_of
from vertibayes.sampling import sample
from vertibayes.validation.auc import Auc
from vertibayes_protocols.odds import Odds
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries.predictions.score_table import ScoreTable, check_target
from vertibayes_protocols.release import Rule
from vertibayes_protocols.variables import Rows

EXACT = Rule("exact")
BINS = 128
WHOLE = 1 << 12  # the square of WHOLE * SAMPLES stays below 2**53
MISSING = 0.2  # share of the values that are missing in these records, where values may be
SAMPLES = 20_000  # records of the network, whose log odds say where thresholds lie


def auc_over_sites(
    study: OpenStudy,
    network: Network,
    target: str,
    evidence: Collection[str] | None = None,
    *,
    rows: Rows = Rows(),
    rule: Rule = EXACT,
    bins: int = BINS,
) -> Auc:
    """Return the AUC of a network's predictions for records that nobody has together.

    The sites reveal one table, by the rule: how many records of each class have log odds in each of
    `bins` bins. Between the thresholds of a bin, records count as equal.

    Parameters
    ----------
    study : OpenStudy
        The study whose records are predicted; one of its sites holds the target, of two states.
    network, target, evidence, rows
        As of `vertibayes.prediction_over_sites.predict_over_sites`.
    rule : Rule, default=exact
        By which rule the table is released.
    bins : int, default=128
        From 2 to 256; fewer if the log odds have fewer values. The thresholds follow from the log
        odds of records drawn from the network.

    Returns
    -------
    auc : Auc
        With noise or a cut, the number of scored records is that of the released table.

    Raises
    ------
    ValueError
        As `predict_over_sites`; also if no site holds the target, it does not have two states, the
        evidence does not matter for it, or `bins` is out of its range.
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """
    check_target(study.study, target)
    if not 2 <= bins <= 256:
        raise ValueError(f"bins must be from 2 to 256, got {bins}")
    known = evidence_of(study, network, target, evidence)
    needed = odds_tables(network, target, known)
    if not needed.tables:
        raise ValueError(f"the evidence does not matter for {target!r}: all records score the same")
    odds = needed.odds
    thresholds = thresholds_of(network, odds, bins)
    table = study.ask(
        lambda joined: ScoreTable.of(joined, odds, rows, thresholds=thresholds, rule=rule)
    )
    return auc_of_table(table, needed.target.states)


def thresholds_of(network: Network, odds: Odds, bins: int) -> NDArray[np.int64]:
    """Return the thresholds of bins that lose little of the area that the network implies.

    A bin loses half of what its pairs of records win less what they lose. The bin that loses most
    is divided where the two halves lose least, until there are enough bins.
    """
    codes = _codes(network, odds)
    scores = np.zeros(SAMPLES, np.int64)
    for names, numbers in odds.tables:
        scores += numbers[tuple(codes[name] for name in names)][:, 0]
    values, counts = _unequal(scores, len(odds.tables))
    logits = np.clip(np.ldexp(values.astype(float), -odds.fraction_bits), -500, 500)
    above, below = (np.rint(WHOLE * counts / (1 + np.exp(sign * logits))) for sign in (-1, 1))
    losses = _Losses(above, below)  # whole numbers, whose sums all machines compute alike
    parts = [(losses.of(0, len(values)), 0, len(values))]
    while len(parts) < bins and parts[0][2] - parts[0][1] > 1:
        _, start, stop = heappop(parts)
        middle = losses.division(start, stop)
        heappush(parts, (losses.of(start, middle), start, middle))
        heappush(parts, (losses.of(middle, stop), middle, stop))
    starts = sorted(start for _, start, _ in parts if start)
    return np.array([values[at - 1] + (values[at] - values[at - 1]) // 2 for at in starts] or [0])


def _codes(network: Network, odds: Odds) -> dict[str, NDArray[np.integer]]:
    """Return drawn records; what may be missing in the tables is missing in some of them."""
    codes: dict[str, NDArray[np.integer]] = {**sample(network, SAMPLES, seed=0).codes}
    generator = np.random.default_rng(1)  # not the seed of `sample`
    sizes: dict[str, int] = {}
    for names, numbers in odds.tables:
        sizes |= dict(zip(names, numbers.shape[:-1], strict=True))
    for name, size in sorted(sizes.items()):
        if size > len(network.variables[name].states):
            is_missing = generator.random(SAMPLES) < MISSING
            codes[name] = np.where(is_missing, size - 1, codes[name])
    return codes


def _unequal(scores: NDArray[np.int64], tables: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the scores, and how often each comes; equal ones can differ by a unit for each table.

    Of equal scores, the first stands for all.
    """
    values, counts = np.unique(scores, return_counts=True)
    is_first = np.append(True, np.diff(values) > 2 * tables)
    return values[is_first], np.add.reduceat(counts, np.flatnonzero(is_first))


class _Losses:
    """What bins of neighbouring scores lose of the area, negative: the largest loss comes first."""

    def __init__(self, above: NDArray[np.float64], below: NDArray[np.float64]) -> None:
        self.above, self.below = (np.append(0, np.cumsum(each)) for each in (above, below))
        self.won = np.append(0, np.cumsum(above * self.below[:-1]))
        self.lost = np.append(0, np.cumsum(below * self.above[:-1]))

    def of(self, start: int, stop: int) -> float:
        """Return that of one bin; a single score, which cannot be divided, loses nothing."""
        return float(-self._between(np.array(start), np.array(stop)))

    def division(self, start: int, stop: int) -> int:
        """Return where the two halves of a bin lose least."""
        middles = np.arange(start + 1, stop)
        halves = self._between(np.array(start), middles) + self._between(middles, np.array(stop))
        return start + 1 + int(halves.argmin())

    def _between(self, start: NDArray[np.intp], stop: NDArray[np.intp]) -> NDArray[np.float64]:
        above, below = self.above[stop] - self.above[start], self.below[stop] - self.below[start]
        won = self.won[stop] - self.won[start] - self.below[start] * above
        lost = self.lost[stop] - self.lost[start] - self.above[start] * below
        return np.asarray(np.where(stop - start > 1, np.abs(won - lost), 0.0))


def auc_of_table(table: NDArray[np.int64], states: Sequence[str]) -> Auc:
    """Return the area of a table of records by bin of the log odds, and class.

    Examples
    --------
    >>> auc_of_table(np.array([[2, 0], [1, 1], [0, 2]]), ["no", "yes"]).auc
    0.9444444444444444
    """
    counts = np.maximum(table, 0)
    below, above = counts[:, 0].astype(float), counts[:, 1].astype(float)
    pairs = below.sum() * above.sum()
    left_out, scored = int(counts[:, 2:].sum()), int(counts[:, :2].sum())
    if not pairs:
        return Auc(None, {}, scored, left_out)
    won = float(above @ (np.cumsum(below) - below / 2) / pairs)
    return Auc(won, dict.fromkeys(states, won), scored, left_out)
