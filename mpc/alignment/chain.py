"""A site's program: its own list around the ring, the lists of the others on their way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc.alignment.curve import Spread
from mpc.alignment.plan import AlignmentPlan
from mpc.randomness import Randomness, Stream
from mpc.ring import Elements
from mpc.rounds import Party, Program


@dataclass(frozen=True)
class Member:
    """A site of the ring: its keys, and what it draws from.

    Parameters
    ----------
    party : Party
        The name of the site.
    sites_key : Stream
        The key that all sites share, and neither the dealer nor the matcher knows.
    randomness : Randomness
        Where its scalar, its padding and its private orders are drawn from.
    dealer_key : Stream, optional
        Level 2 only: the key that it shares with the dealer.
    spread : callable, optional
        Like `map`, which is the default. The map of a pool of processes uses several cores.
    """

    party: Party
    sites_key: Stream = field(repr=False)
    randomness: Randomness = field(repr=False)
    dealer_key: Stream | None = field(default=None, repr=False)
    spread: Spread = map


class Placed(NamedTuple):
    """What a site learns at level 1.

    `people` is the number of people in the study, n. `places` has the place of each identifier
    among them, and -1 for a person who is not in the study: shape (identifiers,), dtype int64.
    """

    people: int
    places: NDArray[np.int64]


class Shared(NamedTuple):
    """What a site has at level 2.

    `people` is the number of people in the study, n. `shares` has, by site, this site's additive
    shares of each row element over the n people: arrays of shape (n,), in the rings of the plan.
    """

    people: int
    shares: dict[Party, list[Elements]]


def place_people(
    site: Member, plan: AlignmentPlan, identifiers: Sequence[bytes]
) -> Program[Placed]:
    """Learn which people of this site's list are in the study, and their places: level 1.

    Parameters
    ----------
    site : Member
        The keys of this site.
    plan : AlignmentPlan
        The plan, of level 1.
    identifiers : sequence of bytes
        The people of this site's list, in normal form, each once.

    Raises
    ------
    ValueError
        If an identifier appears twice (the text has the numbers of both records, from 0), or the
        list is longer than its public size.
    TooFewPeopleError
        If the study has fewer people than `plan.fewest`.
    PeopleNotApartError
        If two sites of a pair in `plan.apart` hold the same people.
    MalformedMessageError
        If a message has a wrong length, a point of small order, or places that cannot be.
    """
    raise NotImplementedError


def share_people(
    site: Member,
    plan: AlignmentPlan,
    identifiers: Sequence[bytes],
    rows: Sequence[Elements],
) -> Program[Shared]:
    """Share the rows of the study's people; nobody learns who they are: level 2.

    Where a site does not hold a person of the study, its row elements are 0.

    Parameters
    ----------
    site, plan, identifiers
        As of `place_people`; the plan is of level 2.
    rows : sequence of ndarray of shape (identifiers,)
        The row elements of this site: one array for each ring of ``plan.rows[site.party]``.

    Raises
    ------
    ValueError
        As `place_people`; also if `rows` do not fit the plan.
    TooFewPeopleError
        As `place_people`; also if a number of people below `plan.fewest`, but not 0, of this
        site's list is left out.
    PeopleNotApartError, MalformedMessageError
        As `place_people`.
    """
    raise NotImplementedError
