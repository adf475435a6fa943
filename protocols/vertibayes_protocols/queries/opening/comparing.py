"""Comparing: sites find out whether a party sent all of them the same (equivocation).

    receivers -> sites        Received: a digest of what each sender sent to the receiver

Each site compares the digests of the other receivers with its own. The digest of a long message is
computed while its blocks arrive.

Security: if a sender sends two honest receivers different messages, the receivers that are sites
see it, and end the session with an error that names the sender and the two receivers. One of the
three is at fault, and nobody knows which: a receiver can report a digest of something else. A
message with a single receiver is compared with nothing: with two sites, a masked column has one. A
sender that sends the same false message to all is not detected either.
Leakage: none; a site sees a digest of a message that it received itself. Cost: one round, 33 bytes
per sender, from each receiver to each site.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange


@dataclass(frozen=True, slots=True)
class Received(Message):
    """Digests of what a party received, by sender in the order of names; empty for itself."""

    kind: ClassVar[str] = "received"
    digests: tuple[bytes, ...]


def compare(
    party: Party,
    what: str,
    digests: Mapping[Party, bytes],
    sites: Collection[Party],
    receivers: Collection[Party] = (),
) -> Program[None]:
    """Compare what a party received with what the other receivers did: one round."""
    senders = sorted({party, *digests})
    ours = Received(tuple(digests.get(sender, b"") for sender in senders))
    outbox = dict.fromkeys([site for site in sites if site != party], ours)
    expect = Expect(Received, (LABEL_BYTES + 1) * len(senders))
    others = [receiver for receiver in receivers if receiver != party]
    received = yield from exchange(outbox, dict.fromkeys(others, expect))
    for peer in others:
        lengths = [0 if sender == peer else LABEL_BYTES for sender in senders]
        if [len(digest) for digest in received[peer].digests] != lengths:
            raise MalformedMessageError(peer, "its digests have a wrong number or length")
        for sender, digest in zip(senders, received[peer].digests, strict=True):
            if sender not in (party, peer) and digest != digests[sender]:
                _differ(sender, party, peer, what)


def _differ(sender: Party, party: Party, peer: Party, what: str) -> None:
    one, other = sorted((party, peer))
    reason = f"the {what} that {sender} sent to {one} and to {other} differ, or one of them lies"
    raise UnknownFaultyPartyError((sender, one, other), reason)
