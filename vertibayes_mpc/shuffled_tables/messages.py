"""The streams of a shuffle, under a key of a site and the dealer; and its messages, all packed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import ArrayMessage
from vertibayes_mpc.shuffled_tables.plan import ShuffledTable, ShufflePlan


class Noise(Labelled, kind="noise"):
    """A holder's noise on the flags of missing values, for the first of the chain."""


class Shuffled(Labelled, kind="shuffled"):
    """Codes and tags, in a holder's order, for the next of the chain."""


class Masks(Labelled, kind="shuffled masks"):
    """From the dealer: what the masks add to the codes, and to the tags, at the chain's end."""


class Tags(Labelled, kind="tags"):
    """The masked tags at the chain's end, for all holders."""


@dataclass(frozen=True, slots=True)
class Codes(ArrayMessage, kind="codes"):
    """A holder's shares of the codes, or the cells of a table that it counted by itself.

    `complete` has the number of revealed records of each table in which records drop out. Zeros pad
    the shares of these tables, so that the size of the message does not reveal this number.
    """

    complete: NDArray[np.uint32] = field(repr=False)


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
