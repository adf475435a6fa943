"""The programs of sites: people's places at level 1, shares of rows at level 2; the dealer's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.alignment.chain import Chain, Member, row_mask
from vertibayes_mpc.alignment.messages import (
    Chosen,
    Places,
    RowMasks,
    Rows,
    check_numbers,
    empty_rows,
    expect_outcome,
    incoming_numbers,
    incoming_rows,
    outgoing_rows,
    transfer,
)
from vertibayes_mpc.alignment.plan import AlignmentPlan
from vertibayes_mpc.errors import MalformedMessageError, TooFewPeopleError, UnknownFaultyPartyError
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program


class Placed(NamedTuple):
    """What a site learns at level 1."""

    people: int  # in the study: n
    places: NDArray[np.int64]  # of each identifier among them; -1 if not in the study


class SharedRows(NamedTuple):
    """What a site has at level 2."""

    people: int  # in the study: n
    shares: dict[Party, list[Elements]]  # by site, of each row element: shape (n,)


def place_people(
    site: Member, plan: AlignmentPlan, identifiers: Sequence[bytes]
) -> Program[Placed]:
    """Learn which people of this site's list are in the study, and their places: level 1.

    `identifiers` are the people of the list, in normal form, each once. A ValueError gives the
    numbers of two records, from 0, that have one, or says that the list is longer than its public
    size. A TooFewPeopleError says that the study has fewer people than `plan.fewest`; a
    PeopleNotApartError, that two sites of a pair in `plan.apart` hold the same people; a
    MalformedMessageError, that a message has a wrong length, a point of small order, or places that
    cannot be.
    """
    if plan.level != 1:
        raise ValueError("the plan has rows of level 2: run `share_people`")
    _check_list(site, plan, identifiers)
    chain = Chain(site, plan)
    chain.start(identifiers, ())
    yield from chain.hand_round()
    people, held = yield from expect_outcome(plan)
    marks = yield from chain.take_back()
    table = np.empty(held, np.int64)
    yield from transfer(plan, Places, (), [incoming_numbers(plan.matcher, site.party, table)])
    check_numbers(table, people, plan.matcher, all_in=True)
    return Placed(people, _places(plan, site.party, marks, len(identifiers), table))


def _places(
    plan: AlignmentPlan, me: Party, marks: NDArray[np.int64], known: int, table: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the place of each person, from the marks of the list and the place of each mark."""
    others = [party for party in (plan.matcher, *plan.sites) if party != me]
    if (marks >= 0).sum() != len(table):
        raise UnknownFaultyPartyError(others, "another number of marks than of places")
    if (marks[known:] >= 0).any():
        raise UnknownFaultyPartyError(others, "padding has a place in the study")
    marked, places = marks[:known], np.full(known, -1, np.int64)
    places[marked >= 0] = table[marked[marked >= 0]]
    return places


def share_people(
    site: Member, plan: AlignmentPlan, identifiers: Sequence[bytes], rows: Sequence[Elements]
) -> Program[SharedRows]:
    """Share the rows of the study's people; nobody learns who they are: level 2.

    `rows` are an array of shape (identifiers,) for each ring of ``plan.rows[site.party]``; where a
    site does not hold a person of the study, its row elements are 0. Errors are those of
    `place_people`; also a ValueError for rows that do not fit the plan, and a TooFewPeopleError if
    a number of people below `plan.fewest`, but not 0, of this site's list is left out.
    """
    if plan.level != 2 or site.dealer_key is None:
        raise ValueError("level 2 needs a plan with rows, and the key shared with the dealer")
    _check_list(site, plan, identifiers)
    _check_rows(plan.rings(site.party), rows, len(identifiers))
    chain = Chain(site, plan)
    chain.start(identifiers, rows)
    yield from chain.hand_round()
    people, held = yield from expect_outcome(plan)
    if site.party in plan.everyone and held != people:
        raise MalformedMessageError(plan.matcher, "a list of everybody has fewer people than n")
    _check_left_out(site, plan, len(identifiers) - held)
    chosen = yield from _choose(chain, people)
    if site.party == plan.sites[0]:
        return SharedRows(people, (yield from _unmasked(plan, chosen, people)))
    outgoing = outgoing_rows(plan, plan.sites[0], chain.owner, chosen, people)
    yield from transfer(plan, Rows, [outgoing])
    return SharedRows(people, {s: shares_of(plan, site.dealer_key, s, people) for s in plan.sites})


def _choose(chain: Chain, people: int) -> Program[list[Elements]]:
    """Return the study's rows of the list that is here, masked; 0 where it does not have them."""
    plan, owner = chain.plan, chain.owner
    chosen = np.empty(people, np.int64)
    yield from transfer(plan, Chosen, (), [incoming_numbers(plan.matcher, owner, chosen)])
    check_numbers(chosen, plan.sizes[owner], plan.matcher, all_in=owner in plan.everyone)
    return [np.where(chosen < 0, column.dtype.type(0), column[chosen]) for column in chain.rows]


