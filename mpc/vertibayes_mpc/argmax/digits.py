"""The streams that one site shares with the dealer, and digits of masked differences.

d is public, r is secret, and d - r is a difference of two values. Of each digit of r the sites have
XOR shares of a one-hot word. Whether the digit exceeds d's, or equals it, is the parity of those
bits of the word that d selects; a share of the parity is the parity of the share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
        shape = (self.plan.bits_of(part),)
        return self._elements(self.plan.rank_ring, "numbers", shape, part.number)

    def ranks(self, part: Part) -> Elements:
        """Return q, the masks of the ranks."""
        return self._elements(self.plan.rank_ring, "ranks", (part.size,), part.number)

    def one_hots(self, part: Part) -> Elements:
        """Return the shares of the one-hot masks of ranks: shape (words, values)."""
        shape = self.plan.rank_words, part.size
        return self._elements(self.plan.one_hot_ring, "one-hot ranks", shape, part.number)

    def _bits(self, purpose: str, rows: int, part: Part, *level: int) -> Bits:
        shape = rows, self.plan.bits_of(part)
        return packed(self._elements(Ring(1), purpose, shape, part.number, *level))

    def _elements(self, ring: Ring, purpose: str, shape: tuple[int, ...], *parts: int) -> Elements:
        return self.key.elements(ring, self.plan.name(purpose, *parts), shape)


def differences(plan: ArgmaxPlan, values: Elements, part: Part) -> Elements:
    """Return the first value of each pair less the second."""
    i, j = plan.pairs_of(part)
    return plan.ring.reduce(values[i] - values[j])


def digits_of(plan: ArgmaxPlan, values: Elements) -> NDArray[np.intp]:
    """Return the digits of elements, the lowest first: shape (digits, values)."""
    last = values.dtype.type((1 << plan.digit_bits) - 1)
    digits = np.empty((plan.digits, len(values)), np.intp)
    for place in range(plan.digits):
        digits[place] = values >> values.dtype.type(place * plan.digit_bits) & last
    return digits


def unit_digits(plan: ArgmaxPlan, values: Elements) -> Elements:
    """Return the one-hot digits of elements: shape (digits, values)."""
    one = plan.digit_ring.dtype.type(1)
    one_hots: Elements = one << digits_of(plan, values).astype(one.dtype)
    return one_hots


class Comparison(NamedTuple):
    """Shares of bits: a row for each digit that is left, the lowest first."""

    less: Bits  # the difference's digit is less than the mask's
    same: Bits  # they are equal; without a row for the lowest digit

    def factors(self, pairs: int) -> tuple[Bits, Bits]:
        """Return what is multiplied to join digits in pairs: a row for each pair, and each product.

        The left factors are `same` of the higher digits; the right ones `less` of the lower digits,
        and then `same` of these except the lowest.
        """
        lower = self.less[: 2 * pairs : 2], self.same[1 : 2 * pairs - 2 : 2]
        return self.same[: 2 * pairs : 2], np.concatenate(lower)

    def joined(self, products: Bits, pairs: int) -> Comparison:
        """Return the comparison of joined digits, and of a highest one that is left over."""
        less = self.less[1 : 2 * pairs : 2] ^ products[:pairs]
        return Comparison(
            np.concatenate([less, self.less[2 * pairs :]]),
            np.concatenate([products[pairs:], self.same[2 * pairs - 1 :]]),
        )


def both_factors(left: Bits) -> Bits:
    """Return the left factors of all products: those of `less`, and then those of `same`."""
    return np.concatenate([left, left[1:]])


def shifted(plan: ArgmaxPlan, d: Elements) -> Elements:
    """Return each public difference plus each threshold."""
    added = np.array([t % 2**plan.ring.bits for t in plan.thresholds], np.uint64)
    return plan.ring.reduce((d[:, None] + added.astype(d.dtype)).ravel())


def compare(plan: ArgmaxPlan, one_hots: Elements, d: Elements) -> tuple[Comparison, Bits]:
    """Return shares of the comparison of each digit, and of the highest bit of r."""
    less, same, top = _selections(plan)
    digits = digits_of(plan, d)
    rows = np.arange(plan.digits)[:, None]
    parity = [
        _parity(one_hots & less[rows, digits]),
        _parity(one_hots[1:] & same[rows[1:], digits[1:]]),
        _parity(one_hots[-1:] & top),
    ]
    return Comparison(parity[0], parity[1]), parity[2]


def top_bit(plan: ArgmaxPlan, values: Elements) -> Bits:
    """Return the highest bit of elements, packed in one row."""
    return packed((values >> values.dtype.type(plan.ring.bits - 1))[None])


def _parity(words: Elements) -> Bits:
    return packed(np.bitwise_count(words) & np.uint8(1))


def _selections(plan: ArgmaxPlan) -> tuple[Elements, Elements, np.unsignedinteger]:
    """Return which bits of a one-hot digit mean "more than d's", "equal to it", "top bit set"."""
    base, dtype = 1 << plan.digit_bits, plan.digit_ring.dtype
    digits = np.arange(base)
    words = np.left_shift(dtype.type(1), digits.astype(dtype))
    less, same = (np.zeros((plan.digits, base), dtype) for _ in range(2))
    top = 1 << (plan.ring.bits - 1 - (plan.digits - 1) * plan.digit_bits)
    for place in range(plan.digits):
        low = digits % (top if place == plan.digits - 1 else base)
        less[place] = ((low > low[:, None]) * words).sum(axis=1)
        same[place] = ((low == low[:, None]) * words).sum(axis=1)
    return less, same, words[digits & top > 0].sum(dtype=dtype)
