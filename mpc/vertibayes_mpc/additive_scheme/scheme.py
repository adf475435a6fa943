"""What all parties know of a sum; the dealer's set-up, encryption, decryption, and programs.

Many counts are in one plaintext; slots wide enough for the sum of all parties never overflow:

    slot i of packet j    x_(j s + i) - lowest, in 0 .. highest - lowest         s slots a packet
    sum over m parties    slot - m * (-lowest) = sum of the x, in m * lowest .. m * highest
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.aggregation import (
    Ciphertexts,
    Counts,
    Expected,
    KeyOwner,
    Keys,
    Times,
    check_senders,
    collect,
    full_domain_hash,
)
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.integers import STATISTICAL_BITS, powmod, rsa_primes, uniform_below
from vertibayes_mpc.moduli import check_modulus
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.rounds import Party, Program

MOST_WIDTH = 62  # sums are int64


@dataclass(frozen=True, slots=True)
class Packing:
    """How counts lie in plaintexts; a ValueError if a slot cannot hold every possible sum.

    The caller chooses bounds so wide that the probability of noise beyond them is negligible beside
    delta. For three parties and counts from -1 to 10, a slot must hold 3 * 11, and has 6 bits:

    >>> packing = Packing(lowest=-1, highest=10, most=3, bits=12)
    >>> packing.width, packing.slots
    (6, 2)
    >>> packing.pack([3, 0, -1])  # 4 + 1 * 2^6, then 0
    [68, 0]
    >>> total = [a + b for a, b in zip(packing.pack([3, 0, -1]), packing.pack([10, 1, 1]))]
    >>> packing.unpack(total, count=3, parties=2)
    array([13,  1,  0])
    """

    lowest: int  # of one party's count, its noise included
    highest: int  # likewise
    most: int  # the largest number of parties of a sum
    bits: int  # of a plaintext

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
        """Put one party's counts into plaintexts; a ValueError names the place of a bad one."""
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
        """Return the exact signed sums, shape (count,), from the sums of the parties' plaintexts.

        `parties` is the number of those that contributed `count` counts each. A ValueError says
        that a slot holds more than these can have put there, or that an unused slot is not 0.
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
    """
    return np.maximum(sums, 0)


# RSA-2048 of the RSA Factoring Challenge (1991): a modulus that no party of a sum has drawn. RSA
# Laboratories destroyed its factors, and nobody who looked for them for a prize has found them.
RSA_2048 = int(
    "c7970ceedcc3b0754490201a7aa613cd73911081c790f5f1a8726f463550bb5b7ff0db8e1ea1189ec72f93d1"
    "650011bd721aeeacc2acde32a04107f0648c2813a31f5b0b7765ff8b44b4b6ffc93384b646eb09c7cf5e8592"
    "d40ea33c80039f35b4f14a04b51f7bfd781be4d1673164ba8eb991c2c4d730bbbe35f592bdef524af7e8daef"
    "d26c66fc02c479af89d64d373f442709439de66ceb955f3ea37d5159f6135809f85334b5cb1813addc80cd05"
    "609f10ac6a95ad65872c909525bdad32bc729592642920f24c61dc5b3c3b7923e56b16a4d9d373d8721f24a3"
    "fc0f1b3131f55615172866bccc30f95054c824e733a5eb6817f7bc16399d48c6361cc7e5",
    16,
)


def draw_modulus(bits: int = 2048) -> int:
    """Draw a modulus N = pq of at least 2048 bits and forget its factors: the dealer's part.

    Whoever keeps p and q reads every count: C^lcm(p-1, q-1) leaves the plaintext and a multiple of
    the key. The parties must trust that the dealer forgets them; at the least, the dealer should
    end its process after set-up.
    """
    p, q = rsa_primes(bits)
    return p * q


