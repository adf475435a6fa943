"""The rings Z_2^bits on numpy's wrapping unsigned integers.

Only this module multiplies, sums and reduces. Other modules add and subtract arrays of elements as
numpy's unsigned integers, which wrap at their width, and `Ring.reduce` brings them into a narrower
ring. Matrices are (columns, rows): a column of the data is a contiguous row of the array, so that
masks, products and sums run along memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Elements: TypeAlias = NDArray[np.unsignedinteger]

EXACT_BITS = 33  # of two factors: sums over 2^20 rows stay below 2^53, exact in float64
TILE_ROWS = 1 << 10  # rows converted to float64 at a time: more if there are few columns
TILE_CELLS = 1 << 17
_DTYPES = [np.dtype(name) for name in ("u1", "u1", "u2", "u4", "u4", "u8", "u8", "u8", "u8")]


@dataclass(frozen=True, slots=True)
class Ring:
    """Integers modulo ``2**bits``, in the smallest numpy type that holds them.

    >>> ring = Ring(12)
    >>> ring.dtype, ring.bytes
    (dtype('uint16'), 2)
    >>> ring.reduce(np.array([4095, 4097], np.uint16))
    array([4095,    1], dtype=uint16)
    """

    bits: int  # from 1 to 64

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 64:
            raise ValueError(f"a ring must have from 1 to 64 bits, got {self.bits}")

    @classmethod
    def holding(cls, records: int) -> Ring:
        """Return the smaller ring, of 16 or 32 bits, that holds every count of some records."""
        for bits in (16, 32):
            if 0 <= records < 2**bits:
                return cls(bits)
        raise ValueError(f"the number of records must be from 0 to 2**32 - 1, got {records}")

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The numpy type that holds an element."""
        return _DTYPES[self.bytes]

    @property
    def bytes(self) -> int:
        """The number of bytes that an element takes on the wire."""
        return -(-self.bits // 8)

    def pack(self, values: Elements) -> NDArray[np.uint8]:
        """Reduce values and put each into `bytes` bytes, little-endian: shape (size * bytes,).

        >>> Ring(24).pack(np.array([1, 2**24 - 1], np.uint32))
        array([  1,   0,   0, 255, 255, 255], dtype=uint8)
        """
        flat = np.ascontiguousarray(self.reduce(values)).astype(self._little, copy=False)
        whole = flat.view(np.uint8).reshape(-1, self.dtype.itemsize)
        return np.ascontiguousarray(whole[:, : self.bytes]).reshape(-1)

    def unpack(self, packed: NDArray[np.uint8]) -> Elements:
        """Return the elements that `pack` has put into bytes, reduced: shape (size,)."""
        whole = np.zeros((len(packed) // self.bytes, self.dtype.itemsize), np.uint8)
        whole[:, : self.bytes] = packed.reshape(-1, self.bytes)
        return self.reduce(whole.view(self._little).astype(self.dtype, copy=False).reshape(-1))

    @property
    def _little(self) -> np.dtype[np.unsignedinteger]:
        return self.dtype.newbyteorder("<")

    def reduce(self, values: Elements) -> Elements:
        """Bring values of `dtype` below ``2**bits``: free where the type is as wide as the ring."""
        if self.bits == 8 * self.dtype.itemsize:
            return values
        return values & self.dtype.type(2**self.bits - 1)

    def row_sums(self, values: Elements) -> Elements:
        """Sum each row of an array of shape (q, m), modulo the ring: shape (q,)."""
        return self.reduce(values.sum(axis=1, dtype=self.dtype))

    def kron(self, left: Elements, right: Elements) -> Elements:
        """Multiply each row of `left` (p, m) by each row of `right` (q, m): shape (p * q, m)."""
        product = left[:, None, :] * right[None, :, :]
        return self.reduce(product.reshape(len(left) * len(right), left.shape[1]))

    def dot(self, left: Elements, right: Elements, *, bits: int | None = None) -> Elements:
        """Take the inner products, (p, q), of the rows of (p, m) and (q, m), modulo the ring.

        `bits` are the most that an element of `right` has, at most 16; 1 for indicators, which may
        be of any type. BLAS multiplies narrow factors in float64, up to three times as fast.

        >>> column = np.array([[1, 2, 3]], np.uint16)
        >>> Ring(16).dot(column, np.array([[1, 0, 1], [0, 1, 0]], np.uint16), bits=1)
        array([[4, 2]], dtype=uint16)
        """
        if bits is None and 2 * self.bits > EXACT_BITS:
            return self.reduce(np.einsum("im,jm->ij", left, right))  # wraps, at 8 products a ns
        limb = min(self.bits, EXACT_BITS - (bits or self.bits))
        total = np.zeros((left.shape[0], right.shape[0]), np.uint64)
        tile = max(TILE_ROWS, TILE_CELLS // (len(left) + len(right) + 1))
        for start in range(0, left.shape[1], tile):
            rows = right[:, start : start + tile].astype(np.float64)
            for low in range(0, self.bits, limb):
                digits = (left[:, start : start + tile] >> low) & (2**limb - 1)
                total += _product(digits, rows) << low
        return self.reduce(total.astype(self.dtype))

    def column_dots(self, left: Elements, right: Elements) -> Elements:
        """Take the inner product of each column of two arrays of shape (p, m): shape (m,)."""
        return self.reduce(np.einsum("im,im->m", left, right))


def _product(left: Elements, right: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Multiply exactly in float64: factors of 33 bits together, a tile of rows."""
    return (left.astype(np.float64) @ right.T).astype(np.uint64)
