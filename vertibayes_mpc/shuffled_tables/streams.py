"""The labelled streams of one key: of a site and the dealer, or of all sites together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.shuffled_tables.plan import ShuffledTable, ShufflePlan


@dataclass(frozen=True)
class Streams:
    """The streams of a plan's tables under one key; only `seal` is under the key of all sites."""

    key: Stream
    plan: ShufflePlan

    def order(self, table: ShuffledTable) -> NDArray[np.intp]:
        """Return the site's permutation of the records, pi."""
        return self.key.permutation(self.label("order", table), self.plan.selection.records)

    def masks(self, table: ShuffledTable) -> list[Elements]:
        """Return the masks of each vector that the site sends on: r of codes, r' of tags."""
        masks = [self._elements("mask", table, table.ring)]
        if table.dropping:
            masks.append(self._elements("tag mask", table, self.plan.commitments.flag_ring))
        return masks

    def share(self, table: ShuffledTable) -> Elements:
        """Return the site's share of the codes, d."""
        return self._elements("share", table, table.ring)

    def noise(self, table: ShuffledTable, place: int) -> Elements:
        """Return the noise rho that the site adds where an operand's value is missing."""
        return self._elements("noise", table, self.plan.commitments.flag_ring, place)

    def noise_mask(self, table: ShuffledTable) -> Elements:
        """Return the mask of the sum of the site's noises, sent to the first of the chain."""
        return self._elements("noise mask", table, self.plan.commitments.flag_ring)

    def seal(self, table: ShuffledTable, count: int) -> NDArray[np.intp]:
        """Return the last permutation, sigma, of the `count` revealed records."""
        return self.key.permutation(self.label("seal", table), count)

    def label(self, purpose: str, table: ShuffledTable, *parts: int) -> bytes:
        """Return the label of one purpose for one table."""
        return label(purpose, self.plan.label, table.index, *parts)

    def _elements(self, purpose: str, table: ShuffledTable, ring: Ring, *parts: int) -> Elements:
        shape = (self.plan.selection.records,)
        return self.key.elements(ring, self.label(purpose, table, *parts), shape)
