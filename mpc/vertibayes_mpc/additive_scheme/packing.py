"""Many counts in one plaintext: slots wide enough for the sum of all parties never overflow.

    slot i of packet j    x_(j s + i) - lowest, in 0 .. highest - lowest         s slots a packet
    sum over m parties    slot - m * (-lowest) = sum of the x, in m * lowest .. m * highest

A count with its noise may be negative: a slot stores how far it is above the lowest value.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_WIDTH = 62  # sums are int64


@dataclass(frozen=True, slots=True)
class Packing:
    """How counts lie in plaintexts.

    Parameters
    ----------
    lowest, highest : int
        The bounds of one party's count, its noise included. The caller chooses them so wide that
        the probability of noise beyond them is negligible beside delta.
    most : int
        The largest number of parties of a sum.
    bits : int
        The length of a plaintext in bits.

    Raises
    ------
    ValueError
        If a slot cannot hold every possible sum.

    Examples
    --------
    Three parties, counts from -1 to 10: a slot must hold 3 * 11, and has 6 bits.

    >>> packing = Packing(lowest=-1, highest=10, most=3, bits=12)
    >>> packing.width, packing.slots
    (6, 2)
    >>> packing.pack([3, 0, -1])  # 4 + 1 * 2^6, then 0
    [68, 0]
    >>> total = [a + b for a, b in zip(packing.pack([3, 0, -1]), packing.pack([10, 1, 1]))]
    >>> packing.unpack(total, count=3, parties=2)
    array([13,  1,  0])
    """

    lowest: int
    highest: int
    most: int
    bits: int

    def __post_init__(self) -> None:
        if self.lowest > self.highest:
            raise ValueError(f"lowest must not exceed highest, got {self.lowest}, {self.highest}")
        if max(abs(self.lowest), abs(self.highest)) * self.most >= 2**MOST_WIDTH:
            raise ValueError(f"the sum of {self.most} counts must stay below 2**62")
        if not self.slots:
            raise ValueError(f"a slot needs {self.width} bits; a plaintext has {self.bits}")

    @property
    def width(self) -> int:
        """The bits of a slot: as many as the sum of all parties can need."""
        return max(1, (self.most * (self.highest - self.lowest)).bit_length())

    @property
    def slots(self) -> int:
        """The counts in one packet."""
        return self.bits // self.width

    def packets(self, count: int) -> int:
        """Return how many packets `count` counts take."""
        return -(-count // self.slots)

    def pack(self, counts: Sequence[int] | NDArray[np.integer]) -> list[int]:
        """Put one party's counts into plaintexts.

        Raise a ValueError if a count lies outside `lowest` .. `highest`; it names the place, not
        the count.
        """
        values = [operator.index(count) for count in counts]
        for place, value in enumerate(values):
            if not self.lowest <= value <= self.highest:
                bounds = f"from {self.lowest} to {self.highest}"
                raise ValueError(f"the count at place {place}, with its noise, must be {bounds}")
        starts = range(0, len(values), self.slots)
        return [self._plaintext(values[start : start + self.slots]) for start in starts]

    def _plaintext(self, values: list[int]) -> int:
        slots = enumerate(values)
        return sum((value - self.lowest) << (self.width * i) for i, value in slots)

    def unpack(self, plaintexts: Sequence[int], count: int, parties: int) -> NDArray[np.int64]:
        """Return the exact signed sums.

        Parameters
        ----------
        plaintexts : sequence of int
            Sums of the parties' plaintexts.
        count : int
            The number of counts of each party.
        parties : int
            The number of parties that contributed.

        Returns
        -------
        sums : ndarray of shape (count,), dtype int64

        Raises
        ------
        ValueError
            If a slot holds more than the parties can have put there, or an unused slot is not 0.
        """
        mask, slots = 2**self.width - 1, list[int]()
        for plaintext in plaintexts:
            used = min(self.slots, count - len(slots))
            if plaintext >> (self.width * used):
                raise ValueError("an unused slot is not empty")
            slots += [plaintext >> (self.width * i) & mask for i in range(used)]
        if any(slot > parties * (self.highest - self.lowest) for slot in slots):
            raise ValueError(f"a sum is larger than {parties} parties can make it")
        return np.array([slot + parties * self.lowest for slot in slots], np.int64)


def clamp(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums with negative ones set to zero.

    Whoever reads the sums clamps them last, after adding up totals: noise of mean zero cancels in a
    total of unclamped sums, but not in one of clamped sums. A party must not clamp its own noisy
    count: the sum of the parties' noise would then not have the guaranteed distribution.

    >>> clamp(np.array([3, -2, 0]))
    array([3, 0, 0])
    """
    return np.maximum(sums, 0)
