"""A site, and how it commits its columns: it sends them masked, and keeps the others' columns."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

import numpy as np

from vertibayes_mpc.commitments.columns import Column, column_mask
from vertibayes_mpc.commitments.operands import Commitments, Form, Selection
from vertibayes_mpc.errors import DealReusedError
from vertibayes_mpc.labelled import (
    LABEL_BYTES,
    Labelled,
    Layout,
    Piece,
    labelled_bytes,
    size_of,
    unpacked,
)
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements, Packed
from vertibayes_mpc.rounds import Expect, Party, Program, exchange


class Columns(Labelled, kind="columns"):
    """A site's columns under their masks in one block of rows: packed, form after form."""


@dataclass
class Holder:
    """A site: its columns, its keys, and the masked columns of all sites.

    `masked`, in memory by default, has them by form, place and block: (width of the form, rows).
    """

    party: Party
    commitments: Commitments
    columns: Mapping[int, Column] = field(repr=False)  # its part of each operand that it holds
    dealer_key: Stream = field(repr=False)  # shared with the dealer
    peer_keys: Mapping[Party, Stream] = field(repr=False)  # shared with each other site
    sites_key: Stream = field(repr=False)  # of all sites alone, not of dealer or analyst
    masked: MutableMapping[Hashable, Elements] = field(default_factory=dict, repr=False)
    _last: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _used: set[bytes] = field(default_factory=set, init=False, repr=False)

    @property
    def last(self) -> int:
        """The number of the last query that it counted; -1 if there was none."""
        return max(self._last.values(), default=-1)

    def begin(self, way: str, number: int) -> None:
        """Begin a query of the protocol `way`; DealReusedError unless its number is the highest."""
        last = self._last.get(way, -1)
        if number <= last:
            raise DealReusedError(f"numbers must increase: query {number} comes after {last}")
        self._last[way] = number

    def use(self, label: bytes) -> None:
        """Begin a protocol whose masks have a label; DealReusedError if it began before."""
        if label in self._used:
            raise DealReusedError("masks with this label have hidden other values before")
        self._used.add(label)

    def clear(self, form: Form, place: int, block: int) -> Elements:
        """Return its part of a column in a committed block: shape (width of the form, rows)."""
        size = self.commitments.block_rows
        return self.columns[place].part(form, slice(block * size, (block + 1) * size))

    def mask(self, form: Form, place: int, block: int) -> Elements:
        """Return this site's mask of a column in a committed block, in the same shape."""
        return column_mask(self.commitments, self.dealer_key, form, place, block)


def commit(site: Holder) -> Program[dict[Party, bytes]]:
    """Send a site's masked columns to the other sites, and keep theirs: a round for each block.

    Returns the SHA-256 digest of the columns of each other site, as they arrived: sites that
    compare them notice a site that sent different columns to two receivers. A MalformedMessageError
    names a site whose columns have a wrong size.
    """
    label = site.commitments.label
    others = [peer for peer in site.commitments.sites if peer != site.party]
    digests = {peer: hashlib.sha256(label) for peer in others}
    for block in Selection(site.commitments).blocks:
        ours = Columns(_masked(site, block), label)
        layouts = {peer: _layout(site, peer, block) for peer in site.commitments.sites}
        expect = {p: Expect(Columns, size_of(layouts[p]) + LABEL_BYTES) for p in others}
        theirs = yield from exchange(dict.fromkeys(others, ours), expect)
        received = {site.party: ours, **theirs}
        for peer, layout in layouts.items():
            packed = labelled_bytes(received[peer], peer, size_of(layout), label)
            if peer in digests:
                digests[peer].update(packed.data)
            _keep(site, peer, block, unpacked(layout, packed, peer))
    return {peer: digest.digest() for peer, digest in digests.items()}


def _masked(site: Holder, block: int) -> Packed:
    columns = [
        form.ring.pack(site.clear(form, place, block) + site.mask(form, place, block))
        for form, place in site.commitments.forms_held_by(site.party)
    ]
    return np.concatenate(columns)


def _layout(site: Holder, party: Party, block: int) -> Layout:
    """Return what a party sends of a block: its columns, form after form."""
    rows = Selection(site.commitments).rows(block)
    held = site.commitments.forms_held_by(party)
    return [Piece(form.ring, (form.width, rows)) for form, _ in held]


def _keep(site: Holder, peer: Party, block: int, columns: Iterable[Elements]) -> None:
    """Keep a site's masked columns; add up those of a column of several holders."""
    held = site.commitments.forms_held_by(peer)
    for (form, place), theirs in zip(held, columns, strict=True):
        key = form.name, place, block
        first = peer == site.commitments.operands[place].holders[0]
        site.masked[key] = theirs if first else form.ring.reduce(site.masked[key] + theirs)
