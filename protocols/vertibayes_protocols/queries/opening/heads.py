"""Heads: sites that meet notice a memory that went back, and a ledger that was changed.

    site -> sites              KnownHead: the last head that it has of the receiver's ledger
    site -> sites              NewestHead: whether it has the head, and the newest head of its own

They are exchanged once a session, in `Align` or else in `Meet`, before anything else of it.
`vertibayes_protocols.storage.runs_together` says why, and what a lie can do.

Security: a head cannot be distinguished from random bytes (`vertibayes_protocols.storage.chain`).
Leakage: whether a site went back, to its peers, and to the analyst. Cost: 2 rounds, 100 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange
from vertibayes_protocols import clock
from vertibayes_protocols.errors import QueryRefusedError, printable
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.chain import HEAD_BYTES
from vertibayes_protocols.storage.runs_together import MOST_SESSIONS, Alarm, Last

REASON_CELLS = 500  # of why a site refuses
WAY_OUT = (
    "restore the newest memory and ledger of this site, or of the other one; if they are lost, "
    "`vertibayes meets --older-memory PEER` says what may follow, and accepts it"
)


@dataclass(frozen=True, slots=True)
class KnownHead(Message):
    """The head of the receiver's ledger that the sender has, and their sessions so far."""

    kind: ClassVar[str] = "known head"
    head: bytes = field(repr=False)
    sessions: int
    day: int


@dataclass(frozen=True, slots=True)
class NewestHead(Message):
    """Whether the sender's ledger has the head that the receiver knows, and its newest head."""

    kind: ClassVar[str] = "newest head"
    is_known: bool
    head: bytes = field(repr=False)


def check_accepted(site: SiteRole) -> None:
    """Refuse a session if the file of what the owner has accepted cannot be read."""
    try:
        site.memory.together.accepted()
    except ValueError as error:
        reason = "its file of accepted memories cannot be used: ask its owner"
        raise QueryRefusedError(site.party, reason, str(error)) from None


def check_refused(refusals: Mapping[Party, str]) -> None:
    """Raise, at the analyst, which sites have gone back, as they say; nothing if none has."""
    refused = {site: printable(reason) for site, reason in refusals.items() if reason}
    if refused:
        (first, reason), *others = refused.items()
        also = f"; {', '.join(site for site, _ in others)} refuse too" if others else ""
        raise QueryRefusedError(first, f"{reason}{also}: ask their owners")


def exchange_heads(site: SiteRole, peers: Sequence[Party]) -> Program[str]:
    """Compare what sites have of each other; return why the site refuses, or nothing."""
    peers = [peer for peer in peers if peer not in site.heads_of]
    if not peers:
        return site.went_back
    together, ledger = site.memory.together, site.ledger
    for peer in peers:
        together.name(peer, _keys(site, peer))
    together.take_accepted()
    last = {peer: together.last(peer) for peer in peers}
    claims = yield from _exchange_last(last)
    is_known = {
        peer: not claim.head or ledger.knows(bytes.fromhex(claim.head))
        for peer, claim in claims.items()
    }
    newest = {peer: NewestHead(known, ledger.head) for peer, known in is_known.items()}
    answers = yield from exchange(newest, dict.fromkeys(peers, Expect(NewestHead)))
    reasons = []
    for peer, answer in answers.items():
        _check_size(peer, answer.head)
        reasons += _compared(site, peer, last[peer], claims[peer], is_known[peer], answer)
    for reason in reasons:
        site.ledger.note(f"{reason}: {WAY_OUT}", site.party, ())
        site.remark(f"{reason}: {WAY_OUT}")
    site.heads_of |= {*peers}
    return "; ".join(reasons)


def _compared(
    site: SiteRole, peer: Party, ours: Last, theirs: Last, is_known: bool, answer: NewestHead
) -> list[str]:
    """Keep the newest head of a peer, or return why the site refuses."""
    together = site.memory.together
    is_its_key = not ours.head or bytes.fromhex(ours.key) in _keys(site, peer)
    own = Alarm(theirs.head, _words("it", peer, *ours.forgotten(theirs)))
    other = Alarm(ours.head, _words(peer, "it", *theirs.forgotten(ours)))
    if answer.is_known and not is_its_key:
        other = Alarm(ours.head, f"{peer} has a key that its key in the last session did not sign")
    together.check_own(peer, own, is_known=is_known)
    together.check_peer(peer, other, is_known=answer.is_known and is_its_key)
    reasons = [alarm.words for alarm in together.alarms(peer)]
    if is_known and not reasons:
        today, key = clock.now().toordinal(), site.public_keys[peer].hex()
        together.see(peer, ours, Last(answer.head.hex(), theirs.sessions, today, key))
    return reasons


def _keys(site: SiteRole, peer: Party) -> tuple[bytes, ...]:
    """Return the key of a peer, and those by which it was signed."""
    return (site.public_keys[peer], *site.former_keys.get(peer, ()))


def _words(who: Party, beside: Party, count: str, when: str) -> str:
    """Say which of two sites has forgotten what."""
    if count:
        return f"{who} has forgotten {count} with {beside} {when}"
    return f"the ledger of {'this site' if who == 'it' else who} is not the one {when}"


def _exchange_last(last: Mapping[Party, Last]) -> Program[dict[Party, Last]]:
    """Send each peer what this site has of it; return what they have of this site."""
    outbox = {
        peer: KnownHead(bytes.fromhex(ours.head), ours.sessions, ours.day)
        for peer, ours in last.items()
    }
    claims = yield from exchange(outbox, dict.fromkeys(last, Expect(KnownHead)))
    for peer, claim in claims.items():
        _check_size(peer, claim.head)
        is_day = 0 <= claim.day <= date.max.toordinal()
        if not (is_day and 0 <= claim.sessions <= MOST_SESSIONS):
            reason = "sends a number of sessions, or a day, that cannot be"
            raise MalformedMessageError(peer, reason)
    return {
        peer: Last(claim.head.hex(), claim.sessions, claim.day) for peer, claim in claims.items()
    }


def _check_size(peer: Party, head: bytes) -> None:
    if len(head) not in (0, HEAD_BYTES):
        raise MalformedMessageError(peer, "sends a head of another size")
