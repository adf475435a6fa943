"""Counts of shared indices: shares of how many records have each index.

    Turn      S -> sites       c_S + r_S   mod 2^b              the sum: m = c + r
    Deal      dealer -> S_1    e_r - sum_{s > 1} U_s            as in `vertibayes_mpc.table_lookups`
    locally                    sum over records of U_s[m - j]   shares of the count of each index j

The sites hold additive shares of an index of b bits of each record, of which no site may know more.
One site that knows the indices counts them in the clear.

Security, leakage: as `vertibayes_mpc.table_lookups`; nothing is revealed.
Cost: 2^b elements dealt for each record, 1 or 2 bytes from each site to each other; 2 rounds, and
one for each further part of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.labelled import LABEL_BYTES, labelled_bytes
from vertibayes_mpc.lookups.factors import turned
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send
from vertibayes_mpc.table_lookups.messages import MaskedIndices, UnitVectors
from vertibayes_mpc.table_lookups.plan import COPIES, PART_BYTES


@dataclass(frozen=True)
class CountPlan:
    """All that the parties do to count shared indices.

    Parameters
    ----------
    label : bytes
        Names the query, with its number: no two plans have the same.
    sites : tuple of Party
        Who has shares of the indices. The first receives what the dealer sends.
    records : int
        The number of indices.
    bits : int
        Of an index: from 1 to 16.
    ring : Ring
        The ring of the counts.

    Raises
    ------
    ValueError
        If there are no sites, or `bits` is out of its range.
    """

    label: bytes
    sites: tuple[Party, ...]
    records: int
    bits: int
    ring: Ring

    def __post_init__(self) -> None:
        if not self.sites or not 1 <= self.bits <= 16:
            raise ValueError(f"counts must have sites and from 1 to 16 bits, got {self.bits}")

    @property
    def indices(self) -> Ring:
        """The ring of the indices."""
        return Ring(self.bits)

    @cached_property
    def name(self) -> bytes:
        """A digest of all that the plan says: part of every label."""
        sizes = self.records, self.bits, self.ring.bits, PART_BYTES, len(self.sites)
        return label("index counts", self.label, *sizes, *self.sites)

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The records in parts of bounded memory; one site needs none."""
        each = max(PART_BYTES // (self.ring.bytes << self.bits), 1)
        starts = range(0, self.records, each) if len(self.sites) > 1 else ()
        return tuple(slice(at, min(at + each, self.records)) for at in starts)

    def units_label(self, part: slice) -> bytes:
        """Return the label of the dealer's messages of a part."""
        return label("index counts dealt", self.name, part.start)

    def masks(self, key: Stream) -> Elements:
        """Return one site's masks of the indices: shape (records,)."""
        return key.elements(self.indices, label("index masks", self.name), (self.records,))

    def units(self, key: Stream, part: slice) -> Elements:
        """Return one site's shares of unit vectors: shape (records of the part, 2**bits)."""
        shape = part.stop - part.start, 1 << self.bits
        return key.elements(self.ring, label("index units", self.name, part.start), shape)

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends."""
        return (self.ring.bytes << self.bits) * self.records * bool(self.parts)

    @property
    def sent_bytes(self) -> int:
        """The bytes that all sites send each other."""
        return len(self.sites) * (len(self.sites) - 1) * self.indices.bytes * self.records

    @property
    def memory(self) -> int:
        """The bytes that a site needs at a time, about."""
        part = max((part.stop - part.start for part in self.parts), default=0)
        return 16 * self.records + COPIES * part * (self.ring.dtype.itemsize << self.bits)


def deal_counts(keys: Mapping[Party, Stream], plan: CountPlan) -> Program[None]:
    """Deal unit vectors for the counts of a plan; expect nothing.

    Parameters
    ----------
    keys : mapping of Party to Stream
        The keys that the dealer shares with each site.
    plan : CountPlan
        The plan of the counts.
    """
    first, *others = plan.sites
    turns = plan.indices.reduce(reduce(np.add, (plan.masks(keys[site]) for site in plan.sites)))
    for part in plan.parts:
        units = np.zeros((part.stop - part.start, 1 << plan.bits), plan.ring.dtype)
        units[np.arange(len(units)), turns[part].astype(np.intp)] = 1
        for site in others:
            units -= plan.units(keys[site], part)
        yield from send({first: UnitVectors(plan.ring.pack(units), plan.units_label(part))})


def share_counts(site: Holder, plan: CountPlan, indices: Elements) -> Program[Elements]:
    """Count shared indices with the other sites and the dealer.

    Parameters
    ----------
    site : Holder
        The keys of this site.
    plan : CountPlan
        The plan of the counts.
    indices : ndarray of shape (records,), dtype `plan.indices.dtype`
        This site's shares of the indices.

    Returns
    -------
    counts : ndarray of shape (2**bits,), dtype `plan.ring.dtype`
        This site's shares of the counts.

    Raises
    ------
    DealReusedError
        If this site has counted with this plan before.
    MalformedMessageError, UnexpectedMessageError
        If a message has a wrong size or is for other counts; they name the sender.
    """
    site.use(plan.name)
    if len(plan.sites) == 1:
        own = np.bincount(plan.indices.reduce(indices), minlength=1 << plan.bits)
        return plan.ring.reduce(own.astype(plan.ring.dtype))
    turns = yield from _turns(site, plan, indices)
    counts = np.zeros(1 << plan.bits, plan.ring.dtype)
    for part in plan.parts:
        units = yield from _units(site, plan, part)
        counts += turned(units, turns[part].astype(np.intp)).sum(axis=0, dtype=counts.dtype)
    return plan.ring.reduce(counts)


def _turns(site: Holder, plan: CountPlan, indices: Elements) -> Program[Elements]:
    """Reveal the indices under masks to all sites."""
    ring, name = plan.indices, label("index turns", plan.name)
    total = ring.reduce(indices + plan.masks(site.dealer_key))
    others, ours = [s for s in plan.sites if s != site.party], MaskedIndices(ring.pack(total), name)
    expect = dict.fromkeys(others, Expect(MaskedIndices, len(ours.values) + LABEL_BYTES))
    received = yield from exchange(dict.fromkeys(others, ours), expect)
    for peer, message in received.items():
        total = total + ring.unpack(labelled_bytes(message, peer, len(ours.values), name))
    return ring.reduce(total)


def _units(site: Holder, plan: CountPlan, part: slice) -> Program[Elements]:
    """Return this site's shares of the unit vectors of a part."""
    if site.party != plan.sites[0]:
        return plan.units(site.dealer_key, part)
    dealer, size = (
        site.commitments.dealer,
        (plan.ring.bytes << plan.bits) * (part.stop - part.start),
    )
    expect = {dealer: Expect(UnitVectors, size + LABEL_BYTES)}
    message = (yield from exchange({}, expect))[dealer]
    values = labelled_bytes(message, dealer, size, plan.units_label(part))
    return plan.ring.unpack(values).reshape(-1, 1 << plan.bits)
