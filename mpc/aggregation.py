"""What the aggregation schemes share: a full-domain hash, times used once, ciphertext messages.

    party -> aggregator    (label, party, time, how many counts, one ciphertext a packet)

The label is a digest of all public parameters. The aggregator takes a message only under its
sender's name, for the label, time and number of counts that it asks for, with every ciphertext an
element of the group. A slot that a short vector left empty would be taken for a count.

Security: ciphertexts are malleable, and nothing here says who made one: that is the transport's
seal. Leakage: who sent, when, and how many packets. Cost: 1 round.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from mpc.integers import STATISTICAL_BITS
from mpc.randomness import label
from mpc.rounds import Expect, Inbox, Message, Party, Program, Round

P = TypeVar("P")  # a scheme's parameters
Counts: TypeAlias = Sequence[int] | NDArray[np.integer]

NEVER = -1  # the last time of a key that has encrypted nothing yet
MOST_TIME = 1 << 62
OVERHEAD_CELLS = 4096  # of a message's names and lengths


@dataclass(frozen=True, slots=True)
class Ciphertexts(Message):
    """One party's ciphertexts of one time, packet after packet, big-endian."""

    kind: ClassVar[str] = "ciphertexts"
    label: bytes
    party: Party
    time: int
    count: int
    packets: tuple[bytes, ...] = field(repr=False)


def full_domain_hash(modulus: int, name: bytes, *parts: int) -> int:
    """Hash to an invertible residue modulo `modulus`, 2^-128 from uniform.

    A digest of all that is hashed (SHA-256, each part with its length) is expanded by SHAKE-256 to
    128 bits more than the modulus has, and reduced.

    Parameters
    ----------
    modulus : int
    name : bytes
        A label: what the hash is for.
    *parts : int
        The time, the packet.
    """
    size = (modulus.bit_length() + STATISTICAL_BITS + 7) // 8
    attempt = 0
    while True:
        digest = label("full domain hash", modulus, name, *parts, attempt)
        value = int.from_bytes(hashlib.shake_256(digest).digest(size), "big") % modulus
        if math.gcd(value, modulus) == 1:
            return value
        attempt += 1


class Times:
    """The times at which a key has encrypted: they increase, and none comes twice.

    Two ciphertexts of one time show the difference of their plaintexts to everybody. To survive a
    restart, the owner stores `last` before a ciphertext leaves, and begins with it.

    Parameters
    ----------
    last : int
        The highest time used with this key; `NEVER` for a new one.
    """

    def __init__(self, last: int) -> None:
        self.last = last

    def use(self, time: int) -> None:
        """Note a time as used.

        Raises
        ------
        DealReusedError
            If it, or a higher one, was used before.
        ValueError
            If it is no time: from 0 to 2**62.
        """
        if not 0 <= time <= MOST_TIME:
            raise ValueError(f"time {time}: one from 0 to 2**62 is wanted")
        if time <= self.last:
            raise DealReusedError(f"time {time} comes after {self.last}: times must increase")
        self.last = time


class KeyOwner(Generic[P]):
    """A party's key, and the times at which it has encrypted.

    Parameters
    ----------
    parameters : Parameters
        Of the scheme.
    party : Party
    key : int
        Of `deal_keys`; used by nobody else.
    last_time : int
        The highest time that this key was ever used at, `NEVER` for a new key. After each
        `encrypt`, the caller stores `times.last` before it sends.
    """

    def __init__(self, parameters: P, party: Party, key: int, *, last_time: int) -> None:
        self.parameters, self.party, self.times = parameters, party, Times(last_time)
        self._key = key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.party!r}, last_time={self.times.last})"


class Expected(NamedTuple):
    """What the aggregator wants of each party: its ciphertexts of one time, in the group."""

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

    def integers(self, message: Message, sender: Party) -> tuple[int, ...]:
        """Return the ciphertexts of a message, or blame its sender.

        Raises
        ------
        UnexpectedMessageError
            If it is another party's, of other parameters, or of a time to come.
        ReplayedMessageError
            If it is of an earlier time.
        MalformedMessageError
            If it has other counts than are asked for, or a packet is missing, too long or short,
            out of range, or not invertible.
        """
        assert isinstance(message, Ciphertexts)  # the transport has checked the kind
        if message.party != sender:
            raise UnexpectedMessageError(sender, f"sent ciphertexts of {message.party}")
        if message.label != self.label:
            raise UnexpectedMessageError(sender, "ciphertexts under other parameters")
        if message.time < self.time:
            raise ReplayedMessageError(sender, f"ciphertexts of time {message.time}, which is past")
        if message.time > self.time:
            raise UnexpectedMessageError(sender, f"time {message.time}, wanted {self.time}")
        for what, came, wanted in (
            ("counts", message.count, self.counts),
            ("packets", len(message.packets), self.packets),
        ):
            if came != wanted:
                raise MalformedMessageError(sender, f"{came} {what}, wanted {wanted}")
        return tuple(self._integer(packet, sender) for packet in message.packets)

    def _integer(self, packet: bytes, sender: Party) -> int:
        value = int.from_bytes(packet, "big")
        if len(packet) != self.width or not 0 < value < self.modulus:
            raise MalformedMessageError(sender, "a ciphertext out of range")
        if math.gcd(value, self.modulus) != 1:
            raise MalformedMessageError(sender, "a ciphertext that is not invertible")
        return value


def named(received: Mapping[Party, Message], parties: Sequence[Party]) -> None:
    """Check that all of `parties`, and nobody else, were heard.

    Raises
    ------
    ProtocolError
        If one is missing; it names the missing. A sum over fewer cannot be decrypted.
    UnexpectedMessageError
        If somebody else sent; it names the first of them.
    """
    if missing := sorted(set(parties) - set(received)):
        raise ProtocolError(tuple(missing), "no ciphertexts came")
    if strangers := sorted(set(received) - set(parties)):
        raise UnexpectedMessageError(strangers[0], "is not one of the parties of this sum")


def send(ciphertexts: Ciphertexts, aggregator: Party) -> Program[None]:
    """Send one's ciphertexts to the aggregator."""
    yield Round({aggregator: ciphertexts}, {})


def collect(parties: Sequence[Party], expected: Expected) -> Program[Inbox]:
    """Wait for the ciphertexts of all parties."""
    return (yield Round({}, dict.fromkeys(parties, expected.message)))
