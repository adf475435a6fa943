"""What all parties know of a product; keys, encryption, decryption, and the two programs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vertibayes_mpc.aggregation import (
    Ciphertexts,
    Counts,
    Expected,
    KeyOwner,
    Keys,
    check_senders,
    collect,
    full_domain_hash,
)
from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.integers import powmod, uniform_below
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.rounds import Party, Program

# The primes of RFC 3526 begin with the same digits of pi.
_LEADING = (
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A0879"
    "8E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B"
    "0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA4836"
    "1C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804"
    "F1746C08CA18217C32905E462E36CE3BE39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6"
    "955817183995497CEA956AE515D2261898FA051015728E5A8AA"
)
MODP_PRIMES = {
    2048: int(_LEADING + "CAA68FFFFFFFFFFFFFFFF", 16),
    3072: int(
        _LEADING
        + "AC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C"
        "7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864D87602733EC86A64521"
        "F2B18177B200CBBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D12"
        "0A93AD2CAFFFFFFFFFFFFFFFF",
        16,
    ),
}


@dataclass(frozen=True)
class Parameters:
    """The public parameters of products; a ValueError if one could exceed (p - 1) / 2."""

    bits: int  # of the safe prime: 2048 or 3072 (RFC 3526)
    study: bytes  # names what the products are for: part of every hash
    most: int  # the largest number of parties of a product
    highest: int  # the largest count; the smallest is 1

    primes: ClassVar[Mapping[int, int]] = MODP_PRIMES

    def __post_init__(self) -> None:
        if self.bits not in self.primes:
            raise ValueError(f"bits must be one of {sorted(self.primes)}, got {self.bits}")
        # The length is compared first: the power of a number of many digits takes hours.
        is_long = (self.highest.bit_length() - 1) * self.most >= self.bits
        if self.highest < 1 or is_long or self.largest > (self.prime - 1) // 2:
            length = self.highest.bit_length()
            highest = self.highest if length <= self.bits else f"2**{length - 1} or more"
            counts = f"{self.most} counts from 1 to {highest}"
            raise ValueError(
                f"products of {counts} must be at most (p - 1) / 2 of {self.bits} bits"
            )

    @property
    def prime(self) -> int:
        """The safe prime p = 2q + 1."""
        return self.primes[self.bits]

    @property
    def order(self) -> int:
        """The prime q: how many squares there are."""
        return self.prime // 2

    @property
    def largest(self) -> int:
        """The largest product."""
        return int(self.highest**self.most)

    @cached_property
    def label(self) -> bytes:
        """A digest of the parameters: part of every hash and every message."""
        return label("product scheme", self.prime, self.most, self.highest, self.study)

    def base(self, time: int, place: int) -> int:
        """Return H(t): the square that hides the count at one place, at one time."""
        return full_domain_hash(self.prime, self.label, time, place) ** 2 % self.prime

    def expected(self, time: int, count: int) -> Expected:
        """Return what a message of `count` counts must be."""
        return Expected(self.label, time, count, count, self.prime)


def deal_keys(parameters: Parameters, parties: Iterable[Party], randomness: Randomness) -> Keys:
    """Deal keys whose sum is zero modulo q. A dealer that keeps them reads every count."""
    names, order = sorted(set(parties)), parameters.order
    if not 2 <= len(names) <= parameters.most:
        raise ValueError(f"there must be from 2 to {parameters.most} parties, got {len(names)}")
    keys = {party: uniform_below(order, randomness) for party in names}
    return Keys(-sum(keys.values()) % order, keys)


class Encryptor(KeyOwner[Parameters]):
    """A party that encrypts its counts."""

    def encrypt(self, counts: Counts, time: int) -> Ciphertexts:
        """Encrypt this party's counts for one time, each under a base of its own.

        Counts are at least 1: the caller smooths them and adds noise. A ValueError says that one is
        not, or is over the bound, before the time is used up; a DealReusedError, that the time or a
        higher one was used before.
        """
        values = [operator.index(count) for count in counts]
        for place, value in enumerate(values):
            if not 1 <= value <= self.parameters.highest:
                bounds = f"from 1 to {self.parameters.highest}"
                raise ValueError(f"the count at place {place} must be {bounds}; smooth it first")
        self.times.use(time)
        p = self.parameters.prime
        bases = (self.parameters.base(time, place) for place in range(len(values)))
        ciphertexts = [
            x**2 * powmod(h, self._key, p) % p for x, h in zip(values, bases, strict=True)
        ]
        return self.parameters.expected(time, len(values)).pack(self.party, ciphertexts)


def decrypt(
    parameters: Parameters,
    key: int,
    parties: Sequence[Party],
    received: Mapping[Party, Ciphertexts],
    time: int,
    count: int,
) -> list[int]:
    """Decrypt the products over all parties.

    A ProtocolError names parties that are missing, or sent a wrong message or a ciphertext that is
    not a square. It names all if a product is larger than they can make it.
    """
    check_senders(received, parties)
    expected = parameters.expected(time, count)
    columns = [_squares(expected, received[party], party) for party in parties]
    products = []
    for place, factors in enumerate(zip(*columns, strict=True)):
        square = powmod(parameters.base(time, place), key, parameters.prime)
        for factor in factors:
            square = square * factor % parameters.prime
        products.append(_root(square, parameters.prime))
    if any(product > parameters.largest for product in products):
        raise UnknownFaultyPartyError(parties, "a product is larger than they can make it")
    return products


def _squares(expected: Expected, message: Ciphertexts, sender: Party) -> tuple[int, ...]:
    """Return a message's ciphertexts, or blame the sender of one that is not a square."""
    ciphertexts = expected.integers(message, sender)
    for ciphertext in ciphertexts:
        if powmod(ciphertext, expected.modulus // 2, expected.modulus) != 1:
            raise MalformedMessageError(sender, "a ciphertext that is not a square")
    return ciphertexts


def _root(square: int, prime: int) -> int:
    """Return the smaller root: one of the two is a square, and p = 3 modulo 4."""
    root = powmod(square, (prime + 1) // 4, prime)
    return min(root, prime - root)


def open_products(
    parameters: Parameters, key: int, parties: Sequence[Party], time: int, count: int
) -> Program[list[int]]:
    """Collect the ciphertexts of one time and decrypt their products: the aggregator's program."""
    received = yield from collect(parties, parameters.expected(time, count))
    return decrypt(parameters, key, parties, received, time, count)
