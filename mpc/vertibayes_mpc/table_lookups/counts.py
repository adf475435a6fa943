"""Counts of shared indices: shares of how many records have each index.

    Turn, Deal                 as in `vertibayes_mpc.unit_vectors`
    locally                    sum over records of U_s[m - j]   shares of the count of each index j

The sites hold additive shares of an index of b bits of each record, of which no site may know more.
One site that knows the indices counts them in the clear.

Security, leakage: as `vertibayes_mpc.table_lookups`; nothing is revealed.
Cost: 2^b elements dealt for each record, b bits from each site to each other; 2 rounds, and one for
each further part of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vertibayes_mpc import unit_vectors
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.unit_vectors import Indices, deal_units, reveal_masked, turned, units_of


@dataclass(frozen=True)
class CountPlan:
    """All that the parties do to count shared indices."""

    label: bytes  # names the query, with its number: no two plans have the same
    sites: tuple[Party, ...]  # have shares; the first receives what the dealer sends
    records: int  # the number of indices
    bits: int  # of an index: from 1 to 16
    ring: Ring  # of the counts

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
        sizes = self.records, self.bits, self.ring.bits, unit_vectors.PART_BYTES, len(self.sites)
        return label("index counts", self.label, *sizes, *self.sites)

    @cached_property
    def shared(self) -> Indices:
        """The indices; none if one site knows them."""
        rings = {0: self.indices} if len(self.sites) > 1 else {}
        holders = dict.fromkeys(rings, self.sites)
        return Indices("index counts", self.name, self.records, self.ring, rings, holders)

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends."""
        return self.shared.dealt_bytes

    @property
    def sent_bytes(self) -> int:
        """The bytes that all sites send each other."""
        return self.shared.sent_bytes

    @property
    def memory(self) -> int:
        """The bytes that a site needs at a time, about."""
        return 16 * self.records + self.shared.memory


def deal_counts(keys: Mapping[Party, Stream], plan: CountPlan) -> Program[None]:
    """Deal unit vectors for the counts of a plan; expect nothing."""
    yield from deal_units(keys, plan.shared)


def share_counts(site: Holder, plan: CountPlan, indices: Elements) -> Program[Elements]:
    """Count shared indices with the other sites and the dealer.

    `indices` are this site's shares, of shape (records,), in `plan.indices`. Returns its shares of
    the counts, of shape (2**bits,), in `plan.ring`. A DealReusedError says that this site has
    counted with this plan before; a MalformedMessageError or UnexpectedMessageError names the
    sender of a message of a wrong size, or for other counts.
    """
    site.use(plan.name)
    counts = np.zeros(1 << plan.bits, plan.ring.dtype)
    if len(plan.sites) == 1:
        own = np.bincount(plan.indices.reduce(indices), minlength=len(counts))
        return plan.ring.reduce(own.astype(plan.ring.dtype))
    masked = yield from reveal_masked(site, plan.shared, {0: indices})
    for part in plan.shared.parts:
        units = (yield from units_of(site, plan.shared, [0], part))[0]
        counts += turned(units, masked[0][part]).sum(axis=0, dtype=counts.dtype)
    return plan.ring.reduce(counts)
