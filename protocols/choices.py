"""Choices: which candidate of a set has the highest score, whoever computes the scores.

A learner that asks for choices sees the winners and no table. A candidate's score is a sum and
difference of scores of families, so that a learner can compare parents of a node as well as moves
that change several nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from protocols.variables import Family, Rows


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


Candidate: TypeAlias = tuple[Score, ...]  # an empty candidate has the score 0


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
    """

    sets: tuple[tuple[Candidate, ...], ...]
    missing: bool = False
    rows: Rows = Rows()
