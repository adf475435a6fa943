"""Tokens: the sites of a run notice a memory that is older than the one with which they last met.

    site -> sites              Token: the last one that it has of the receiver
    site -> sites              Token: a new one, written down before it leaves

`vertibayes_protocols.storage.runs_together` says why, and what a lie can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from vertibayes_mpc.errors import MalformedMessageError, ProtocolError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.runs_together import TOKEN_BYTES, Pair

OLDER = (
    "its memory is older than the one with which it last met {}, and has forgotten what was used "
    "up since: restore its newest memory, or accept this one with `vertibayes meets --older-memory`"
)


@dataclass(frozen=True, slots=True)
class Token(Message):
    """The last token that the sender has of the receiver, or a new one for it."""

    kind: ClassVar[str] = "token"
    token: bytes = field(repr=False)


def _pair(site: SiteRole, peer: Party) -> Pair:
    """Return the name of two sites in the memory: their keys."""
    return site.keys.public.hex() + site.public_keys[peer].hex()


def check_newest(site: SiteRole, peers: Sequence[Party]) -> None:
    """Refuse a run with a memory that was found to be older, unless the owner has accepted it."""
    try:
        newer = [peer for peer in peers if site.memory.together.is_older(_pair(site, peer))]
    except ValueError as error:
        reason = "its file of accepted memories cannot be used: ask its owner"
        raise QueryRefusedError(site.party, reason, str(error)) from None
    if newer:
        raise ValueError(OLDER.format(", ".join(newer)))


def exchange_tokens(site: SiteRole, peers: Sequence[Party]) -> Program[None]:
    """Refuse a memory that does not know what a peer has of it; then send the peers new tokens."""
    newer = []
    pairs, expect = {peer: _pair(site, peer) for peer in peers}, dict.fromkeys(peers, Expect(Token))
    together = site.memory.together
    known = {peer: Token(together.seen(pair)) for peer, pair in pairs.items()}
    for peer, theirs in (yield from exchange(known, expect)).items():
        if len(theirs.token) not in (0, TOKEN_BYTES):
            raise MalformedMessageError(peer, "sends a token of another size")
        if not together.check(pairs[peer], theirs.token):
            newer.append(peer)
    if newer:
        site.ledger.note(reason := OLDER.format(", ".join(newer)), site.party, ())
        raise ProtocolError(site.party, reason)
    new = {peer: site.memory.randomness.bytes(TOKEN_BYTES) for peer in peers}
    together.send({pairs[peer]: token for peer, token in new.items()})
    outbox = {peer: Token(token) for peer, token in new.items()}
    received = yield from exchange(outbox, expect)
    for peer, theirs in received.items():
        if len(theirs.token) != TOKEN_BYTES:
            raise MalformedMessageError(peer, "sends a token of another size")
    together.see({pairs[peer]: theirs.token for peer, theirs in received.items()})
