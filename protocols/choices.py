"""Choices: which candidate of a set has the highest score, whoever computes the scores.

A learner that asks for choices sees the winners and no table. A candidate's score is a sum and
difference of scores of families and of a public constant, so that a learner can compare parents of
a node as well as moves that change several nodes, and can subtract a penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from protocols.variables import Family, Rows

ScoreKind: TypeAlias = Literal["k2", "likelihood"]


class Score(NamedTuple):
    """The score of a family, added to or subtracted from that of a candidate.

    Attributes
    ----------
    family : Family
        The child and its parents.
    within : tuple of str, default=()
        Further variables: only records that are complete in them too are counted. They make a
        difference if they miss values.
    sign : int, default=1
        1 to add the score, -1 to subtract it.
    """

    family: Family
    within: tuple[str, ...] = ()
    sign: int = 1


class Constant(NamedTuple):
    """A public number that is added to the score of a candidate.

    Attributes
    ----------
    millionths : int
        In millionths of a nat: whole, so that all parties add the same.
    """

    millionths: int


Term: TypeAlias = Score | Constant
Candidate: TypeAlias = tuple[Term, ...]  # an empty candidate has the score 0


@dataclass(frozen=True, slots=True)
class Choices:
    """Sets of candidates, in each of which the candidate with the highest score wins.

    Of equal candidates the first wins.

    Parameters
    ----------
    sets : tuple of tuple of Candidate
        The candidates of each set: at least two.
    missing : bool, default=False
        False counts the records that are complete in a score's family and `within`. True counts a
        missing value as a further state.
    rows : Rows
        Which records are counted; all by default.
    score : "k2" or "likelihood", default="k2"
        What the score of a family is: its K2 score, or its largest log-likelihood.
    """

    sets: tuple[tuple[Candidate, ...], ...]
    missing: bool = False
    rows: Rows = Rows()
    score: ScoreKind = "k2"
