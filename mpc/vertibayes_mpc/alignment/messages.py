"""The messages of an alignment: keys, rows and places, in pieces of at most `PIECE_BYTES`.

A list of 10^6 keys has 32 MB and more. Each message names the run, the list and its place in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.alignment.plan import AlignmentPlan
from vertibayes_mpc.errors import MalformedMessageError, PeopleNotApartError, TooFewPeopleError
from vertibayes_mpc.labelled import (
    LABEL_BYTES,
    Labelled,
    Layout,
    Piece,
    labelled_bytes,
    packed,
    receive,
    unpacked,
)
from vertibayes_mpc.ring import Elements, Packed, Ring
from vertibayes_mpc.rounds import Expect, Party, Program, exchange

PIECE_BYTES = 1 << 22
NUMBERS = Ring(32)  # places and marks
COUNTS = Ring(64)
NOWHERE = 2**32 - 1
E = TypeVar("E", bound="Entries")


class Links(Labelled, kind="alignment links"):
    """Blinded keys, and at level 2 masked rows, for the next site of the ring."""


class Keys(Labelled, kind="alignment keys"):
    """Keys that all sites have blinded, for the matcher: the first 16 bytes of each."""


class Outcome(Labelled, kind="alignment outcome"):
    """From the matcher: n, how many of them the receiver holds, and how many both of each pair."""


class Marks(Labelled, kind="alignment marks"):
    """Level 1: the mark of each key of a list, on the way back; `NOWHERE` outside the study."""


class Places(Labelled, kind="alignment places"):
    """Level 1, from the matcher to the owner of a list: the place of each mark in the study."""


class Chosen(Labelled, kind="alignment chosen"):
    """Level 2, from the matcher: where in a list each person of the study is; or `NOWHERE`."""


class Rows(Labelled, kind="alignment rows"):
    """Level 2: the masked rows of the study, for the first site."""


class RowMasks(Labelled, kind="alignment row masks"):
    """Level 2, from the dealer to the first site: what it must subtract from the rows."""


@dataclass(frozen=True)
class Entries:
    """Entries of one list that travel between this party and one peer."""

    peer: Party
    owner: Party
    count: int
    size: int  # bytes of each, its row aside
    rings: Sequence[Ring] = field(default=(), kw_only=True)  # of the elements of its row
    most: int = field(default=PIECE_BYTES, kw_only=True)

    def bytes(self, count: int) -> int:
        """Return the bytes of some entries with their rows."""
        return count * self.size + sum(ring.packed_size(count) for ring in self.rings)

    @property
    def pieces(self) -> Iterator[slice]:
        """The places of the entries in each message."""
        step = min(self.most, max(1, PIECE_BYTES // max(1, self.bytes(1))))
        for start in range(0, self.count if self.bytes(1) else 0, step):
            yield slice(start, min(start + step, self.count))


@dataclass(frozen=True)
class Outgoing(Entries):
    """Entries that this party sends: `load` returns the bytes of those in a slice."""

    load: Callable[[slice], Packed]


@dataclass(frozen=True)
class Incoming(Entries):
    """Entries that this party receives: `store` takes the bytes of those in a slice."""

    store: Callable[[slice, Packed], object]


def transfer(
    plan: AlignmentPlan,
    kind: type[Labelled],
    outgoing: Sequence[Outgoing] = (),
    incoming: Sequence[Incoming] = (),
) -> Program[None]:
    """Send and receive lists, piece by piece; no two of one direction have the same peer."""

    def name(entries: Entries, piece: slice) -> bytes:
        return plan.name(kind.kind, entries.owner, piece.start)

    for turn in zip_longest(_in_turns(outgoing), _in_turns(incoming)):
        going, coming = turn[0] or [], turn[1] or []
        outbox = {sent.peer: kind(sent.load(piece), name(sent, piece)) for sent, piece in going}
        expect = {
            taken.peer: Expect(kind, _bytes(taken, piece) + LABEL_BYTES) for taken, piece in coming
        }
        received = yield from exchange(outbox, expect)
        for taken, piece in coming:
            message, size = received.pop(taken.peer), _bytes(taken, piece)
            taken.store(piece, labelled_bytes(message, taken.peer, size, name(taken, piece)))


def _in_turns(entries: Sequence[E]) -> Iterator[list[tuple[E, slice]]]:
    """Return the pieces of several lists by turns: the first one of each list, then the second."""
    pieces = ([(one, piece) for piece in one.pieces] for one in entries)
    for turn in zip_longest(*pieces):
        yield [piece for piece in turn if piece is not None]


def _bytes(entries: Entries, piece: slice) -> int:
    return entries.bytes(int(piece.stop) - int(piece.start))


def outgoing_numbers(peer: Party, owner: Party, numbers: NDArray[np.int64]) -> Outgoing:
    """Return what sends an array of places or marks, -1 as `NOWHERE`."""
    return Outgoing(
        peer,
        owner,
        len(numbers),
        NUMBERS.packed_size(1),
        lambda piece: NUMBERS.pack(numbers[piece].astype(NUMBERS.dtype)),
    )


def incoming_numbers(peer: Party, owner: Party, numbers: NDArray[np.int64]) -> Incoming:
    """Return what receives places or marks into an array."""

    def store(piece: slice, text: Packed) -> None:
        values = NUMBERS.unpack(text, len(numbers[piece])).astype(np.int64)
        numbers[piece] = np.where(values == NOWHERE, -1, values)

    return Incoming(peer, owner, len(numbers), NUMBERS.packed_size(1), store)


def outgoing_rows(
    plan: AlignmentPlan, peer: Party, owner: Party, columns: Sequence[Elements], count: int
) -> Outgoing:
    """Return what sends `count` rows of a list."""
    rings = plan.rings(owner)

    def load(piece: slice) -> Packed:
        return pack_rows(rings, columns, piece)

    return Outgoing(peer, owner, count, 0, load, rings=rings)


def incoming_rows(
    plan: AlignmentPlan, peer: Party, owner: Party, columns: Sequence[Elements], count: int
) -> Incoming:
    """Return what receives `count` rows of a list into columns."""
    rings = plan.rings(owner)

    def store(piece: slice, text: Packed) -> None:
        unpack_rows(rings, columns, piece, text, peer)

    return Incoming(peer, owner, count, 0, store, rings=rings)


def check_numbers(numbers: NDArray[np.int64], limit: int, sender: Party, *, all_in: bool) -> None:
    """Blame the sender of places if they recur or are out of range."""
    inside = numbers[numbers >= 0]
    if len(inside) and inside.max() >= limit:
        raise MalformedMessageError(sender, f"a place out of range: at most {limit - 1} expected")
    if len(inside) and np.bincount(inside, minlength=1).max() > 1:
        raise MalformedMessageError(sender, "a place that recurs: two people cannot have one place")
    if all_in and len(inside) < len(numbers):
        raise MalformedMessageError(sender, "a missing place: all people of the study have one")


def outcome(plan: AlignmentPlan, people: int, held: int, both: Sequence[int]) -> Outcome:
    """Return the matcher's message to one party; the arguments are as of `Outcome`."""
    return Outcome(
        COUNTS.pack(np.array([people, held, *both], COUNTS.dtype)), plan.name(Outcome.kind)
    )