@dataclass(frozen=True)
class Parameters:
    """The public parameters of sums; a ValueError if N is easy to factor or sums do not fit."""

    modulus: int = field(repr=False)  # N, from `draw_modulus`
    study: bytes  # names what the sums are for: part of every hash
    most: int  # the largest number of parties of a sum
    lowest: int  # of one party's count, its noise included
    highest: int  # likewise

    least_bits: ClassVar[int] = 2048

    def __post_init__(self) -> None:
        check_modulus(self.modulus, self.least_bits)
        assert self.packing.slots  # bounds that do not fit are refused here

    @cached_property
    def square(self) -> int:
        """N^2: ciphertexts are residues modulo it."""
        return self.modulus**2

    @property
    def key_bound(self) -> int:
        """Keys are drawn below this: 2^128 N^2."""
        return self.square << STATISTICAL_BITS

    @cached_property
    def packing(self) -> Packing:
        """How counts lie in plaintexts below N."""
        bits = self.modulus.bit_length() - 1
        return Packing(self.lowest, self.highest, self.most, bits)

    @cached_property
    def label(self) -> bytes:
        """A digest of the parameters: part of every hash and every message."""
        numbers = self.modulus, self.most, self.lowest, self.highest
        return label("additive scheme", *numbers, self.study)

    def base(self, time: int, packet: int, context: bytes = b"") -> int:
        """Return H(t): the base that hides one packet of a message at one time.

        Parties that were sent different things, `context`, use different bases: nobody can sum
        their ciphertexts.
        """
        purpose = label("within", self.label, context) if context else self.label
        return full_domain_hash(self.square, purpose, time, packet)

    def expected(self, time: int, count: int) -> Expected:
        """Return what a message of `count` counts must be."""
        return Expected(self.label, time, count, self.packing.packets(count), self.square)


def deal_keys(parameters: Parameters, parties: Iterable[Party], randomness: Randomness) -> Keys:
    """Deal keys whose sum is zero over the integers to two parties or more: the rest of the set-up.

    A dealer that keeps them reads every count.
    """
    names = sorted(set(parties))
    if not 2 <= len(names) <= parameters.most:
        raise ValueError(f"there must be from 2 to {parameters.most} parties, got {len(names)}")
    keys = {party: uniform_below(parameters.key_bound, randomness) for party in names}
    return Keys(-sum(keys.values()), keys)


class Encryptor(KeyOwner[Parameters]):
    """A party that encrypts its counts."""

    def encrypt(self, counts: Counts, time: int) -> Ciphertexts:
        """Encrypt this party's counts for one time; see `encrypt`."""
        return encrypt(self.parameters, self.party, self._key, counts, self.times, time)


def encrypt(
    parameters: Parameters,
    party: Party,
    key: int,
    counts: Counts,
    times: Times,
    time: int,
    context: bytes = b"",
) -> Ciphertexts:
    """Return (1 + x N) H(t)^sk mod N^2 for each plaintext x, and use up the time.

    `counts` have their noise included. A ValueError says that one lies outside the bounds, before
    the time is used up; a DealReusedError, that the time or a higher one was used before.
    """
    plaintexts = parameters.packing.pack(counts)
    times.use(time)
    modulus, square = parameters.modulus, parameters.square
    ciphertexts = [
        (1 + x * modulus) * powmod(parameters.base(time, packet, context), key, square) % square
        for packet, x in enumerate(plaintexts)
    ]
    return parameters.expected(time, len(counts)).pack(party, ciphertexts)


def decrypt(
    parameters: Parameters,
    key: int,
    parties: Sequence[Party],
    received: Mapping[Party, Ciphertexts],
    time: int,
    count: int,
    context: bytes = b"",
) -> NDArray[np.int64]:
    """Decrypt the sums over all parties, whose keys with the aggregator's `key` are zero in sum.

    Returns exact and signed sums, int64 of shape (count,); see `clamp`. A ProtocolError names
    parties that are missing or sent a wrong message. It names all if the product is not an
    encryption, or its sums are larger than the parties can make them: nobody can know who sent a
    wrong ciphertext.
    """
    check_senders(received, parties)
    expected = parameters.expected(time, count)
    columns = [expected.integers(received[party], party) for party in parties]
    packets = zip(*columns, strict=True)
    bases = (parameters.base(time, packet, context) for packet in range(expected.packets))
    try:
        totals = [_total(parameters, key, *pair) for pair in zip(bases, packets, strict=True)]
        return parameters.packing.unpack(totals, count, len(parties))
    except ValueError as error:
        raise UnknownFaultyPartyError(parties, f"one is wrong: {error}") from None


def _total(parameters: Parameters, key: int, base: int, ciphertexts: Sequence[int]) -> int:
    """Return the sum of one packet's plaintexts."""
    product = powmod(base, key, parameters.square)
    for ciphertext in ciphertexts:
        product = product * ciphertext % parameters.square
    total, rest = divmod(product - 1, parameters.modulus)
    if rest:
        raise ValueError("the product of the ciphertexts is not 1 modulo N: another key or time")
    return total


def open_sums(
    parameters: Parameters, key: int, parties: Sequence[Party], time: int, count: int
) -> Program[NDArray[np.int64]]:
    """Collect the ciphertexts of one time and decrypt their sums: the aggregator's program."""
    received = yield from collect(parties, parameters.expected(time, count))
    return decrypt(parameters, key, parties, received, time, count)
