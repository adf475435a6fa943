"""The rings Z_2^bits on numpy's wrapping unsigned integers.

Only this module multiplies, sums and reduces. Other modules add and subtract arrays of elements as
numpy's unsigned integers, which wrap at their width, and `Ring.reduce` brings them into a narrower
ring. Matrices are (columns, rows): a column of the data is a contiguous row of the array, so that
masks, products and sums run along memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Elements: TypeAlias = NDArray[np.unsignedinteger]
Packed: TypeAlias = NDArray[np.uint8]  # elements on the wire: `Ring.pack`

EXACT_BITS = 53  # integers below 2^53 are exact in float64
SINGLE_BITS, LEAST_SINGLE_BITS = 24, 7  # those below 2^24 in float32, if 2^7 rows or more fit
TILE_ROWS = 1 << 10  # rows converted to float64 at a time: more if there are few columns
TILE_CELLS = 1 << 17
PACKED_WORDS = 1 << 14  # of 64 bits, packed at a time: in the cache
HOLDING = 14, 16, 20, 24, 32  # bits of the rings of counts: packing is cheap, and so are products
_DTYPES = [np.dtype(name) for name in ("u1", "u1", "u2", "u4", "u4", "u8", "u8", "u8", "u8")]


@dataclass(frozen=True, slots=True)
class Ring:
    """Integers modulo ``2**bits``, in the smallest numpy type that holds them.

    >>> ring = Ring(12)
    >>> ring.dtype, ring.packed_bits
    (dtype('uint16'), 12)
    >>> ring.reduce(np.array([4095, 4097], np.uint16))
    array([4095,    1], dtype=uint16)
    """

    bits: int  # from 1 to 64

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 64:
            raise ValueError(f"a ring must have from 1 to 64 bits, got {self.bits}")

    @classmethod
    def holding(cls, records: int) -> Ring:
        """Return the narrowest of the rings of `HOLDING` that holds every count of some records."""
        for bits in HOLDING:
            if 0 <= records < 2**bits:
                return cls(bits)
        raise ValueError(f"the number of records must be from 0 to 2**32 - 1, got {records}")

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The numpy type that holds an element."""
        return _DTYPES[-(-self.bits // 8)]

    @property
    def packed_bits(self) -> int:
        """The bits that an element takes on the wire: so many that words of 64 bits pack to bytes.

        They are `bits`, rounded up to a multiple of the bytes of `dtype`.
        """
        return self.bits + -self.bits % self.dtype.itemsize

    def packed_size(self, count: int) -> int:
        """Return the number of bytes that `count` elements take on the wire."""
        return -(-count * self.packed_bits // 8)

    def pack(self, values: Elements) -> Packed:
        """Reduce values and put them behind each other, `packed_bits` each, the lowest bit first.

        Returns `packed_size` bytes; the bits behind the last element are zero.

        >>> Ring(12).pack(np.array([0xABC, 0x123], np.uint16)).tobytes().hex()
        'bc3a12'
        """
        flat = np.ascontiguousarray(values, self._little).reshape(-1)
        if self.bits == 8 * self.dtype.itemsize:
            return flat.view(np.uint8)
        packed = np.empty(-(-flat.size // self._lanes), self._narrow)
        for start in range(0, len(packed), PACKED_WORDS):
            words = self._words(flat[start * self._lanes :][: PACKED_WORDS * self._lanes])
            packed[start : start + PACKED_WORDS] = words.view(self._slice)["packed"]
        return packed.view(np.uint8)[: self.packed_size(flat.size)]

    def _words(self, flat: Elements) -> NDArray[np.uint64]:
        """Put the elements of each word of 64 bits together at its low end: pairs, pairs of pairs.

        In place after the first step: new memory takes longer than the numbers.
        """
        if missing := -flat.size % self._lanes:
            flat = np.concatenate([flat, np.zeros(missing, flat.dtype)])
        words: NDArray[np.uint64] = flat.view("<u8").astype(np.uint64)
        if self._lanes == 1:
            words &= np.uint64(2**self.bits - 1)
        for low, high, gap in _merges(self.bits, self.packed_bits, 8 * self.dtype.itemsize):
            above = words >> gap
            above &= high
            words &= low
            words |= above
        return words.astype("<u8", copy=False)

    def unpack(self, packed: Packed, count: int) -> Elements:
        """Return the elements that `pack` has put into bytes: shape (count,).

        A ValueError says that the bytes are not those of `count` elements of the ring.
        """
        if len(packed) != self.packed_size(count):
            given = f"{count} elements of {self.bits} bits take {self.packed_size(count)} bytes"
            raise ValueError(f"{given}, got {len(packed)}")
        if self.bits == 8 * self.dtype.itemsize:
            return packed.view(self._little).astype(self.dtype)
        words = self._unpacked_words(packed)
        for start in range(0, len(words), PACKED_WORDS):
            self._spread(words[start : start + PACKED_WORDS])
        elements = words.view(self._little).astype(self.dtype, copy=False)
        above = elements[count:] if self.packed_bits == self.bits else elements >> self.bits
        if elements[count:].any() or above.any():
            raise ValueError(f"bits that no element of {self.bits} bits has are not zero")
        return elements[:count]

    def _unpacked_words(self, packed: Packed) -> NDArray[np.uint64]:
        """Return words with the elements at their low ends."""
        whole, rest = divmod(len(packed), self._narrow.itemsize)
        words = np.zeros(whole + (rest > 0), "<u8")
        words[:whole].view(self._slice)["packed"] = packed[: len(packed) - rest].view(self._narrow)
        words[whole:].view(np.uint8)[:rest] = packed[len(packed) - rest :]
        return words

    def _spread(self, words: NDArray[np.uint64]) -> None:
        """Put each element of words where numpy has it: the steps of `_words` backwards."""
        steps = _merges(self.packed_bits, self.packed_bits, 8 * self.dtype.itemsize)
        for low, high, gap in reversed(steps):
            above = words & high
            above <<= gap
            words &= low
            words |= above

    @property
    def _lanes(self) -> int:
        """The elements of a word of 64 bits in memory."""
        return 8 // self.dtype.itemsize

    @property
    def _narrow(self) -> np.dtype[np.void]:
        """The type of the low bytes of a word, which are on the wire."""
        return np.dtype((np.void, self.packed_bits // self.dtype.itemsize))

    @property
    def _slice(self) -> np.dtype[np.void]:
        """The type of a word with its low bytes as a field."""
        return np.dtype(
            {"names": ["packed"], "formats": [self._narrow], "offsets": [0], "itemsize": 8}
        )

    @property
    def _little(self) -> np.dtype[np.unsignedinteger]:
        return self.dtype.newbyteorder("<")

    def reduce(self, values: Elements, out: Elements | None = None) -> Elements:
        """Bring values of `dtype` below ``2**bits``: free where the type is as wide as the ring.

        `out`, which may be `values`, is overwritten: new memory takes longer than the numbers.
        """
        if self.bits == 8 * self.dtype.itemsize:
            return values
        return np.bitwise_and(values, self.dtype.type(2**self.bits - 1), out=out)

    def row_sums(self, values: Elements) -> Elements:
        """Sum each row of an array of shape (q, m), modulo the ring: shape (q,)."""
        return self.reduce(values.sum(axis=1, dtype=self.dtype))

    def kron(self, left: Elements, right: Elements) -> Elements:
        """Multiply each row of `left` (p, m) by each row of `right` (q, m): shape (p * q, m)."""
        product = left[:, None, :] * right[None, :, :]
        self.reduce(product, out=product)
        return product.reshape(len(left) * len(right), left.shape[1])

    def dot(self, left: Elements, right: Elements, *, bits: int | None = None) -> Elements:
        """Take the inner products, (p, q), of the rows of (p, m) and (q, m), modulo the ring.

        `bits` are the most that an element of `right` has; 1 for indicators, which may be of any
        type. BLAS multiplies narrow factors in float64, in one or two passes over digits of `left`;
        indicators in a ring of up to 16 bits in float32, in half the time.

        >>> column = np.array([[1, 2, 3]], np.uint16)
        >>> Ring(16).dot(column, np.array([[1, 0, 1], [0, 1, 0]], np.uint16), bits=1)
        array([[4, 2]], dtype=uint16)
        """
        of_right = bits or self.bits
        exact = EXACT_BITS - (TILE_ROWS.bit_length() - 1) - of_right  # bits of a digit
        if 2 * exact < self.bits:
            return self.reduce(np.einsum("im,jm->ij", left, right))  # wraps, at 8 products a ns
        digit = self.bits if exact >= self.bits else -(-self.bits // 2)
        single = SINGLE_BITS - digit - of_right >= LEAST_SINGLE_BITS
        floats = np.dtype(np.float32 if single else np.float64)
        tile = max(TILE_ROWS, TILE_CELLS // (len(left) + len(right) + 1))
        tile = min(tile, 1 << (SINGLE_BITS if single else EXACT_BITS) - digit - of_right)
        total = np.zeros((left.shape[0], right.shape[0]), np.uint64)
        for start in range(0, left.shape[1], tile):
            part = right[:, start : start + tile]
            rows = (part if bits else self.reduce(part)).astype(floats)
            for low in range(0, self.bits, digit):
                digits = left[:, start : start + tile]
                digits = (digits >> low if low else digits) & 2**digit - 1
                total += _product(digits, rows) << low
        return self.reduce(total.astype(self.dtype))

    def column_dots(self, left: Elements, right: Elements) -> Elements:
        """Take the inner product of each column of two arrays of shape (p, m): shape (m,)."""
        return self.reduce(np.einsum("im,im->m", left, right))


def _product(left: Elements, right: NDArray[np.floating]) -> NDArray[np.uint64]:
    """Multiply exactly in the type of `right`: the sums stay below 2^53, or 2^24 in float32."""
    product: NDArray[np.floating] = left.astype(right.dtype) @ right.T
    return product.astype(np.uint64)


@cache
def _merges(
    bits: int, packed_bits: int, slot: int
) -> tuple[tuple[np.uint64, np.uint64, np.uint64], ...]:
    """Return how the elements of a word, one in each `slot` bits, are put together.

    In each step the upper of two slots moves down to the lower: the bits that stay, those that have
    moved, and how far.
    """
    steps, ones = [], 2**bits - 1
    while slot < 64:
        low = sum(ones << at for at in range(0, 64, 2 * slot))
        steps.append((np.uint64(low), np.uint64(low << packed_bits), np.uint64(slot - packed_bits)))
        ones |= ones << packed_bits
        slot, packed_bits = 2 * slot, 2 * packed_bits
    return tuple(steps)
