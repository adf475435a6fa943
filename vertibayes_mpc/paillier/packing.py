"""Many counts in one plaintext, each in its own slot.

plaintext = sum_i count_i 2^(b i),      b bits a slot,      floor((bits of N - 1) / b) slots
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_SLOT_BITS = 62  # counts are handed out as int64


@dataclass(frozen=True, slots=True)
class Packing:
    """How counts lie in the plaintexts of a key.

    Parameters
    ----------
    key_bits : int
        The length of N in bits.
    slot_bits : int, default=32
        The bits of a slot, at most 62.

    Raises
    ------
    ValueError
        If `slot_bits` is out of range, or a slot does not fit.

    Examples
    --------
    >>> packing = Packing(key_bits=17, slot_bits=8)
    >>> packing.pack([1, 2, 3])  # 1 + 2 * 2^8, then 3
    [513, 3]
    >>> packing.unpack([513, 3], length=3)
    array([1, 2, 3])
    """

    key_bits: int
    slot_bits: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.slot_bits <= MOST_SLOT_BITS or self.slots < 1:
            raise ValueError(
                f"slot_bits must be from 1 to {MOST_SLOT_BITS} and fit a key, got {self.slot_bits}"
            )

    @property
    def slots(self) -> int:
        """The number of slots of a plaintext."""
        return (self.key_bits - 1) // self.slot_bits

    @property
    def largest(self) -> int:
        """The largest count that a slot holds."""
        return (1 << self.slot_bits) - 1

    def plaintexts(self, length: int) -> int:
        """Return how many plaintexts hold a vector of `length` counts."""
        return -(-length // self.slots)

    def pack(self, counts: Sequence[int] | NDArray[np.integer]) -> list[int]:
        """Pack a vector of counts.

        Raise a TypeError if a count is not an integer, and a ValueError if it is negative or does
        not fit a slot; it names the place.
        """
        values = [operator.index(count) for count in counts]
        for place, value in enumerate(values):
            if not 0 <= value <= self.largest:
                raise ValueError(f"count {place} does not fit a slot of {self.slot_bits} bits")
        parts = [values[at : at + self.slots] for at in range(0, len(values), self.slots)]
        return [sum(v << self.slot_bits * i for i, v in enumerate(part)) for part in parts]

    def unpack(self, plaintexts: Sequence[int], length: int) -> NDArray[np.int64]:
        """Unpack a vector of `length` counts.

        Raise a ValueError if there are too many or too few plaintexts, or bits outside the slots.
        """
        if len(plaintexts) != (needed := self.plaintexts(length)):
            raise ValueError(f"{length} counts need {needed} plaintexts, got {len(plaintexts)}")
        counts = np.zeros(length, np.int64)
        for start, plaintext in zip(range(0, length, self.slots), plaintexts, strict=True):
            used = min(self.slots, length - start)
            if plaintext >> self.slot_bits * used:
                raise ValueError("a plaintext has bits beyond its slots")
            counts[start : start + used] = [
                int(plaintext >> self.slot_bits * i) & self.largest for i in range(used)
            ]
        return counts
