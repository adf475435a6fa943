"""Envelopes: what comes before the body of each message, at a fixed width, little-endian.

packet   = envelope | body
envelope = magic, session, sender, receiver, counter, depth, length of body
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from vertibayes_mpc.errors import (
    MalformedMessageError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.rounds import Party

MAGIC = b"VB1\0"
MOST_CHAIN = 1 << 31
ENVELOPE = struct.Struct("<4s16s16s16sQLQ")


class Envelope(NamedTuple):
    """Session, sender, receiver and number of a message, and the length of the chain it ends."""

    session: bytes
    sender: Party
    receiver: Party
    counter: int
    depth: int


def name_digest(party: Party) -> bytes:
    """Return the 16 bytes that stand for a party's name in an envelope."""
    return hashlib.sha256(party.encode()).digest()[:16]


def header(envelope: Envelope, body: bytes) -> bytes:
    """Return the header of a body."""
    sender, receiver = name_digest(envelope.sender), name_digest(envelope.receiver)
    numbers = envelope.counter, envelope.depth, len(body)
    return ENVELOPE.pack(MAGIC, envelope.session, sender, receiver, *numbers)


def check_header(header: bytes, body: bytes | memoryview, expected: Envelope) -> int:
    """Check that a packet is the expected one, of any depth, and return its depth.

    Raises
    ------
    MalformedMessageError
        If the packet is cut short or does not start as a packet does.
    UnexpectedMessageError
        If it is of another session, sender or receiver, or messages before it are missing.
    ReplayedMessageError
        If the packet was delivered before.
    """
    sender = expected.sender
    if len(header) != ENVELOPE.size:
        raise MalformedMessageError(sender, f"an envelope of {len(header)} bytes, cut short")
    magic, session, source, target, counter, depth, length = ENVELOPE.unpack(header)
    if magic != MAGIC or length != len(body):
        raise MalformedMessageError(sender, f"a body of {len(body)} bytes, {length} announced")
    if session != expected.session:
        raise UnexpectedMessageError(sender, "a message of another session")
    if (source, target) != (name_digest(sender), name_digest(expected.receiver)):
        raise UnexpectedMessageError(sender, "a message from or to somebody else")
    if depth > MOST_CHAIN:
        raise MalformedMessageError(sender, f"a chain of {depth} messages")
    if counter < expected.counter:
        raise ReplayedMessageError(sender, f"message {counter}, delivered before")
    if counter > expected.counter:
        raise UnexpectedMessageError(
            sender, f"message {counter}, where message {expected.counter} is expected"
        )
    return int(depth)
