"""A site's part in the ring: it blinds and shuffles its own list, then each list that passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.alignment.curve import PIECE_KEYS, POINT_BYTES, TASK_KEYS, Spread, blind, hashed
from vertibayes_mpc.alignment.messages import (
    Incoming,
    Keys,
    Links,
    Marks,
    Outgoing,
    check_numbers,
    empty_rows,
    incoming_numbers,
    outgoing_numbers,
    pack_rows,
    transfer,
    unpack_rows,
)
from vertibayes_mpc.alignment.plan import AlignmentPlan
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import KEY_BYTES, Randomness, Stream, StreamKey
from vertibayes_mpc.ring import Elements, Packed, Ring
from vertibayes_mpc.rounds import Party, Program

MATCHED_BYTES = 16  # of a key: two keys of 10^7 agree in them with a probability below 2^-80


@dataclass(frozen=True)
class Member:
    """A site of the ring: its keys, and what it draws from."""

    party: Party
    sites_key: Stream = field(repr=False)  # of all sites; neither dealer nor matcher knows it
    randomness: Randomness = field(repr=False)  # of its scalar, padding, private orders
    dealer_key: Stream | None = field(default=None, repr=False)  # level 2 only
    spread: Spread = map  # the map of a pool of processes uses several cores


class Chain:
    """What a site has during a run: its scalar and orders, and the list that is at it."""

    def __init__(self, site: Member, plan: AlignmentPlan) -> None:
        self.site, self.plan, self.me = site, plan, site.party
        self.scalar = site.randomness.bytes(KEY_BYTES)
        self.private = StreamKey(site.randomness.bytes(KEY_BYTES))
        self.orders: dict[Party, NDArray[np.intp]] = {}
        self.owner = self.me  # of the list that is here
        self.keys: Packed = np.zeros((0, POINT_BYTES), np.uint8)
        self.rows: list[Elements] = []
        self.identifiers: Sequence[bytes] = ()
        self.padding = b""

    def start(self, identifiers: Sequence[bytes], rows: Sequence[Elements]) -> None:
        """Shuffle this site's list, padded to its public size; mask the rows."""
        plan, size, self.identifiers = self.plan, self.plan.sizes[self.me], identifiers
        order = self.orders[self.me] = self._order(self.private)
        missing = KEY_BYTES * (size - len(identifiers))
        self.padding = bytes(self.private.expand(plan.name("padding"), missing))
        self.rows = []
        for ring, column in zip(plan.rings(self.me), rows, strict=True):
            padded = np.zeros(size, ring.dtype)
            padded[: len(column)] = column
            self.rows.append(padded[order])
        self._mask()

    def _own_keys(self, piece: slice) -> Packed:
        """Hash and blind a piece of this site's list when it leaves: nobody waits for the rest."""
        name, texts = self.plan.name("hash"), self._texts(self.orders[self.me][piece])
        key = self.site.sites_key.elements(Ring(8), name, (KEY_BYTES,)).tobytes()
        tasks = iter(lambda: list(islice(texts, TASK_KEYS)), [])
        return np.frombuffer(hashed(tasks, key, self.scalar, self.site.spread), np.uint8)

    def _texts(self, places: NDArray[np.intp]) -> Iterator[bytes]:
        """Return what is hashed for each place of the list: a person, or padding."""
        known = len(self.identifiers)
        for place in places.tolist():
            at = KEY_BYTES * (place - known)
            if at < 0:
                yield b"p" + self.identifiers[place]
            else:
                yield b"d" + self.padding[at : at + KEY_BYTES]

    def hand_round(self) -> Program[None]:
        """Pass lists along the ring until each has been at all sites; send one to the matcher."""
        plan = self.plan
        for step in range(1, len(plan.sites)):
            yield from self._hand_on(plan.after(self.me, -step))

        def matched(piece: slice) -> Packed:
            return np.ascontiguousarray(self.keys[piece, :MATCHED_BYTES]).reshape(-1)

        outgoing = Outgoing(plan.matcher, self.owner, len(self.keys), MATCHED_BYTES, matched)
        yield from transfer(plan, Keys, [outgoing])
        self.keys = self.keys[:0]

    def _hand_on(self, owner: Party) -> Program[None]:
        """Send the list that is here on; receive, blind and shuffle the list of `owner`."""
        plan, size = self.plan, self.plan.sizes[owner]
        keys, rows = np.empty((size, POINT_BYTES), np.uint8), empty_rows(plan.rings(owner), size)
        sender = plan.after(self.me, -1)

        def store(piece: slice, packed: Packed) -> None:
            end = POINT_BYTES * (int(piece.stop) - int(piece.start))
            keys[piece] = self._blinded(sender, packed[:end])
            unpack_rows(plan.rings(owner), rows, piece, packed[end:], sender)

        receiver, count, most = plan.after(self.me, 1), plan.sizes[self.owner], PIECE_KEYS
        ours, theirs = plan.rings(self.owner), plan.rings(owner)
        sent = Outgoing(receiver, self.owner, count, POINT_BYTES, self._load, rings=ours, most=most)
        incoming = Incoming(sender, owner, size, POINT_BYTES, store, rings=theirs, most=most)
        yield from transfer(plan, Links, [sent], [incoming])
        key = self.private if plan.level == 1 else self._dealer_key
        order = self.orders[owner] = self._order(key, owner)
        self.owner, self.keys, self.rows = owner, keys[order], [column[order] for column in rows]
        self._mask()

    def _load(self, piece: slice) -> Packed:
        rows = pack_rows(self.plan.rings(self.owner), self.rows, piece)
        own = self.owner == self.me
        keys = self._own_keys(piece) if own else self.keys[piece].reshape(-1)
        return np.concatenate([keys, rows])

    def _blinded(self, sender: Party, points: Packed) -> Packed:
        try:
            blinded = blind(points.tobytes(), self.scalar, self.site.spread)
        except ValueError:
            raise MalformedMessageError(sender, "an invalid point: of small order") from None
        return np.frombuffer(blinded, np.uint8).reshape(-1, POINT_BYTES)

    def _order(self, key: Stream, owner: Party = "") -> NDArray[np.intp]:
        """Return the order of a list; at level 2 the dealer follows the lists of other sites."""
        return key.permutation(self.plan.name("order", owner), self.plan.sizes[owner or self.me])

    def _mask(self) -> None:
        """Mask the rows that are here."""
        for at, ring in enumerate(self.plan.rings(self.owner)):
            mask = row_mask(self.plan, self._dealer_key, self.owner, at, ring)
            self.rows[at] = ring.reduce(self.rows[at] + mask)

    @property
    def _dealer_key(self) -> Stream:
        assert self.site.dealer_key is not None  # `share_people` checks it
        return self.site.dealer_key

    def take_back(self) -> Program[NDArray[np.int64]]:
        """Pass the marks of all lists back along the ring; return those of this site's list."""
        plan, sender = self.plan, self.plan.matcher
        outgoing: list[Outgoing] = []
        for step in range(1, len(plan.sites) + 1):
            owner = plan.after(self.me, step)  # the site before its owner is the last of a list
            marks = np.empty(plan.sizes[owner], np.int64)
            yield from transfer(plan, Marks, outgoing, [incoming_numbers(sender, owner, marks)])
            check_numbers(marks, int((marks >= 0).sum()), sender, all_in=False)
            before = np.empty_like(marks)
            before[self.orders.pop(owner)] = marks
            sender = plan.after(self.me, 1)
            outgoing = [outgoing_numbers(plan.after(self.me, -1), owner, before)]
        return before


def row_mask(plan: AlignmentPlan, key: Stream, owner: Party, at: int, ring: Ring) -> Elements:
    """Return the mask that a site adds to one row element of a list, in the order that it sends."""
    return key.elements(ring, plan.name("row mask", owner, at), (plan.sizes[owner],))
