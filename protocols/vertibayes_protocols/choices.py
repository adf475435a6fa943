"""Choices: which candidate of a set has the highest score, whoever computes the scores.

A learner that asks for choices sees the winners and no table. A candidate's score is a sum and
difference of scores of families and of a public constant, so that a learner can compare parents of
a node as well as moves that change several nodes, and can subtract a penalty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log2
from typing import Literal, NamedTuple, TypeAlias

from vertibayes_protocols.variables import Family, Rows

ScoreKind: TypeAlias = Literal["k2", "likelihood"]


class Score(NamedTuple):
    """The score of a family, added to or subtracted from that of a candidate."""

    family: Family  # the child and its parents
    within: tuple[str, ...] = ()  # further variables
    sign: int = 1  # 1 to add the score, -1 to subtract it


class Constant(NamedTuple):
    """A public number that is added to the score of a candidate."""

    millionths: int  # in millionths of a nat: whole, so that all parties add the same


Term: TypeAlias = Score | Constant
Candidate: TypeAlias = tuple[Term, ...]  # an empty candidate has the score 0


@dataclass(frozen=True, slots=True)
class Choices:
    """Sets of candidates: in each the first of those with the highest score wins."""

    sets: tuple[tuple[Candidate, ...], ...]  # the candidates of each set: at least two
    missing: bool = False
    rows: Rows = Rows()  # which records are counted; all by default
    score: ScoreKind = "k2"  # what the score of a family is

    @property
    def bits(self) -> float:
        """How many bits the winners have at most, with one that says whether each is narrow."""
        return bits_of(map(len, self.sets))


def bits_of(sizes: Iterable[int]) -> float:
    """Return the bits of the winners of sets with so many candidates, as `Choices.bits`."""
    return sum(1 + log2(size) for size in sizes)


def constants_last(choices: Choices) -> Choices:
    """Return choices in which each candidate ends with at most one constant, which is not 0.

    This is the form in which choices are asked: all parties compare the same.

    Examples
    --------
    >>> score = Score(Family("a"))
    >>> choices = Choices((((Constant(-2), score, Constant(-3)), (Constant(0),)),))
    >>> constants_last(choices).sets[0] == ((score, Constant(-5)), ())
    True
    """
    return replace(choices, sets=tuple(tuple(map(_constant_last, one)) for one in choices.sets))


def _constant_last(candidate: Candidate) -> Candidate:
    if not any(isinstance(term, Constant) for term in candidate[:-1]) and (
        candidate[-1:] != (Constant(0),)
    ):
        return candidate
    total = constant_of(candidate)
    return (*scores_of(candidate), Constant(total)) if total else scores_of(candidate)


def scores_of(candidate: Candidate) -> tuple[Score, ...]:
    """Return the scores of a candidate, without its constants."""
    return tuple([term for term in candidate if isinstance(term, Score)])


def constant_of(candidate: Candidate) -> int:
    """Return the sum of a candidate's constants, in millionths of a nat."""
    return sum(term.millionths for term in candidate if isinstance(term, Constant))
