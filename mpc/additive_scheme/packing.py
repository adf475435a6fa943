"""Many counts in one plaintext: slots wide enough for the sum of all parties, so none overflows.

    slot i of packet j    x_(j s + i) - lowest, in 0 .. highest - lowest         s slots a packet
    sum over m parties    slot - m * (-lowest) = sum of the x, in m * lowest .. m * highest

A count with its noise may be negative: it is stored above the declared lowest value.
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
        What one party's count may be, its noise included. The caller leaves so much room that
        noise beyond it has a probability that counts as nothing beside delta.
    most : int
        How many parties a sum has at most.
    bits : int
        How many bits a plaintext has.

    Raises
    ------
    ValueError
        If a sum could not be held.
    """

    lowest: int
    highest: int
    most: int
    bits: int

    def __post_init__(self) -> None:
        if self.lowest > self.highest:
            raise ValueError(f"no count lies between {self.lowest} and {self.highest}")
        if max(abs(self.lowest), abs(self.highest)) * self.most >= 2**MOST_WIDTH:
            raise ValueError(f"sums of {self.most} such counts: below 2**62 is wanted")
        if not self.slots:
            raise ValueError(f"a slot of {self.width} bits: at most {self.bits} are there")

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

        Raises
        ------
        ValueError
            If a count lies outside `lowest` .. `highest`; it names the place, not the count.
        """
        values = [operator.index(count) for count in counts]
        for place, value in enumerate(values):
            if not self.lowest <= value <= self.highest:
                bounds = f"{self.lowest} to {self.highest}"
                raise ValueError(f"the count at place {place}, with its noise, is not in {bounds}")
        starts = range(0, len(values), self.slots)
        return [self._plaintext(values[start : start + self.slots]) for start in starts]

    def _plaintext(self, values: list[int]) -> int:
        slots = enumerate(values)
        return sum((value - self.lowest) << (self.width * i) for i, value in slots)

    def unpack(self, plaintexts: Sequence[int], count: int, parties: int) -> NDArray[np.int64]:
        """Return the exact signed sums of `count` counts of so many parties.

        Parameters
        ----------
        plaintexts : sequence of int
            Sums of the parties' plaintexts.
        count : int
        parties : int
            How many parties contributed.

        Returns
        -------
        sums : ndarray of shape (count,), dtype int64

        Raises
        ------
        ValueError
            If a slot holds more than so many parties can have put there, or one that none fills
            holds anything.
        """
        mask, found = 2**self.width - 1, list[int]()
        for plaintext in plaintexts:
            filled = min(self.slots, count - len(found))
            if plaintext >> (self.width * filled):
                raise ValueError("a slot that nobody fills is not empty")
            found += [plaintext >> (self.width * i) & mask for i in range(filled)]
        if any(slot > parties * (self.highest - self.lowest) for slot in found):
            raise ValueError(f"a sum is larger than {parties} parties can make it")
        return np.array([slot + parties * self.lowest for slot in found], np.int64)


def clamp(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums with negative ones set to zero.

    The last step, of whoever reads the sums, after all that is added up from them: noise of mean
    zero cancels in a total of unclamped sums, and no longer in one of clamped. A party never clamps
    its own noisy count: the sum of the parties' noise would no longer be what the guarantee says.
    """
    return np.maximum(sums, 0)
