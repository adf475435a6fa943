"""The dealer's program at level 2: the masks of the rows that are in the study."""

from __future__ import annotations

from collections.abc import Mapping

from mpc.alignment.plan import AlignmentPlan
from mpc.randomness import Stream
from mpc.rounds import Party, Program


def deal_people(keys: Mapping[Party, Stream], plan: AlignmentPlan) -> Program[int]:
    """Follow the masks of the rows through the sites' orders; return the number of people.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : AlignmentPlan
        The plan, of level 2.

    Raises
    ------
    MalformedMessageError
        If places recur: the table of one person would be counted several times.
    TooFewPeopleError, PeopleNotApartError
        As all sites.
    """
    raise NotImplementedError
