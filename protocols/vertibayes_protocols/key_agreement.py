"""Keys of two parties for one session, from their static and their ephemeral keys.

    key = HKDF(ee | es | se | ss)    over purpose, names, static and ephemeral keys, and a context

Each party has a static X25519 key pair, whose public half the other party has pinned, and an
ephemeral one for the session. The four secrets are of the two ephemeral keys (ee), of the ephemeral
key of one party and the static key of the other (es, se), and of the two static keys (ss); the
order of the names tells es from se. They are the secrets of Noise's pattern KK (Perrin, The Noise
Protocol Framework, revision 34, 7.5).

Security: to derive a key, one needs the static *and* the ephemeral private key of one of the two
parties. So whoever steals both static keys after the session derives nothing (ee). Whoever knows
the ephemeral key of one party, from a broken generator or a copy of its memory, and the static key
of the other party, derives nothing (es, se). Whoever knows both ephemeral keys derives nothing
(ss). The key says by itself that the other end has a static key: without that key nobody who
replaces an ephemeral key on its way derives what either end has.
Cost: four agreements, 0.2 ms.
"""

from __future__ import annotations

from typing import NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, StreamKey, label
from vertibayes_mpc.rounds import Party


class Own(NamedTuple):
    """A party's own end: its name and its key pairs."""

    party: Party
    static: KeyPair
    ephemeral: KeyPair


class Peer(NamedTuple):
    """The other end: its name, its pinned public key, and the ephemeral public key that it sent."""

    party: Party
    static: bytes
    ephemeral: bytes


def agree_session_key(own: Own, peer: Peer, purpose: str, *context: bytes) -> bytes:
    """Return the key of two parties for one session and purpose: the same at both."""
    sides = sorted(
        [
            (own.party, own.ephemeral.public, own.static.public),
            (peer.party, peer.ephemeral, peer.static),
        ]
    )
    mixed = {
        own.party: own.ephemeral.agree(peer.static, f"{purpose}: es").secret,
        peer.party: own.static.agree(peer.ephemeral, f"{purpose}: es").secret,
    }
    both = own.ephemeral.agree(peer.ephemeral, f"{purpose}: ee").secret
    static = own.static.agree(peer.static, f"{purpose}: ss").secret
    secrets = both + mixed[sides[0][0]] + mixed[sides[1][0]] + static
    info = label(f"{purpose}: session key", *context, *(part for side in sides for part in side))
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(secrets)


def session_stream(own: Own, peer: Peer, purpose: str, *context: bytes) -> StreamKey:
    """Return the key of `agree_session_key` for streams; blame a peer whose key is not valid."""
    try:
        return StreamKey(agree_session_key(own, peer, purpose, *context))
    except ValueError:
        raise MalformedMessageError(peer.party, "its ephemeral key is not valid") from None
