"""The labelled streams that one site shares with the dealer: its masks and its dealt shares.

The site and the dealer expand them from the key and the public plan; nothing is sent. The first
site draws masks only, because the dealer sends it its shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax.plan import ArgmaxPlan, Part
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements, Ring

Bits = NDArray[np.uint8]  # of shape (rows, packed bytes): a row has one bit for each pair


def packed(bits: NDArray[np.unsignedinteger]) -> Bits:
    """Pack bits, each an element, along the last axis."""
    return np.packbits(bits.astype(np.uint8, copy=False), axis=-1)


@dataclass(frozen=True)
class Masks:
    """The streams of one site for one argmax."""

    key: Stream
    plan: ArgmaxPlan

    def scores(self) -> Elements:
        """Return rho, the masks of the values."""
        return self._elements(self.plan.ring, "scores", (self.plan.values,))

    def digits(self, part: Part) -> Elements:
        """Return the shares of the one-hot digits: shape (digits, pairs)."""
        shape = self.plan.digits, part.size
        return self._elements(self.plan.digit_ring, "digits", shape, part.number)

    def left(self, part: Part, level: int) -> Bits:
        """Return a, the masks of the left factors: a row for each pair of digits."""
        return self._bits("left", self.plan.levels[level], part, level)

    def right(self, part: Part, level: int) -> Bits:
        """Return b, the masks of the right factors: a row for each product."""
        return self._bits("right", 2 * self.plan.levels[level] - 1, part, level)

    def products(self, part: Part, level: int) -> Bits:
        """Return the shares of the products of masks: a row for each product."""
        return self._bits("products", 2 * self.plan.levels[level] - 1, part, level)

    def flip(self, part: Part) -> Bits:
        """Return beta, the mask of the comparison's bit."""
        return self._bits("flip", 1, part)

    def numbers(self, part: Part) -> Elements:
        """Return the additive shares of beta, modulo the ring of ranks."""
        return self._elements(self.plan.rank_ring, "numbers", (part.size,), part.number)

    def ranks(self, part: Part) -> Elements:
        """Return q, the masks of the ranks."""
        return self._elements(self.plan.rank_ring, "ranks", (part.size,), part.number)

    def one_hots(self, part: Part) -> Elements:
        """Return the shares of the one-hot masks of ranks: shape (words, values)."""
        shape = self.plan.rank_words, part.size
        return self._elements(self.plan.one_hot_ring, "one-hot ranks", shape, part.number)

    def _bits(self, purpose: str, rows: int, part: Part, *level: int) -> Bits:
        return packed(self._elements(Ring(1), purpose, (rows, part.size), part.number, *level))

    def _elements(self, ring: Ring, purpose: str, shape: tuple[int, ...], *parts: int) -> Elements:
        return self.key.elements(ring, self.plan.name(purpose, *parts), shape)
