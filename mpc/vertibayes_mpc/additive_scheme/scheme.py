"""Encrypt, decrypt, and the two programs: one message from each party to the aggregator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.additive_scheme.parameters import Parameters
from vertibayes_mpc.aggregation import Ciphertexts, Counts, KeyOwner, Times, check_senders, collect
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.integers import powmod
from vertibayes_mpc.rounds import Party, Program


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
