"""Unit vectors at secret indices: what lookups in tables and counts of indices have in common.

The sites h_1 .. h_k have parts of an index of b bits of each record: c = c_1 + .. + c_k.

    Turn      h_s -> h_t       c_s + r_s   mod 2^b              the sum: m = c + r
    Deal      dealer -> h_1    e_r - sum_{s > 1} U_s    e_r: the unit vector at r = r_1 + ..
    locally                    U_s, turned by m: shares of the unit vector at c

r_s is a stream of h_s and the dealer, and so is U_s for s > 1. `vertibayes_mpc.lookups` and
`vertibayes_mpc.argmax` reveal and turn in their own ways: the first turn two vectors, one for each
digit of a count; the second shares single bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.labelled import Labelled, Piece, exchange_arrays, packed
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program, send

PART_BYTES = 1 << 23  # the unit vectors of the records that are treated together
COPIES = 5  # of the unit vectors of a part in a site's memory: packed, words, doubled, turned


class MaskedIndices(Labelled, kind="masked indices"):
    """A site's parts of the indices of all records, under masks."""


class UnitVectors(Labelled, kind="unit vectors"):
    """From the dealer: the first site's shares of unit vectors, of one part of the records."""


@dataclass(frozen=True)
class Indices:
    """What all parties know of secret indices, each of which two or more sites have parts of."""

    kind: str  # the protocol; all labels begin with it
    name: bytes  # a digest of the protocol's plan
    records: int
    ring: Ring  # of the unit vectors
    rings: Mapping[int, Ring]  # of each index, by its number
    holders: Mapping[int, tuple[Party, ...]]  # of each index

    def label(self, purpose: str, *parts: int) -> bytes:
        """Return the label of a stream or message of one purpose."""
        return label(f"{self.kind} {purpose}", self.name, *parts)

    def mask(self, key: Stream, index: int) -> Elements:
        """Return a site's r: shape (records,)."""
        return key.elements(self.rings[index], self.label("indices", index), (self.records,))

    def units(self, key: Stream, index: int, part: slice) -> Elements:
        """Return a site's U in a part: shape (records, size)."""
        name = self.label("units", index, part.start)
        return key.elements(self.ring, name, self.piece(index, part).shape)

    def piece(self, index: int, part: slice) -> Piece:
        """Return the place of the unit vectors of a part in a message."""
        return Piece(self.ring, (part.stop - part.start, 1 << self.rings[index].bits))

    def dealt_to(self, site: Party) -> list[int]:
        """Return the indices of which a site is the first holder: it receives unit vectors."""
        return [index for index, holders in self.holders.items() if holders[0] == site]

    def common(self, site: Party) -> dict[Party, list[int]]:
        """Return by peer the indices of which a site and the peer have parts."""
        peers = sorted({peer for holders in self.holders.values() for peer in holders} - {site})
        both = {p: [i for i, h in self.holders.items() if {site, p} <= set(h)] for p in peers}
        return {peer: indices for peer, indices in both.items() if indices}

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The records in parts of bounded memory; none without indices."""
        each = max(PART_BYTES // max(self._unit_bytes, 1), 1)
        starts = range(0, self.records, each) if self.rings else ()
        return tuple(slice(at, min(at + each, self.records)) for at in starts)

    @property
    def _unit_bytes(self) -> int:
        return sum(self.ring.packed_size(1 << ring.bits) for ring in self.rings.values())

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends, labels aside."""
        return sum(self.piece(index, part).size for part in self.parts for index in self.rings)

    @property
    def sent_bytes(self) -> int:
        """The bytes that sites send each other, labels aside."""
        held = {index: len(holders) for index, holders in self.holders.items()}
        sizes = {index: ring.packed_size(self.records) for index, ring in self.rings.items()}
        return sum(held[i] * (held[i] - 1) * size for i, size in sizes.items())

    @property
    def memory(self) -> int:
        """The bytes that the unit vectors of a part take at a site, about."""
        part = max((part.stop - part.start for part in self.parts), default=0)
        wide = sum(self.ring.dtype.itemsize << ring.bits for ring in self.rings.values())
        return COPIES * part * wide


def deal_units(keys: Mapping[Party, Stream], indices: Indices) -> Program[None]:
    """Deal unit vectors at the masks of indices, part by part; expect nothing."""
    turns = {
        index: ring.reduce(
            reduce(np.add, (indices.mask(keys[site], index) for site in indices.holders[index]))
        )
        for index, ring in indices.rings.items()
    }
    for part in indices.parts:
        outgoing: dict[Party, list[Elements]] = {}
        for index, (first, *others) in indices.holders.items():
            size = 1 << indices.rings[index].bits
            theirs = (indices.units(keys[site], index, part) for site in others)
            units = unit_shares(indices.ring, size, turns[index][part], theirs)
            outgoing.setdefault(first, []).append(indices.ring.pack(units))
        name = indices.label("dealt", part.start)
        yield from send({to: UnitVectors(np.concatenate(v), name) for to, v in outgoing.items()})


def unit_shares(
    ring: Ring, size: int, places: NDArray[np.integer], others: Iterable[Elements]
) -> Elements:
    """Return the unit vectors at some places, less the others' shares: shape (places, size)."""
    units = np.zeros((len(places), size), ring.dtype)
    units[np.arange(len(places)), places.astype(np.intp)] = 1
    for share in others:
        units -= share
    return ring.reduce(units)


def reveal_masked(
    site: Holder, indices: Indices, own: Mapping[int, Elements]
) -> Program[dict[int, Elements]]:
    """Reveal the indices of all records under masks, each to its holders; `own` are the parts."""
    key, rings, common = site.dealer_key, indices.rings, indices.common(site.party)
    total = {i: rings[i].reduce(part + indices.mask(key, i)) for i, part in own.items()}
    layouts = {
        peer: [Piece(rings[index], (indices.records,)) for index in both]
        for peer, both in common.items()
    }
    outbox = {p: packed(layouts[p], (total[index] for index in both)) for p, both in common.items()}
    received = yield from exchange_arrays(MaskedIndices, indices.label("turns"), outbox, layouts)
    for peer, arrays in received.items():
        for index, theirs in zip(common[peer], arrays, strict=True):
            total[index] = rings[index].reduce(total[index] + theirs)
    return total


def units_of(
    site: Holder, indices: Indices, held: Sequence[int], part: slice
) -> Program[dict[int, Elements]]:
    """Return this site's shares of the unit vectors of a part, from its stream or the dealer."""
    dealt, dealer = indices.dealt_to(site.party), site.commitments.dealer
    layouts = {dealer: [indices.piece(index, part) for index in dealt]} if dealt else {}
    name = indices.label("dealt", part.start)
    received = yield from exchange_arrays(UnitVectors, name, {}, layouts)
    units = dict(zip(dealt, received.get(dealer, ()), strict=True))
    for index in held:
        if index not in units:
            units[index] = indices.units(site.dealer_key, index, part)
    return units


def turned(rows: Elements, by: NDArray[np.integer]) -> Elements:
    """Return what a row has at place ``by - h`` modulo its length, at each place h."""
    size = rows.shape[1]
    backwards = rows[:, ::-1]
    doubled = np.concatenate([backwards, backwards], axis=1).ravel()
    starts = np.arange(len(by)) * (2 * size) + (size - 1 - by.astype(np.intp))
    windows: Elements = sliding_window_view(doubled, size)[starts]
    return windows
