"""The matcher's program: which keys of the lists are one person, and a place for each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.alignment.chain import MATCHED_BYTES
from vertibayes_mpc.alignment.messages import (
    Chosen,
    Incoming,
    Keys,
    Marks,
    Places,
    check_outcome,
    outcome,
    outgoing_numbers,
    transfer,
)
from vertibayes_mpc.alignment.plan import AlignmentPlan
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.randomness import KEY_BYTES, Randomness, StreamKey
from vertibayes_mpc.ring import Packed
from vertibayes_mpc.rounds import Party, Program, send


class Matched(NamedTuple):
    """What the matcher learns: how many people are in the study, and in exactly which lists."""

    people: int  # in the study: n
    regions: dict[tuple[Party, ...], int]  # padding is counted too


def match_people(plan: AlignmentPlan, randomness: Randomness) -> Program[Matched]:
    """Match the blinded keys, and send the sites (and the dealer) the places of their people.

    The order of the study is drawn from `randomness`. A TooFewPeopleError and a PeopleNotApartError
    are raised by all sites, which the matcher informs first; a MalformedMessageError for a list of
    a wrong length; an UnknownFaultyPartyError for a list that has a key twice.
    """
    keys = {site: np.empty((plan.sizes[site], MATCHED_BYTES), np.uint8) for site in plan.sites}
    yield from transfer(plan, Keys, (), [_incoming_keys(plan, s, keys[s]) for s in plan.sites])
    study = _Study(plan, keys, StreamKey(randomness.bytes(KEY_BYTES)))
    people, held = study.people, {site: int((study.places[site] >= 0).sum()) for site in plan.sites}
    outbox = {site: outcome(plan, people, held[site], study.both) for site in plan.sites}
    if plan.level == 2:
        outbox[plan.dealer] = outcome(plan, people, people, study.both)
    yield from send(outbox)
    check_outcome(plan, people, study.both)
    yield from (study.send_marks() if plan.level == 1 else study.send_chosen())
    return Matched(people, study.regions)


def _incoming_keys(plan: AlignmentPlan, owner: Party, keys: Packed) -> Incoming:
    def store(piece: slice, packed: Packed) -> None:
        keys[piece] = packed.reshape(-1, MATCHED_BYTES)

    return Incoming(plan.after(owner, -1), owner, len(keys), MATCHED_BYTES, store)


class _Study:
    """Who is in the study: the place of each key of each list, and how many are in which lists."""

    def __init__(self, plan: AlignmentPlan, keys: dict[Party, Packed], key: StreamKey) -> None:
        self.plan, self.key = plan, key
        order, source, person = _persons(plan, keys)
        lists = np.bitwise_or.reduceat(  # of each person, a bit for each list
            np.int64(1) << source, np.flatnonzero(np.diff(person, prepend=-1))
        )
        everyone = self._bits(plan.everyone)
        inside = np.flatnonzero(lists & everyone == everyone)
        self.people = len(inside)
        pairs = map(self._bits, plan.apart)
        self.both = [int((lists[inside] & pair == pair).sum()) for pair in pairs]
        self.regions = {
            tuple(site for at, site in enumerate(plan.sites) if bits >> at & 1): int(count)
            for bits, count in zip(*np.unique(lists, return_counts=True), strict=True)
        }
        place = np.full(len(lists), -1, np.int64)
        place[inside] = key.permutation(plan.name("places"), len(inside))
        self.places = {site: np.empty(plan.sizes[site], np.int64) for site in plan.sites}
        start = 0
        for at, site in enumerate(plan.sites):
            here = source == at
            self.places[site][order[here] - start] = place[person[here]]
            start += plan.sizes[site]

    def _bits(self, sites: tuple[Party, ...]) -> np.int64:
        return np.int64(sum(1 << self.plan.sites.index(site) for site in set(sites)))

    def send_marks(self) -> Program[None]:
        """Level 1: mark the people of each list, and send the owner the place of each mark."""
        marks, tables = [], []
        for site, places in self.places.items():
            inside = np.flatnonzero(places >= 0)
            # By places, sites on the way back would learn which of their people are in this list.
            mark = self.key.permutation(self.plan.name("marks", site), len(inside))
            marked, table = np.full(len(places), -1, np.int64), np.empty(len(inside), np.int64)
            marked[inside], table[mark] = mark, places[inside]
            marks.append(outgoing_numbers(self.plan.after(site, -1), site, marked))
            tables.append(outgoing_numbers(site, site, table))
        yield from transfer(self.plan, Marks, marks)
        yield from transfer(self.plan, Places, tables)

    def send_chosen(self) -> Program[None]:
        """Level 2: send where people are to the last site of each list, and to the dealer."""
        chosen = {}
        for site, places in self.places.items():
            inside = np.flatnonzero(places >= 0)
            chosen[site] = np.full(self.people, -1, np.int64)
            chosen[site][places[inside]] = inside
        lasts = [
            outgoing_numbers(self.plan.after(site, -1), site, at) for site, at in chosen.items()
        ]
        yield from transfer(self.plan, Chosen, lasts)
        for site, at in chosen.items():
            yield from transfer(self.plan, Chosen, [outgoing_numbers(self.plan.dealer, site, at)])


def _persons(
    plan: AlignmentPlan, keys: dict[Party, Packed]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Sort all keys: return their places, their lists, and the number of each one's person."""
    words = np.concatenate([keys[site] for site in plan.sites]).view("<u8")
    lists = np.repeat(np.arange(len(plan.sites)), [plan.sizes[site] for site in plan.sites])
    order = np.lexsort((lists, words[:, 1], words[:, 0]))
    words, source = words[order], lists[order]
    same = (words[1:] == words[:-1]).all(axis=1)
    if (same & (source[1:] == source[:-1])).any():
        raise UnknownFaultyPartyError(plan.sites, "a list has a key twice")
    return order, source, np.cumsum(np.append(0, ~same))
