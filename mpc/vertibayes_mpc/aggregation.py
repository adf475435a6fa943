"""What the aggregation schemes share: a full-domain hash, times used once, ciphertext messages.

    party -> aggregator    (label, party, time, number of counts, one ciphertext a packet)

The label is a digest of all public parameters. The aggregator accepts a message only under its
sender's name, for the label, time and number of counts that it expects, and only if every
ciphertext is an element of the group. Otherwise it would read the empty slots of a short vector as
counts.

Security: ciphertexts are malleable, and a message does not prove who made it: the transport's seal
does.
Leakage: who sent, when, and how many packets.
Cost: 1 round.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.integers import STATISTICAL_BITS
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send

P = TypeVar("P")  # a scheme's parameters
Counts: TypeAlias = Sequence[int] | NDArray[np.integer]

NEVER = -1  # the last time of a key that has not encrypted yet
MOST_TIME = 1 << 62
OVERHEAD_CELLS = 4096  # of a message's names and lengths


@dataclass(frozen=True, slots=True)
class Ciphertexts(Message, kind="ciphertexts"):
    """One party's ciphertexts for one time, packet after packet, big-endian."""

    label: bytes
    party: Party
    time: int
    count: int
    packets: tuple[bytes, ...] = field(repr=False)


def full_domain_hash(modulus: int, purpose: bytes, *parts: int) -> int:
    """Hash to an invertible residue modulo `modulus`, 2^-128 from uniform (SHAKE-256)."""
    size = (modulus.bit_length() + STATISTICAL_BITS + 7) // 8
    attempt = 0
    while True:
        digest = label("full domain hash", modulus, purpose, *parts, attempt)
        value = int.from_bytes(hashlib.shake_256(digest).digest(size), "big") % modulus
        if math.gcd(value, modulus) == 1:
            return value
        attempt += 1


class Times:
    """The times at which a key has encrypted: they increase, and no time is used twice.

    Two ciphertexts of one time show the difference of their plaintexts to everybody. To survive a
    restart, the owner stores `last` before it sends a ciphertext, and starts again from it.
    """

    def __init__(self, last: int) -> None:
        self.last = last

    def use(self, time: int) -> None:
        """Note a time, from 0 to 2**62, as used; a DealReusedError unless it is the highest."""
        if not 0 <= time <= MOST_TIME:
            raise ValueError(f"a time must be from 0 to 2**62, got {time}")
        if time <= self.last:
            raise DealReusedError(f"times must increase: time {time} comes after {self.last}")
        self.last = time


@dataclass(frozen=True, slots=True)
class Keys:
    """The dealer's keys, zero in sum. The dealer sends each to its owner alone and forgets it."""

    aggregator: int = field(repr=False)
    parties: Mapping[Party, int] = field(repr=False)


class KeyOwner(ABC, Generic[P]):
    """A party's key, and the times at which it has encrypted."""

    def __init__(self, parameters: P, party: Party, key: int, *, last_time: int) -> None:
        self.parameters, self.party, self.times = parameters, party, Times(last_time)
        self._key = key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.party!r}, last_time={self.times.last})"

    @abstractmethod
    def encrypt(self, counts: Counts, time: int) -> Ciphertexts:
        """Encrypt this party's counts for one time."""


def contribute(owner: KeyOwner[P], counts: Counts, time: int, aggregator: Party) -> Program[None]:
    """Encrypt counts and send them to the aggregator, who decrypts: a party's program."""
    yield from send({aggregator: owner.encrypt(counts, time)})


class Expected(NamedTuple):
    """What the aggregator expects of each party: its ciphertexts for one time, in the group."""

    label: bytes
    time: int
    counts: int
    packets: int
    modulus: int

    @property
    def width(self) -> int:
        """The bytes of a ciphertext."""
        return (self.modulus.bit_length() + 7) // 8

    @property
    def message(self) -> Expect[Ciphertexts]:
        """What may come on the wire."""
        return Expect(Ciphertexts, OVERHEAD_CELLS + self.packets * (self.width + 1))

    def pack(self, party: Party, ciphertexts: Sequence[int]) -> Ciphertexts:
        """Return the message of a party."""
        packets = tuple(c.to_bytes(self.width, "big") for c in ciphertexts)
        return Ciphertexts(self.label, party, self.time, self.counts, packets)

    def integers(self, message: Ciphertexts, sender: Party) -> tuple[int, ...]:
        """Return the ciphertexts of a message, or blame its sender."""
        if message.party != sender:
            raise UnexpectedMessageError(sender, f"sent ciphertexts of {message.party}")
        if message.label != self.label:
            raise UnexpectedMessageError(sender, "ciphertexts under other parameters")
        check_time(message.time, self.time, sender, "ciphertexts")
        for what, came, expected in (
            ("counts", message.count, self.counts),
            ("packets", len(message.packets), self.packets),
        ):
            if came != expected:
                raise MalformedMessageError(sender, f"sent {came} {what}; expected {expected}")
        return tuple(self._integer(packet, sender) for packet in message.packets)

    def _integer(self, packet: bytes, sender: Party) -> int:
        value = int.from_bytes(packet, "big")
        if len(packet) != self.width or not 0 < value < self.modulus:
            raise MalformedMessageError(sender, "a ciphertext out of range")
        if math.gcd(value, self.modulus) != 1:
            raise MalformedMessageError(sender, "a ciphertext that is not invertible")
        return value


def check_time(time: int, expected: int, sender: Party, what: str) -> None:
    """Blame the sender of `what` for another time than the one expected."""
    reason = f"sent {what} of time {time}; expected time {expected}"
    if time < expected:
        raise ReplayedMessageError(sender, reason)
    if time > expected:
        raise UnexpectedMessageError(sender, reason)


def check_senders(received: Mapping[Party, Ciphertexts], parties: Sequence[Party]) -> None:
    """Check that all of `parties`, and nobody else, sent: fewer cannot be decrypted."""
    if missing := sorted(set(parties) - set(received)):
        raise ProtocolError(tuple(missing), "sent no ciphertexts")
    if strangers := sorted(set(received) - set(parties)):
        raise UnexpectedMessageError(strangers[0], "is not one of the parties of this sum")


def collect(parties: Sequence[Party], expected: Expected) -> Program[dict[Party, Ciphertexts]]:
    """Wait for the ciphertexts of all parties."""
    return (yield from exchange({}, dict.fromkeys(parties, expected.message)))
