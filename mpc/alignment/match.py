"""The matcher's program: which keys of the lists are one person, and a place for each."""

from __future__ import annotations

from typing import NamedTuple

from mpc.alignment.plan import AlignmentPlan
from mpc.randomness import Randomness
from mpc.rounds import Party, Program


class Matched(NamedTuple):
    """What the matcher learns.

    `people` is the number of people in the study. `regions` has, for each set of lists that share
    people, how many people are in exactly these lists, padding included; the sites of a key are in
    the order of the ring.
    """

    people: int
    regions: dict[tuple[Party, ...], int]


def match_people(plan: AlignmentPlan, randomness: Randomness) -> Program[Matched]:
    """Match the blinded keys, and send the sites (and the dealer) the places of their people.

    Parameters
    ----------
    plan : AlignmentPlan
        The plan.
    randomness : Randomness
        Where the order of the study is drawn from.

    Raises
    ------
    TooFewPeopleError, PeopleNotApartError
        As all sites, which the matcher informs first.
    MalformedMessageError
        If a list has a wrong length.
    UnknownFaultyPartyError
        If a list has a key twice.
    """
    raise NotImplementedError
