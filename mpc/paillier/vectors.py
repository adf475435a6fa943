"""Vectors of encrypted counts, packed: sums and multiples of all slots at once.

A vector knows what its counts cannot be above, which is public, and refuses a sum or multiple of
which a slot might flow over into the next.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mpc.paillier.keys import PrivateKey, PublicKey
from mpc.paillier.packing import Packing
from mpc.randomness import Randomness


@dataclass(frozen=True, slots=True)
class EncryptedCounts:
    """A vector of counts, packed and encrypted.

    Parameters
    ----------
    public : PublicKey
    packing : Packing
    length : int
        The number of counts.
    largest : int
        What no count is above; public.
    ciphertexts : tuple of int

    Raises
    ------
    ValueError
        If the bound does not fit a slot, there are too many or too few ciphertexts, or one is
        none.
    """

    public: PublicKey
    packing: Packing
    length: int
    largest: int
    ciphertexts: tuple[int, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.largest <= self.packing.largest:
            raise ValueError(
                f"counts from 0 to {self.largest} do not fit slots of {self.packing.slot_bits} bits"
            )
        if self.packing.key_bits != self.public.bits:
            raise ValueError(f"a packing for keys of {self.packing.key_bits} bits")
        wanted = self.packing.plaintexts(self.length)
        if len(self.ciphertexts) != wanted:
            raise ValueError(f"{len(self.ciphertexts)} ciphertexts: {wanted} are wanted")
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
        """Encrypt counts.

        Parameters
        ----------
        key : PublicKey or PrivateKey
            Its owner encrypts with the private key: faster.
        counts : sequence or ndarray of shape (n,) of integers
        largest : int
            What no count is above, whatever the data: the others are told it.
        randomness : Randomness
        slot_bits : int, default=32

        Raises
        ------
        ValueError
            If a count is negative or above `largest`, or `largest` does not fit a slot.
        """
        public = key.public if isinstance(key, PrivateKey) else key
        packing, largest = Packing(public.bits, slot_bits), operator.index(largest)
        plaintexts = packing.pack(counts)
        if len(counts) and max(map(int, counts)) > largest:
            raise ValueError("a count is above what is said to be the largest")
        ciphertexts = tuple(key.encrypt(plaintexts, randomness))
        return cls(public, packing, len(counts), largest, ciphertexts)

    def __add__(self, other: EncryptedCounts) -> EncryptedCounts:
        """Add two vectors, place by place.

        Raises
        ------
        ValueError
            If they are of different keys, packings or lengths, or a slot might flow over.
        """
        ours, theirs = ((v.public, v.packing, v.length) for v in (self, other))
        if ours != theirs:
            raise ValueError("two vectors of one key, packing and length are wanted")
        added = self.public.add(self.ciphertexts, other.ciphertexts)
        return replace(self, largest=self.largest + other.largest, ciphertexts=tuple(added))

    def scaled(self, factor: int) -> EncryptedCounts:
        """Multiply all counts by a known factor.

        Raises
        ------
        ValueError
            If it is negative, or a slot might flow over.
        """
        factor = operator.index(factor)
        scaled = self.public.scale(self.ciphertexts, [factor] * len(self.ciphertexts))
        return replace(self, largest=self.largest * factor, ciphertexts=tuple(scaled))

    def rerandomized(self, key: PublicKey | PrivateKey, randomness: Randomness) -> EncryptedCounts:
        """Return the same counts in new ciphertexts, that nobody can link to these."""
        return replace(self, ciphertexts=tuple(key.rerandomize(self.ciphertexts, randomness)))

    def decrypt(self, key: PrivateKey) -> NDArray[np.int64]:
        """Decrypt the counts.

        Returns
        -------
        counts : ndarray of shape (length,), dtype int64

        Raises
        ------
        ValueError
            If the key is another, or a count is above the largest: somebody has encrypted what he
            said he would not.
        """
        if key.public != self.public:
            raise ValueError("the key of another vector")
        counts = self.packing.unpack(key.decrypt(self.ciphertexts), self.length)
        if counts.size and counts.max() > self.largest:
            raise ValueError("a count is above what was said to be the largest")
        return counts
