"""Counts packed into plaintexts, each in its own slot; vectors of encrypted counts.

plaintext = sum_i count_i 2^(b i),      b bits a slot,      floor((bits of N - 1) / b) slots
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.paillier.keys import PrivateKey, PublicKey
from vertibayes_mpc.randomness import Randomness

MOST_SLOT_BITS = 62  # counts are handed out as int64


@dataclass(frozen=True, slots=True)
class Packing:
    """How counts lie in the plaintexts of a key; a ValueError if a slot does not fit.

    >>> packing = Packing(key_bits=17, slot_bits=8)
    >>> packing.pack([1, 2, 3])  # 1 + 2 * 2^8, then 3
    [513, 3]
    >>> packing.unpack([513, 3], length=3)
    array([1, 2, 3])
    """

    key_bits: int  # of N
    slot_bits: int = 32  # at most 62

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
        """Pack a vector of counts; a ValueError names the place of one that does not fit a slot."""
        values = [operator.index(count) for count in counts]
        for place, value in enumerate(values):
            if not 0 <= value <= self.largest:
                raise ValueError(f"count {place} does not fit a slot of {self.slot_bits} bits")
        parts = [values[at : at + self.slots] for at in range(0, len(values), self.slots)]
        return [sum(v << self.slot_bits * i for i, v in enumerate(part)) for part in parts]

    def unpack(self, plaintexts: Sequence[int], length: int) -> NDArray[np.int64]:
        """Unpack a vector of `length` counts; a ValueError if there are bits outside its slots."""
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


@dataclass(frozen=True, slots=True)
class EncryptedCounts:
    """A vector of counts, packed and encrypted, with a public upper bound.

    It refuses a sum or multiple in which a slot might overflow into the next. A ValueError says
    that the bound does not fit a slot, or which ciphertexts are not those of such a vector.
    """

    public: PublicKey
    packing: Packing
    length: int  # the number of counts
    largest: int  # the upper bound of the counts; public
    ciphertexts: tuple[int, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.largest <= self.packing.largest:
            raise ValueError(
                f"counts from 0 to {self.largest} do not fit slots of {self.packing.slot_bits} bits"
            )
        if self.packing.key_bits != self.public.bits:
            raise ValueError(
                f"the packing is for keys of {self.packing.key_bits} bits, got {self.public.bits}"
            )
        if len(self.ciphertexts) != (needed := self.packing.plaintexts(self.length)):
            raise ValueError(f"there must be {needed} ciphertexts, got {len(self.ciphertexts)}")
        self.public.check_ciphertexts(self.ciphertexts)

    @classmethod
    def encrypt(
        cls,
        key: PublicKey | PrivateKey,
        counts: Sequence[int] | NDArray[np.integer],
        largest: int,
        randomness: Randomness,
        slot_bits: int = 32,
    ) -> EncryptedCounts:
        """Encrypt counts of shape (n,), in slots of `slot_bits`; the owner's private key is faster.

        `largest` is public: an upper bound of the counts that does not depend on the data. A
        ValueError says that a count is negative or above it, or that it does not fit a slot.
        """
        public = key.public if isinstance(key, PrivateKey) else key
        packing, largest = Packing(public.bits, slot_bits), operator.index(largest)
        plaintexts = packing.pack(counts)
        if len(counts) and max(map(int, counts)) > largest:
            raise ValueError("a count is above `largest`")
        ciphertexts = tuple(key.encrypt(plaintexts, randomness))
        return cls(public, packing, len(counts), largest, ciphertexts)

    def __add__(self, other: EncryptedCounts | ComputedCounts) -> ComputedCounts:
        """Add two vectors, place by place; as `ComputedCounts`."""
        return ComputedCounts(self) + other

    def scaled(self, factor: int) -> ComputedCounts:
        """Multiply all counts by a known factor; as `ComputedCounts`."""
        return ComputedCounts(self).scaled(factor)

    def rerandomized(self, key: PublicKey | PrivateKey, randomness: Randomness) -> EncryptedCounts:
        """Return the same counts in new ciphertexts; nobody can link them to these."""
        return replace(self, ciphertexts=tuple(key.rerandomize(self.ciphertexts, randomness)))

    def decrypt(self, key: PrivateKey) -> NDArray[np.int64]:
        """Decrypt the counts: shape (length,), dtype int64.

        A ValueError says that the key is another, or that an encryptor broke the promise of
        `largest`.
        """
        if key.public != self.public:
            raise ValueError("the key is not that of this vector")
        counts = self.packing.unpack(key.decrypt(self.ciphertexts), self.length)
        if counts.size and counts.max() > self.largest:
            raise ValueError("a count is above the `largest` that its encryptor promised")
        return counts


@dataclass(frozen=True, slots=True)
class ComputedCounts:
    """Sums and multiples of encrypted vectors, before they are randomized again.

    Their ciphertexts are products of powers of the ciphertexts that they are computed from: whoever
    knows these tries small factors, and reads the factors. So they are kept inside, and
    `rerandomized` returns what may leave.
    """

    _counts: EncryptedCounts = field(repr=False)

    @property
    def largest(self) -> int:
        """The upper bound of the counts; public."""
        return self._counts.largest

    def __add__(self, other: EncryptedCounts | ComputedCounts) -> ComputedCounts:
        """Add two vectors of one key, packing and length, place by place."""
        left, right = self._counts, other._counts if isinstance(other, ComputedCounts) else other
        ours, theirs = ((v.public, v.packing, v.length) for v in (left, right))
        if ours != theirs:
            raise ValueError("the vectors must have the same key, packing and length")
        added = tuple(left.public.add(left.ciphertexts, right.ciphertexts))
        largest = left.largest + right.largest
        return ComputedCounts(replace(left, largest=largest, ciphertexts=added))

    def scaled(self, factor: int) -> ComputedCounts:
        """Multiply all counts by a known factor, at least 0."""
        counts, factor = self._counts, operator.index(factor)
        scaled = counts.public.scale(counts.ciphertexts, [factor] * len(counts.ciphertexts))
        largest = counts.largest * factor
        return ComputedCounts(replace(counts, largest=largest, ciphertexts=tuple(scaled)))

    def rerandomized(self, key: PublicKey | PrivateKey, randomness: Randomness) -> EncryptedCounts:
        """Return the same counts in new ciphertexts; nobody can link them to the old ones."""
        return self._counts.rerandomized(key, randomness)

    def decrypt(self, key: PrivateKey) -> NDArray[np.int64]:
        """Decrypt the counts, as `EncryptedCounts.decrypt`."""
        return self._counts.decrypt(key)
