"""Encrypt, decrypt, and the two programs: one message from each party to the aggregator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc.additive_scheme.parameters import Parameters
from mpc.aggregation import Ciphertexts, Counts, KeyOwner, Times, collect, named, send
from mpc.errors import UnknownFaultyPartyError
from mpc.integers import powmod
from mpc.rounds import Message, Party, Program


class Encryptor(KeyOwner[Parameters]):
    """A party that encrypts its counts; its parameters are those of `KeyOwner`."""

    def encrypt(self, counts: Counts, time: int) -> Ciphertexts:
        """Encrypt this party's counts of one time, one exponentiation a packet.

        Parameters
        ----------
        counts : sequence of int, or ndarray of shape (count,) of an integer type
            With the party's noise.
        time : int
            Higher than all before.

        Raises
        ------
        ValueError
            If a count lies outside the bounds; the time is not used up then.
        DealReusedError
            If the time, or a higher one, was used before.
        """
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
    """Return (1 + x N) H(t)^sk mod N^2 for each plaintext x, and use up the time."""
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
    received: Mapping[Party, Message],
    time: int,
    count: int,
    context: bytes = b"",
) -> NDArray[np.int64]:
    """Decrypt the sums over all parties.

    Parameters
    ----------
    parameters : Parameters
    key : int
        The aggregator's.
    parties : sequence of Party
        All whose keys, with the aggregator's, are zero in sum.
    received : mapping of Party to Ciphertexts
        By sender.
    time : int
    count : int
        How many counts each party has.
    context : bytes
        What all parties were told alike, as `Parameters.base`.

    Returns
    -------
    sums : ndarray of shape (count,), dtype int64
        Exact and signed; see `clamp`.

    Raises
    ------
    ProtocolError
        If parties are missing, or a message is not what it should be; it names them. If the
        product is no encryption, or its sums are larger than the parties can make them, it names
        all: who of them sent a wrong ciphertext cannot be known.
    """
    named(received, parties)
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


def contribute(encryptor: Encryptor, counts: Counts, time: int, aggregator: Party) -> Program[None]:
    """Send one's counts of one time to the aggregator: a party's program."""
    yield from send(encryptor.encrypt(counts, time), aggregator)


def open_sums(
    parameters: Parameters, key: int, parties: Sequence[Party], time: int, count: int
) -> Program[NDArray[np.int64]]:
    """Collect the ciphertexts of one time and decrypt their sums: the aggregator's program.

    Raises
    ------
    ProtocolError
        As `decrypt`.
    """
    expected = parameters.expected(time, count)
    received = yield from collect(parties, expected)
    return decrypt(parameters, key, parties, received, time, count)