def _unmasked(
    plan: AlignmentPlan, chosen: list[Elements], people: int
) -> Program[dict[Party, list[Elements]]]:
    """Return the shares of the first site: the masked rows, less what the dealer sends."""
    me, last = plan.sites[0], {owner: plan.after(owner, -1) for owner in plan.sites}
    rows = {owner: empty_rows(plan.rings(owner), people) for owner in plan.sites}
    rows[plan.sites[1]] = chosen
    incoming = [
        incoming_rows(plan, last[s], s, rows[s], people) for s in plan.sites if last[s] != me
    ]
    yield from transfer(plan, Rows, (), incoming)
    for owner in plan.sites:
        masks = empty_rows(plan.rings(owner), people)
        dealt = incoming_rows(plan, plan.dealer, owner, masks, people)
        yield from transfer(plan, RowMasks, (), [dealt])
        columns = zip(plan.rings(owner), rows[owner], masks, strict=True)
        rows[owner] = [ring.reduce(masked - mask) for ring, masked, mask in columns]
    return rows


def shares_of(plan: AlignmentPlan, key: Stream, owner: Party, people: int) -> list[Elements]:
    """Return the shares of a site that is not the first: streams that it shares with the dealer."""
    rings = enumerate(plan.rings(owner))
    return [key.elements(r, plan.name("row share", owner, at), (people,)) for at, r in rings]


def _check_list(site: Member, plan: AlignmentPlan, identifiers: Sequence[bytes]) -> None:
    size, known = plan.sizes[site.party], len(identifiers)
    if known > size:
        raise ValueError(f"the list has {known} people: more than its public size, {size}")
    if known < size and site.party in plan.exact:
        raise ValueError(
            f"the list has {known} people, and its public size is {size}; they must be equal, "
            "because nobody could distinguish padding from people of the study"
        )
    seen: dict[bytes, int] = {}
    for number, identifier in enumerate(identifiers):
        first = seen.setdefault(identifier, number)
        if first != number:
            raise ValueError(
                f"records {first} and {number} (from 0) have the same identifier; "
                "each person must have one record"
            )


def _check_rows(rings: Sequence[Ring], rows: Sequence[Elements], known: int) -> None:
    given = [(column.shape, column.dtype) for column in rows]
    if given != [((known,), ring.dtype) for ring in rings]:
        expected = ", ".join(str(ring.dtype) for ring in rings)
        raise ValueError(f"rows must be arrays of {known} elements ({expected}), got {given}")


def _check_left_out(site: Member, plan: AlignmentPlan, left_out: int) -> None:
    """Refuse if tables of this site's list, less those of the study, are tables of few people."""
    if left_out < 0:
        raise MalformedMessageError(plan.matcher, "more people in the study than in this list")
    if 0 < left_out < plan.fewest:
        reason = f"fewer than {plan.fewest} people of the list are outside the study, and not 0"
        raise TooFewPeopleError((site.party,), reason, left_out)


def deal_people(keys: Mapping[Party, Stream], plan: AlignmentPlan) -> Program[int]:
    """Follow the masks of the rows through the sites' orders; return the number of people.

    A MalformedMessageError says that places recur: one person would be counted several times.
    """
    people, _ = yield from expect_outcome(plan)
    chosen = {owner: np.empty(people, np.int64) for owner in plan.sites}
    for owner, places in chosen.items():
        yield from transfer(plan, Chosen, (), [incoming_numbers(plan.matcher, owner, places)])
        check_numbers(places, plan.sizes[owner], plan.matcher, all_in=owner in plan.everyone)
    for owner, places in chosen.items():
        masks = _masks(keys, plan, owner, places)
        outgoing = outgoing_rows(plan, plan.sites[0], owner, masks, people)
        yield from transfer(plan, RowMasks, [outgoing])
    return people


def _masks(
    keys: Mapping[Party, Stream], plan: AlignmentPlan, owner: Party, chosen: NDArray[np.int64]
) -> list[Elements]:
    """Return what the first site must subtract: the masks of the rows, and the others' shares."""
    rings = plan.rings(owner)
    totals = empty_rows(rings, len(chosen))
    inside, places = chosen >= 0, chosen[chosen >= 0]
    for site in reversed(plan.chain(owner)):
        for at, ring in enumerate(rings):
            totals[at][inside] += row_mask(plan, keys[site], owner, at, ring)[places]
        if site != owner:
            places = keys[site].permutation(plan.name("order", owner), plan.sizes[owner])[places]
    for site in plan.sites[1:]:
        shares = shares_of(plan, keys[site], owner, len(chosen))
        for total, share in zip(totals, shares, strict=True):
            total += share
    return [ring.reduce(total) for ring, total in zip(rings, totals, strict=True)]
