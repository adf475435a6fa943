"""CPace: do two parties hold the same secret? Each run tests one guess, and reveals nothing else.

    both            g = a point that is a hash of the secret, the two names and the session
    P -> Q, Q -> P  y g                       y fresh and secret: uniform, whatever the secret
    both            key = hash of y_P y_Q g
    P -> Q          HMAC(key, P, Q)           P is the party whose name sorts first
    Q -> P          HMAC(key, Q, P)

Q has the code of P before it sends its own: a session that ends between the two says nothing of Q's
secret to anybody, and only P must count it as a guess of Q. The codes agree if and only if the
secrets are equal. A party that guesses learns whether its one guess was right: it cannot test other
guesses on the messages afterwards. On a keyed digest of the secret, a party that holds the key
could.

Security: against either party and anybody between, if discrete logarithms on Curve25519 are hard
(Abdalla, Haase and Hesse 2021).
Leakage: whether the secrets are equal, to both.
Cost: 3 rounds, 64 bytes each way.

References
----------
M. Abdalla, B. Haase and J. Hesse, "CPace, a balanced composable PAKE", draft-irtf-cfrg-cpace:
CPACE-X25519-SHA512, in its symmetric setting. Its test vectors are in `tests/vectors/cpace.json`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from vertibayes_mpc.elligator import PRIME, elligator2
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.prefixed import prefixed
from vertibayes_mpc.randomness import KEY_BYTES, Randomness
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send

POINT_BYTES = 32
HASH_BLOCK = 128  # of SHA-512
DOMAIN = b"CPace255"


@dataclass(frozen=True, slots=True)
class Point(Message, kind="point"):
    """A multiple of the hashed point."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Confirmation(Message, kind="confirmation"):
    """A code under the agreed key."""

    code: bytes


Confirming: TypeAlias = Callable[[Collection[Party]], None]
Outcome: TypeAlias = Callable[[Party, bool], None]


def same_secret(
    party: Party,
    secrets: Mapping[Party, bytes],
    session: bytes,
    randomness: Randomness,
    confirming: Confirming = lambda _: None,
    outcome: Outcome = lambda _, __: None,
) -> Program[dict[Party, bool]]:
    """Compare a secret with each of several peers."""
    sides = {
        peer: Side(generator(secret, _names(party, peer), session), randomness.bytes(KEY_BYTES))
        for peer, secret in secrets.items()
    }
    points = {peer: Point(side.point) for peer, side in sides.items()}
    theirs = yield from exchange(points, dict.fromkeys(secrets, Expect(Point)))
    keys = {peer: _agreed(sides[peer], peer, theirs[peer].value, session) for peer in theirs}
    same = yield from _confirmed(party, keys, confirming, outcome)
    return {peer: same[peer] for peer in secrets}


def confirms_first(party: Party, peer: Party) -> bool:
    """Whether a party's code leaves before the peer's is there."""
    return party < peer


def _confirmed(
    party: Party, keys: Mapping[Party, bytes], confirming: Confirming, outcome: Outcome
) -> Program[dict[Party, bool]]:
    """Exchange codes: those for which the peers wait leave first, and no wait blocks them."""
    codes = {peer: Confirmation(_code(key, party, peer)) for peer, key in keys.items()}
    first = [peer for peer in codes if confirms_first(party, peer)]
    confirming(tuple(first))
    outbox, same = {peer: codes[peer] for peer in first}, {}
    for peer in sorted(keys):  # those whose code comes first
        theirs = (yield from exchange(outbox, {peer: Expect(Confirmation)}))[peer].code
        same[peer] = hmac.compare_digest(theirs, _code(keys[peer], peer, party))
        outcome(peer, same[peer])
        outbox = {} if peer in first else {peer: codes[peer]}
    if outbox:
        yield from send(outbox)
    return same


def _names(party: Party, peer: Party) -> bytes:
    """Return the channel identifier: both names, sorted."""
    return prefixed(*(name.encode() for name in sorted((party, peer))))


def _agreed(side: Side, peer: Party, theirs: bytes, session: bytes) -> bytes:
    try:
        return side.key(theirs, session)
    except ValueError:
        reason = "an invalid point: of small order, or not 32 bytes"
        raise MalformedMessageError(peer, reason) from None


def _code(key: bytes, sender: Party, receiver: Party) -> bytes:
    return hmac.new(key, prefixed(sender.encode(), receiver.encode()), hashlib.sha256).digest()


@dataclass(frozen=True)
class Side:
    """One side of one run: the hashed point, and a fresh scalar."""

    generator: bytes = field(repr=False)
    scalar: bytes = field(repr=False)

    @property
    def point(self) -> bytes:
        """The point that this side sends."""
        return self._times(self.generator)

    def _times(self, point: bytes) -> bytes:
        scalar = X25519PrivateKey.from_private_bytes(self.scalar)
        return scalar.exchange(X25519PublicKey.from_public_bytes(point))

    def key(self, theirs: bytes, session: bytes, ours: bytes = b"", their: bytes = b"") -> bytes:
        """Return the key, 64 bytes, from the point that the other side sent.

        A ValueError says that it is not a point, or a point of small order. `ours` and `their` are
        data that each side associates with its point; the draft's vectors have some.
        """
        shared = prefixed(DOMAIN + b"_ISK", session, self._times(theirs))
        messages = sorted((prefixed(self.point, ours), prefixed(theirs, their)), reverse=True)
        return hashlib.sha512(shared + b"oc" + b"".join(messages)).digest()


def generator(secret: bytes, names: bytes, session: bytes) -> bytes:
    """Return the point that is a hash of all arguments."""
    start = len(prefixed(DOMAIN, secret))
    zeros = bytes(max(0, HASH_BLOCK - 1 - start))
    digest = hashlib.sha512(prefixed(DOMAIN, secret, zeros, names, session)).digest()
    field_element = int.from_bytes(digest[:POINT_BYTES], "little") % 2**255
    (point,) = elligator2([field_element % PRIME])
    return point.to_bytes(POINT_BYTES, "little")
