"""Alignment of records: the people whom the lists of several sites share."""

from mpc.alignment.chain import Member, Placed, Shared, place_people, share_people
from mpc.alignment.curve import Spread
from mpc.alignment.dealer import deal_people
from mpc.alignment.match import Matched, match_people
from mpc.alignment.plan import AlignmentPlan

__all__ = [
    "AlignmentPlan",
    "Matched",
    "Member",
    "Placed",
    "Shared",
    "Spread",
    "deal_people",
    "match_people",
    "place_people",
    "share_people",
]
