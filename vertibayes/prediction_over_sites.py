"""Prediction of records whose values lie at several sites: posteriors, AUC, approved studies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.inference.odds_tables import odds_tables
from vertibayes.model import has_missing_state
from vertibayes.network import Network
from vertibayes.sampling import sample
from vertibayes.validation.measures import Auc
from vertibayes.words import offered
from vertibayes_protocols.odds import MOST_FRACTION_BITS, Odds
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries import Predict, ScoreTable
from vertibayes_protocols.queries.declared_run import declare
from vertibayes_protocols.queries.predictions.score_table import check_target
from vertibayes_protocols.release import Rule
from vertibayes_protocols.variables import Rows, Variable

EXACT = Rule("exact")
BINS = 128
WHOLE = 1 << 12  # the square of WHOLE * SAMPLES stays below 2**53
MISSING = 0.2  # share of the values that are missing in these records, where values may be
SAMPLES = 20_000  # records of the network, whose log odds say where thresholds lie
STEEPEST = 30.0  # nats: log odds beyond which a probability hardly changes
DECLARED_BITS = 24  # a probability differs by less than 1e-6


def predict_over_sites(
    study: OpenStudy,
    network: Network,
    target: str,
    evidence: Collection[str] | None = None,
    rows: Rows = Rows(),
) -> NDArray[np.float64]:
    """Return the distribution of a target for records whose values lie at several sites.

    The analyst learns these distributions, and no site learns a value of another site. The policy
    of each site that holds evidence counts the records (`most_scores`), because the analyst who
    chooses the network can read the evidence off the distributions.

    Parameters
    ----------
    study : OpenStudy
        The study whose records are predicted (`open_study`, or `SecureCounter.open_study`); its
        sites have committed the evidence.
    network : Network
        The network, with the states that the study's variables have.
    target : str
        The variable that is predicted. If a site holds it, its values are not used.
    evidence : collection of str, optional
        The variables whose values predict the target; all that the study and the network have in
        common if None.
    rows : Rows, default=all records
        The records, in the order of the study.

    Returns
    -------
    probabilities : ndarray of shape (records, states of the target)
        As `vertibayes.predict_proba` returns for the joined records, within 1e-6. Records that are
        impossible under the network are not marked.

    Raises
    ------
    ValueError
        If the study or the network does not have a variable, or a table of the evidence would have
        more than 4,096 rows (`odds_tables`).
    QueryRefusedError, ProtocolError
        As `Session.ask`.
    """
    needed = odds_tables(network, target, evidence_of(study, network, target, evidence))
    records = rows.count(study.study.records)
    if not needed.tables:
        return _distributions(np.tile(needed.constant, (records, 1)))
    odds = needed.odds()
    return _distributions(study.ask(lambda joined: Predict.of(joined, odds, rows)))


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
        As of `predict_over_sites`.
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
    odds = _odds(network, target, evidence_of(study, network, target, evidence))
    return _auc(study, odds, rows, thresholds_of(network, odds, bins), rule)


class ScoredBins(NamedTuple):
    """How many records of each class have log odds in each bin."""

    evidence: tuple[str, ...]  # the variables that matter
    probabilities: NDArray[np.float64]  # of shape (bins, 2): those of the bin's mean log odds
    table: NDArray[np.int64]  # of shape (bins, codes of the target)


def scored_bins(study: OpenStudy, network: Network, target: str, rows: Rows) -> ScoredBins | None:
    """Return how records that nobody has together are predicted, from one exact score table.

    Nothing is asked, and the result is None, if the evidence does not matter for the target, or
    values of it are missing so that `odds_tables` refuses.

    Half of the thresholds divide log odds where the area gains most, the others where a probability
    changes most. The mean log odds of a bin are those of records drawn from the network.
    """
    check_target(study.study, target)
    try:
        odds = _odds(network, target, evidence_of(study, network, target, None))
    except ValueError:
        return None
    values, counts = _drawn(network, odds)
    wide = np.ldexp(np.linspace(-STEEPEST, STEEPEST, BINS // 2), odds.fraction_bits)
    places = np.unique(np.searchsorted(values, wide))
    even = _between(values, places[(places > 0) & (places < len(values))])
    all_ = len(values) <= BINS  # each value has a bin
    thresholds = thresholds_of(network, odds, BINS if all_ else BINS // 2)
    thresholds = thresholds if all_ else np.union1d(thresholds, even)
    table = study.ask(
        lambda joined: ScoreTable.of(joined, odds, rows, thresholds=thresholds, rule=EXACT)
    )
    bins = np.searchsorted(thresholds, values, side="right")
    sums, sizes = (np.bincount(bins, w, len(table)) for w in (values * counts, counts))
    logs = np.ldexp(sums / np.maximum(sizes, 1), -odds.fraction_bits)
    variables = dict.fromkeys(name for names, _ in odds.tables for name in names)
    return ScoredBins(tuple(variables), _distributions(logs[:, None]), table)


@dataclass(frozen=True)
class DeclaredPrediction:
    """What an approved study asks of the records' log odds: it follows from the model's file alone.

    The analyst and the owner of each site compute the same tables, on different machines. The
    tables are therefore coarser than those of `predict_over_sites`, so that machines whose
    logarithms differ in the last bits round them to the same integers.
    """

    network: Network
    target: str
    evidence: Collection[str]
    may_be_missing: Collection[str] = ()  # those of which sites miss values
    records: int | None = None  # the number of records, first in the order of the study
    rule: Rule | None = None  # by which rule the table of the AUC is released
    bins: int = BINS

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.may_be_missing) - set(self.evidence)):
            raise ValueError(f"{unknown[0]} may be missing, but is not among the evidence")
        _ = self.query  # which checks the rest
        states = self.network.variables[self.target].states
        if self.rule is not None and len(states) != 2:
            raise ValueError(
                f"the target {self.target!r} has {len(states)} states; an AUC needs two"
            )

    @property
    def rows(self) -> Rows:
        """The records."""
        return Rows(last=self.records)

    @cached_property
    def odds(self) -> Odds:
        """The tables that the sites look up."""
        known = {name: self._variable(name) for name in self.evidence}
        return _odds(self.network, self.target, known, DECLARED_BITS)

    @cached_property
    def thresholds(self) -> NDArray[np.int64]:
        """The thresholds of the AUC's bins."""
        return thresholds_of(self.network, self.odds, self.bins)

    @property
    def query(self) -> dict[str, Any]:
        """The query as a contract declares it."""
        if self.rule is None:
            return declare(Predict((), b"", 0, self.odds.shape, self.rows))
        asked = self.odds.shape, self.rows, self.thresholds, self.rule
        return declare(ScoreTable((), b"", 0, *asked))

    def predict(self, study: OpenStudy) -> NDArray[np.float64]:
        """Return the posteriors of the records, as `predict_over_sites` does."""
        self._check(study)
        return _distributions(study.ask(lambda joined: Predict.of(joined, self.odds, self.rows)))

    def auc(self, study: OpenStudy) -> Auc:
        """Return the AUC by the rule, as `auc_over_sites` does."""
        assert self.rule is not None
        self._check(study)
        return _auc(study, self.odds, self.rows, self.thresholds, self.rule)

    def _variable(self, name: str) -> Variable:
        """Return a variable of the evidence as sites have it, if the network has it."""
        own = self.network.variable(name)
        states = own.states[:-1] if has_missing_state(own) else own.states
        return Variable(name, states, name in self.may_be_missing)

    def _check(self, study: OpenStudy) -> None:
        """Refuse sites whose variables the contract does not describe, before a run is used up."""
        for name, known in evidence_of(study, self.network, self.target, self.evidence).items():
            declared = self._variable(name)
            if known.states != declared.states:
                raise ValueError(
                    f"{name} has other states at the sites than in the network, or in another order"
                )
            if known.missing and not declared.missing:
                raise ValueError(
                    f"values of {name} are missing at its site: add it to `may_be_missing`, or "
                    "leave it out of `evidence`"
                )
            if declared.missing and not known.missing:
                raise ValueError(f"no value of {name} is missing: remove it from `may_be_missing`")


