"""Encrypt, decrypt, and the two programs: one message from each party to the aggregator."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from vertibayes_mpc.aggregation import (
    Ciphertexts,
    Counts,
    Expected,
    KeyOwner,
    check_senders,
    collect,
)
from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.integers import powmod
from vertibayes_mpc.product_scheme.parameters import Parameters
from vertibayes_mpc.rounds import Party, Program


class Encryptor(KeyOwner[Parameters]):
    """A party that encrypts its counts; its parameters are those of `KeyOwner`."""

    def encrypt(self, counts: Counts, time: int) -> Ciphertexts:
        """Encrypt this party's counts for one time, each under a base of its own.

        Counts are at least 1: the caller smooths them and adds noise. Raise a ValueError if one is
        not, or over the bound; the time is not used up then. Raise a DealReusedError if the time,
        or a higher one, was used before.
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

    Raises
    ------
    ProtocolError
        If parties are missing, a message is not what it should be, or a ciphertext is not a square;
        it names them. If a product is larger than the parties can make it, it names all: nobody
        can know who of them sent a wrong ciphertext.
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