def expect_outcome(plan: AlignmentPlan) -> Program[tuple[int, int]]:
    """Receive n and how many of the people this party holds; raise if the study cannot be."""
    shape, sender = (2 + len(plan.apart),), plan.matcher
    values = yield from receive(Outcome, sender, COUNTS, shape, plan.name(Outcome.kind))
    people, held, *both = (int(value) for value in values)
    if max(held, *both, 0) > people or people > sum(plan.sizes.values()):
        raise MalformedMessageError(sender, "counts of people that cannot be")
    check_outcome(plan, people, both)
    return people, held


def check_outcome(plan: AlignmentPlan, people: int, both: Sequence[int]) -> None:
    """Raise a PeopleNotApartError or a TooFewPeopleError if the study cannot be; see `outcome`."""
    for (one, other), count in zip(plan.apart, both, strict=True):
        if count:
            raise PeopleNotApartError(one, other, count)
    if people < plan.fewest:
        reason = f"too few people in the study: {people}; at least {plan.fewest} expected"
        if not people:
            reason += "; perhaps the sites write identifiers differently: compare their rules"
        raise TooFewPeopleError(plan.sites, reason, people)


def pack_rows(rings: Sequence[Ring], columns: Sequence[Elements], piece: slice) -> Packed:
    """Pack the elements of some rows, column after column."""
    return packed(_layout(rings, piece), (column[piece] for column in columns))


def unpack_rows(
    rings: Sequence[Ring],
    columns: Sequence[Elements],
    piece: slice,
    values: Packed,
    sender: Party,
) -> None:
    """Put the elements that `pack_rows` has packed into the columns."""
    arrays = unpacked(_layout(rings, piece), values, sender)
    for column, elements in zip(columns, arrays, strict=True):
        column[piece] = elements


def _layout(rings: Sequence[Ring], piece: slice) -> Layout:
    return [Piece(ring, (int(piece.stop) - int(piece.start),)) for ring in rings]


def empty_rows(rings: Sequence[Ring], count: int) -> list[Elements]:
    """Return columns of zeros, one for each ring."""
    return [np.zeros(count, ring.dtype) for ring in rings]
