"""A race over records: a sample shows which candidates cannot win; all records count the others.

    learner -> chooser    sets of candidates
    chooser -> counter    the tables of all candidates, over a random sample of the records
    chooser -> counter    the tables of those that can still win, over all records
    chooser -> learner    the winners, which are those of all records

A candidate is left out if another one has a higher score on all records, except with the
probability that `vertibayes.choosing.margins` bounds. A set with one candidate left has its winner,
and none of its tables is counted over all records. Pairs of variables do not race.

The tables of the sample are revealed as those of all records are, under the same rules; the ledger
lists them with their records. Only counters that reveal exact tables are asked: choices on shares
and approved studies have no races.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from math import isqrt
from typing import NamedTuple

import numpy as np

from vertibayes.choosing.chooser import Chooser, TableChooser, first_highest
from vertibayes.choosing.margins import Gain, certainty, gain_of
from vertibayes.counting.counter import Counter, portions
from vertibayes_protocols.approval import Winners
from vertibayes_protocols.choices import Candidate, Choices, Constant, Score, constant_of, scores_of
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.variables import Family, Rows

FEWEST = 500_000  # records: with fewer, a sample leaves out too few candidates to pay
TIE = 1e-5  # nats: more than the rounding of scores


class _Asked(NamedTuple):
    """A candidate that raises the score of a child by further parents."""

    family: Family  # the child; the parents that it has without the candidate; the others
    before: int  # how many parents it has without the candidate
    missing: bool  # whether a missing value is a state


class RacingChooser(TableChooser):
    """Chooses by the scores of all records; counts only candidates that a sample leaves."""

    def __init__(self, counter: Counter) -> None:
        super().__init__(counter)
        self._gains: dict[_Asked, Gain] = {}
        self._looks = 0
        self._sample = Rows(last=sample_of(self.records))
        self._pays = self.records >= FEWEST

    def choose(self, choices: Choices) -> Winners:
        """Choose by the scores of all records; see `Chooser.choose`."""
        if not self._can_race(choices):
            return super().choose(choices)
        left = self._left(choices)
        open_ = [
            tuple(one[place] for place in places)
            for one, places in zip(choices.sets, left, strict=True)
            if len(places) > 1
        ]
        scores = iter(self.scores_of(replace(choices, sets=tuple(open_))))
        return tuple(p[first_highest(next(scores))] if len(p) > 1 else p[0] for p in left)

    def _can_race(self, choices: Choices) -> bool:
        """Whether all tables count the same records: all of the study, which are many."""
        complete = choices.missing or not any(v.missing for v in self.variables.values())
        return self._pays and complete and choices.rows.count(self.records) == self.records

    def _left(self, choices: Choices) -> list[list[int]]:
        """Return the places of the candidates of each set that can still win."""
        sets = [_gains_of(one, choices.missing) for one in choices.sets]
        asked = [one for one, _ in chain.from_iterable(each for each in sets if each) if one]
        try:
            self._look([one for one in dict.fromkeys(asked) if one not in self._gains])
        except QueryRefusedError:  # by a site that answers for no further record set
            self._pays = False
        if not self._pays or not asked:
            return [list(range(len(one))) for one in choices.sets]
        self._looks += 1
        sure = certainty(len(asked), self._looks)
        left = []
        for one, each in zip(choices.sets, sets, strict=True):
            left.append(list(range(len(one))))
            if each:
                bounds = [self._bounds(gain, choices, sure) for gain in each]
                highest = max(low for low, _ in bounds)
                left[-1] = [i for i, (_, high) in enumerate(bounds) if high + TIE >= highest]
        return left

    def _bounds(
        self, gain: tuple[_Asked | None, int], choices: Choices, sure: float
    ) -> tuple[float, float]:
        """Return the least and the most that a candidate's score over all records can be."""
        asked, millionths = gain
        low = high = 0.0
        if asked is not None:
            low, high = self._gains[asked].bounds(self.records, sure, choices.score)
        return low + millionths / 1e6, high + millionths / 1e6

    def _look(self, new: Sequence[_Asked]) -> None:
        """Count families over the sample; those of one call agree on missing values."""
        if not new:
            return
        missing, asked = new[0].missing, iter(new)
        if not self._gains:  # a site that answers for one more record set must answer for all
            self._counter.tables([Family(new[0].family.child)], missing=missing)
        for portion in portions(self._lengths[missing], [one.family for one in new]):
            tables = self._counter.tables(portion, missing=missing, rows=self._sample)
            for table in tables:
                one = next(asked)
                before = table.shape[1 : 1 + one.before]
                shape = table.shape[0], int(np.prod(before, dtype=np.int64)), -1
                self._gains[one] = gain_of(table.reshape(shape))


def sample_of(records: int) -> int:
    """Return how many records the sample has: 141,000 of 500,000, and 200,000 of a million."""
    return min(200 * isqrt(records), records)


def chooser_of(source: Counter | Chooser) -> Chooser:
    """Return a chooser as it is, and of a counter one that scores its tables."""
    return source if isinstance(source, Chooser) else RacingChooser(source)


def _gains_of(
    candidates: Sequence[Candidate], missing: bool
) -> list[tuple[_Asked | None, int]] | None:
    """Return each candidate as a gain and a constant; None if one is something else.

    A test compares two scores, not gains: then both are taken relative to the first.
    """
    gains = [_asked(one, missing) for one in candidates]
    if gains[0] is None:
        gains = [(None, 0)]
        gains += [_asked((*one, *map(_minus, candidates[0])), missing) for one in candidates[1:]]
    known = [one for one in gains if one is not None]
    return known if len(known) == len(gains) else None


def _minus(term: Score | Constant) -> Score | Constant:
    if isinstance(term, Constant):
        return Constant(-term.millionths)
    return term._replace(sign=-term.sign)


def _asked(candidate: Candidate, missing: bool) -> tuple[_Asked | None, int] | None:
    """Return the gain of a candidate and its constant; None if it is not one gain of a child."""
    constant, terms = constant_of(candidate), scores_of(candidate)
    if not terms:
        return None, constant
    if len(terms) != 2 or terms[0].sign != 1 or terms[1].sign != -1 or terms[0].within:
        return None
    (child, parents), (same, before), within = terms[0].family, terms[1].family, terms[1].within
    if child != same or not {*before, *within} <= {*parents}:
        return None
    if len(parents) < 2:  # the tables of pairs cost the sites no message
        return None
    others = [name for name in parents if name not in before]
    return _Asked(Family(child, (*before, *others)), len(before), missing), constant
