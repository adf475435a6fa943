"""The protocol `Chooser`, and the chooser that scores tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from vertibayes.counting.counter import MOST_CELLS, Counter, Source, Table, cells_of, portions
from vertibayes.table_scores import k2_scores, log_likelihoods
from vertibayes_protocols.approval import Step, Steps, Winners
from vertibayes_protocols.choices import Candidate, Choices, Constant, ScoreKind
from vertibayes_protocols.variables import Family, Rows, axis_lengths

R = TypeVar("R")
ScoreTables: TypeAlias = Callable[[Sequence[Table]], list[float]]
_Scored: TypeAlias = tuple[Family, tuple[str, ...]]  # a family, and its further variables

SCORES: Mapping[ScoreKind, ScoreTables] = {"k2": k2_scores, "likelihood": log_likelihoods}
RESOLUTION = 6  # decimals of nats: equal sums of scores that were rounded in other orders tie


@runtime_checkable
class Chooser(Source, Protocol):
    """Chooses between candidates by their scores over the records."""

    @property
    def undecided(self) -> int:
        """In how many sets so far the errors of scores may have changed the winner."""
        ...

    def fits(self, family: Family, *, missing: bool = False) -> bool:
        """Whether the table of a family is small enough for a candidate, by public sizes."""
        ...

    def choose(self, choices: Choices) -> Winners:
        """Return the place of the winner of each set.

        Parameters
        ----------
        choices : Choices
            The candidates of each set; the first of equals wins.

        Returns
        -------
        winners : tuple of int
            One place for each set, in order.

        Raises
        ------
        ValueError
            If a variable is unknown or appears twice in a family, or a table has too many cells.
        """
        ...

    def score_error(self, choices: Choices) -> float:
        """Return the largest error of a candidate's score, in nats."""
        ...

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be scored, before any of them is.

        Raises
        ------
        ValueError
            As `choose`; also if a family would take more memory than a party allows.
        """
        ...


class TableChooser:
    """Chooses by the tables of all candidates, which a counter counts.

    The tables of all candidates of all sets are asked for in one call, except that tables which are
    too large to be held in memory together are asked for in several calls. A score that is known
    is not asked for again.

    Parameters
    ----------
    counter : Counter
        The source of all counts.

    Attributes
    ----------
    variables, records, most_variables
        As `Chooser`; those of the counter.
    undecided : int
        0, as scores are exact except for their rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from vertibayes_protocols.choices import Score
    >>> from vertibayes_protocols.site.data import SiteData
    >>> from vertibayes_protocols.variables import Variable
    >>> from vertibayes.counting import PlainCounter
    >>> a = np.array([0, 1] * 20, np.uint8)
    >>> variables = {name: Variable(name, ("no", "yes")) for name in "abc"}
    >>> counter = PlainCounter(SiteData(variables, {"a": a, "b": np.sort(a), "c": a}))
    >>> alone, by_a, by_b = (Score(Family("c", parents)) for parents in ((), ("a",), ("b",)))
    >>> TableChooser(counter).choose(Choices((((alone,), (by_a,)), ((alone,), (by_b,)))))
    (1, 0)
    """

    undecided = 0

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.variables, self.records = counter.variables, counter.records
        self.most_variables = counter.most_variables
        self._lengths = {m: axis_lengths(self.variables, m) for m in (False, True)}
        self._scores: dict[tuple[ScoreKind, bool, Rows], dict[_Scored, float]] = {}

    def fits(self, family: Family, *, missing: bool = False) -> bool:
        """Whether the table of a family has at most `counting.counter.MOST_CELLS` cells."""
        return cells_of(self._lengths[missing], family) <= MOST_CELLS

    def choose(self, choices: Choices) -> Winners:
        """Choose by scores in floating point; see `Chooser.choose`."""
        return tuple(map(_first_highest, self.scores_of(choices)))

    def scores_of(self, choices: Choices) -> list[list[float]]:
        """Return the score of each candidate of each set, in nats."""
        by_table: dict[Family, list[_Scored]] = {}
        key = choices.score, choices.missing, choices.rows
        scores = self._scores.setdefault(key, {})
        for family, within in _scored(choices):
            if (family, within) not in scores:
                table = Family(family.child, (*family.parents, *within))
                by_table.setdefault(table, []).append((family, within))
        for portion in portions(self._lengths[choices.missing], list(by_table)):
            tables = self._counter.tables(portion, missing=choices.missing, rows=choices.rows)
            needed = {
                scored: _margin(table, scored)
                for family, table in zip(portion, tables, strict=True)
                for scored in by_table[family]
            }
            own = SCORES[choices.score](list(needed.values()))
            scores |= zip(needed, own, strict=True)
        return [[_sum(candidate, scores) for candidate in one] for one in choices.sets]

    def score_error(self, choices: Choices) -> float:
        """Return 0: scores are exact except for their rounding."""
        del choices
        return 0.0

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted; see `Chooser.check`."""
        self._counter.check(families, missing=missing)


def _scored(choices: Choices) -> Iterable[_Scored]:
    """Return whatever is scored, each once."""
    return dict.fromkeys(
        (score.family, score.within)
        for candidates in choices.sets
        for candidate in candidates
        for score in candidate
        if not isinstance(score, Constant)
    )


def _margin(table: Table, scored: _Scored) -> Table:
    """Return a family's table, over the records that are complete in the further variables too."""
    within = len(scored[1])
    return np.asarray(table.sum(axis=tuple(range(-within, 0)))) if within else table


def _sum(candidate: Candidate, scores: Mapping[_Scored, float]) -> float:
    """Return the score of a candidate."""
    return fsum(
        term.millionths / 1e6
        if isinstance(term, Constant)
        else term.sign * scores[term.family, term.within]
        for term in candidate
    )


def _first_highest(scores: Sequence[float]) -> int:
    """Return the place of the highest score, the first of equals."""
    rounded = [round(score, RESOLUTION) for score in scores]
    return max(range(len(scores)), key=rounded.__getitem__)  # max takes the first


def chooser_of(source: Counter | Chooser) -> Chooser:
    """Return a chooser as it is, and of a counter one that scores its tables."""
    return source if isinstance(source, Chooser) else TableChooser(source)


def follow(steps: Steps[R], answer: Callable[[Step], Winners]) -> R:
    """Follow a learner's steps to its result.

    Parameters
    ----------
    steps : Steps
        The learner.
    answer : callable
        Takes a step; returns the winners of its sets, and none for a release.
    """
    winners: Winners | None = None
    while True:
        try:
            step = next(steps) if winners is None else steps.send(winners)
        except StopIteration as stop:
            result: R = stop.value
            return result
        winners = answer(step)
