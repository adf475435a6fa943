"""From functions and numbers of counts to messages: which sites look up what, in which parts.

>>> from vertibayes_mpc.lookups import cut
>>> function = cut(5, 1000)
>>> batches = Batch(("a", "b"), ((function, 10),)), Batch(("a", "b", "c"), ((function, 7),))
>>> plan = LookupPlan(b"an example", Ring(32), batches)
>>> plan.rounds, plan.dealt_bytes, plan.sent_bytes
(4, 2020, 2446)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.labelled import Layout, Piece, size_of
from vertibayes_mpc.lookups.function import PublicFunction
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party

PART_BYTES = 1 << 27  # what the lookups of a part may take in a site's memory
TWO_ROUNDS, MANY_ROUNDS = 3, 4
_BYTE = 8


class Batch(NamedTuple):
    """Lookups of the same sites."""

    holders: tuple[Party, ...]  # who has shares of the counts: two or more, sorted
    pieces: tuple[tuple[PublicFunction, int], ...]  # each with its number of counts, in order

    @property
    def counts(self) -> int:
        """The number of lookups."""
        return sum(count for _, count in self.pieces)


class Slice(NamedTuple):
    """The lookups from `start` to `stop` of a batch, in one part."""

    batch: int
    start: int
    stop: int

    @property
    def counts(self) -> int:
        """The number of lookups."""
        return self.stop - self.start


Digits: TypeAlias = NDArray[np.int64]
Part: TypeAlias = tuple[Slice, ...]  # of several batches, in the order of their numbers


@dataclass(frozen=True)
class LookupPlan:
    """All that the parties do for the lookups of one query, by functions of one size."""

    label: bytes  # names the query and its step: no two plans have the same
    ring: Ring  # of the results
    batches: tuple[Batch, ...]

    def __post_init__(self) -> None:
        for holders, pieces in self.batches:
            if len(holders) < 2 or list(holders) != sorted(set(holders)):
                raise ValueError(f"holders must be two or more, sorted, got {holders}")
            if any(count < 0 for _, count in pieces):
                raise ValueError(f"numbers of counts must be at least 0, got {pieces}")
        sizes = {(f.high, f.low, f.terms) for b in self.batches for f, _ in b.pieces}
        if len(sizes) > 1:
            raise ValueError(f"functions must have the same high, low and terms, got {sizes}")

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        functions = (f for b in self.batches for f, _ in b.pieces)
        return next(((f.high, f.low, f.terms) for f in functions), (1, 1, 1))

    @property
    def high(self) -> int:
        """The number of high digits of a count."""
        return self._sizes[0]

    @property
    def low(self) -> int:
        """The number of low digits of a count."""
        return self._sizes[1]

    @property
    def width(self) -> int:
        """The number of left factors of a lookup, and of right ones: each with a borrow or not."""
        return 2 * self._sizes[2]

    @cached_property
    def counts(self) -> Ring:
        """The ring of high * low elements, in which masked counts are revealed."""
        return Ring(max((self.high * self.low).bit_length() - 1, 1))

    def digits(self, counts: Elements) -> tuple[Digits, Digits]:
        """Split elements of `counts` into high and low digits."""
        whole = counts.astype(np.int64)
        return whole // self.low % self.high, whole % self.low

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that take part, sorted."""
        return tuple(sorted({holder for batch in self.batches for holder in batch.holders}))

    @cached_property
    def name(self) -> bytes:
        """A digest of all that the plan says: part of every label."""
        parts: list[bytes | int] = [self.label, self.ring.bits, PART_BYTES]
        for holders, pieces in self.batches:
            parts += [len(holders), *(holder.encode() for holder in holders), len(pieces)]
            for function, count in pieces:
                parts += [function.digest, count]
        return label("lookups", *parts)

    def part_label(self, number: int, step: int) -> bytes:
        """Return the label of the messages of a round of a part; the dealer's have step 0."""
        return label("lookup message", self.name, number, step)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The lookups in parts of bounded memory: an even share of each batch in each."""
        number = -(-self._most_held(dict(enumerate(b.counts for b in self.batches))) // PART_BYTES)
        parts = (tuple(self._slices(place, number)) for place in range(number))
        return tuple(part for part in parts if part)

    def _slices(self, place: int, number: int) -> Iterator[Slice]:
        for index, batch in enumerate(self.batches):
            ends = (batch.counts * place // number, batch.counts * (place + 1) // number)
            if ends[0] < ends[1]:
                yield Slice(index, *ends)

    def pieces(self, part: Slice) -> Iterator[tuple[PublicFunction, slice]]:
        """Return the functions of a slice, and where their lookups lie in it."""
        at = -part.start
        for function, count in self.batches[part.batch].pieces:
            start, stop = max(at, 0), min(at + count, part.counts)
            at += count
            if start < stop:
                yield function, slice(start, stop)

    def _bytes_held(self, batch: Batch) -> int:
        """Return what one lookup takes at the first site: factors, masks, sums, peers' messages."""
        peers = len(batch.holders) - 1
        words = 2 * self.width * self.ring.dtype.itemsize
        one_hots = self.high + self.low
        if peers > 1:
            one_hots *= 2 * self.ring.dtype.itemsize
        return one_hots + words * (4 + 2 * peers) + 128

    def dealt(self, part: Slice) -> Layout:
        """Return what the dealer sends one site: the second of two, or the first of more."""
        count, one = part.counts, Piece(self.ring, (part.counts,))
        if len(self.batches[part.batch].holders) > 2:
            sizes = self.high, self.low
            return (*(Piece(self.ring, (count, size)) for size in sizes), one)
        return self.bits(self.high, count), self.bits(self.low, count), one, one, one

    def dealt_to(self, part: Slice) -> Party:
        """Return the site to which the dealer sends the masks of a slice."""
        holders = self.batches[part.batch].holders
        return holders[1] if len(holders) == 2 else holders[0]

    def bits(self, size: int, count: int) -> Piece:
        """Return the place of packed bits, `size` for each of `count` lookups."""
        return Piece(Ring(min(size, _BYTE)), (count, -(-size // _BYTE)))

    def rotated(self, part: Slice) -> Layout:
        """Return what a site reveals first: counts under masks."""
        return (Piece(self.counts, (part.counts,)),)

    def factors(self, part: Slice) -> Layout:
        """Return what a site reveals next: left and right factors under masks."""
        return (Piece(self.ring, (2 * self.width, part.counts)),)

    def product(self, part: Slice) -> Layout:
        """Return what each of two sites reveals last: products under masks."""
        return (Piece(self.ring, (part.counts,)),)

    @property
    def rounds(self) -> int:
        """The most rounds of all lookups: three a part, four if more than two sites look up."""
        return sum(
            MANY_ROUNDS if any(len(self.batches[s.batch].holders) > 2 for s in part) else TWO_ROUNDS
            for part in self.parts
        )

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends, labels aside."""
        return sum(size_of(self.dealt(s)) for part in self.parts for s in part)

    @property
    def sent_bytes(self) -> int:
        """The bytes that all sites send, labels aside."""
        return sum(self._sent(s) for part in self.parts for s in part)

    def _sent(self, part: Slice) -> int:
        holders = self.batches[part.batch].holders
        sums = size_of(self.rotated(part)) + size_of(self.factors(part))
        last = size_of(self.product(part)) if len(holders) == 2 else 0
        return 2 * (len(holders) - 1) * (sums + last)

    @property
    def memory(self) -> int:
        """The bytes that a site needs at a time, at most."""
        parts = ({each.batch: each.counts for each in part} for part in self.parts)
        return max(map(self._most_held, parts), default=0)

    def _most_held(self, counts: Mapping[int, int]) -> int:
        """Return what lookups, so many of each batch, take at the site that holds the most."""
        held = dict.fromkeys(self.parties, 0)
        for index, count in counts.items():
            batch = self.batches[index]
            for holder in batch.holders:
                held[holder] += count * self._bytes_held(batch)
        return max(held.values(), default=0)


@dataclass(frozen=True)
class Masks:
    """The streams of a slice under one key."""

    key: Stream
    plan: LookupPlan
    part: Slice

    def rotation(self) -> Elements:
        """Return r, the mask of the counts: shape (counts,)."""
        return self.elements("rotation", Piece(self.plan.counts, (self.part.counts,)))

    def left(self) -> Elements:
        """Return x, the masks of the left factors: shape (plan.width, counts)."""
        return self.elements("left", self._factors)

    def right(self) -> Elements:
        """Return y, the masks of the right factors: shape (plan.width, counts)."""
        return self.elements("right", self._factors)

    def words(self, purpose: str) -> Elements:
        """Return an element of the ring of results for each lookup: shape (counts,)."""
        return self.elements(purpose, Piece(self.plan.ring, (self.part.counts,)))

    @property
    def _factors(self) -> Piece:
        return Piece(self.plan.ring, (self.plan.width, self.part.counts))

    def elements(self, purpose: str, piece: Piece) -> Elements:
        """Return the stream of a purpose, in a ring and shape."""
        return self.key.elements(piece.ring, self.label(purpose), piece.shape)

    def label(self, purpose: str) -> bytes:
        """Return the label of a purpose."""
        return label("lookup", self.plan.name, self.part.batch, self.part.start, purpose)