def evidence_of(
    study: OpenStudy, network: Network, target: str, names: Collection[str] | None
) -> dict[str, Variable]:
    """Return the variables of the evidence as the study has them."""
    known = study.study.variables
    if names is None:
        names = [name for name in known if name in network.variables and name != target]
    for name in names:
        if name not in known:
            raise ValueError(f"the study has no variable {name!r}; it has {offered(name, known)}")
    return {name: known[name] for name in names}


def _odds(
    network: Network, target: str, known: Mapping[str, Variable], bits: int = MOST_FRACTION_BITS
) -> Odds:
    needed = odds_tables(network, target, known)
    if not needed.tables:
        raise ValueError(
            f"the evidence does not matter for {target!r}: all records have the same posterior"
        )
    return needed.odds(bits)


def _distributions(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution of each row of log odds against the first state."""
    logs = np.column_stack([np.zeros(len(log_odds)), log_odds])
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _auc(
    study: OpenStudy, odds: Odds, rows: Rows, thresholds: NDArray[np.int64], rule: Rule
) -> Auc:
    table = study.ask(
        lambda joined: ScoreTable.of(joined, odds, rows, thresholds=thresholds, rule=rule)
    )
    return auc_of_table(table, odds.states)


# ---- the bins of an AUC --------------------------------------------------------------------------


def thresholds_of(network: Network, odds: Odds, bins: int) -> NDArray[np.int64]:
    """Return the thresholds of bins that lose little of the area that the network implies.

    A bin loses half of what its pairs of records win less what they lose. The bin that loses most
    is divided where the two halves lose least, until there are enough bins.
    """
    values, counts = _drawn(network, odds)
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
    return _between(values, np.array(starts, np.intp)) if starts else np.zeros(1, np.int64)


def _between(values: NDArray[np.int64], places: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return thresholds between some values and the values before them."""
    before = values[places - 1]
    return np.asarray(before + (values[places] - before) // 2)


def _drawn(network: Network, odds: Odds) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the unequal log odds of records of the network, and how often each comes."""
    codes = _codes(network, odds)
    scores = np.zeros(SAMPLES, np.int64)
    for names, numbers in odds.tables:
        scores += numbers[tuple(codes[name] for name in names)][:, 0]
    return _unequal(scores, len(odds.tables))


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
