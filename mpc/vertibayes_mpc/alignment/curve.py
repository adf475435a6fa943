"""Keys on Curve25519: hash identifiers to points, and blind many points with one scalar.

An exchange of `cryptography` holds Python's lock: processes use several cores, threads do not.
`spread` therefore works like `map`: the caller may give the map of a pool of processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from vertibayes_mpc.elligator import PRIME, elligator2

POINT_BYTES = 32
PIECE_KEYS = 8192  # of one message: while keys are blinded, the party's other sessions wait
TASK_KEYS = 1024  # of one call: a process needs some work for each message
T = TypeVar("T")
PERSON = b"vertibayes align"


class Spread(Protocol):
    """`map`, of one process or of a pool."""

    def __call__(self, work: Callable[[T], bytes], tasks: Iterable[T], /) -> Iterable[bytes]:
        """Return the result of each task, in order."""
        ...


def hashed(texts: Iterable[Sequence[bytes]], key: bytes, scalar: bytes, spread: Spread) -> bytes:
    """Hash texts to points and blind them."""
    return b"".join(spread(partial(_hash_and_blind, key, scalar), texts))


def blind(points: bytes, scalar: bytes, spread: Spread) -> bytes:
    """Multiply points by a scalar (X25519); a ValueError if a point is of small order."""
    size = TASK_KEYS * POINT_BYTES
    tasks = (points[at : at + size] for at in range(0, len(points), size))
    return b"".join(spread(partial(_blind, scalar), tasks))


def hash_to_curve(texts: Sequence[bytes], key: bytes) -> bytes:
    """Return a point for each text: BLAKE2b-512 under a key, Elligator 2."""
    digests = (hashlib.blake2b(text, key=key, person=PERSON).digest() for text in texts)
    points = elligator2([int.from_bytes(digest, "little") % PRIME for digest in digests])
    return b"".join(point.to_bytes(POINT_BYTES, "little") for point in points)


def _hash_and_blind(key: bytes, scalar: bytes, texts: Sequence[bytes]) -> bytes:
    return _blind(scalar, hash_to_curve(texts, key))


def _blind(scalar: bytes, points: bytes) -> bytes:
    times, point = X25519PrivateKey.from_private_bytes(scalar), X25519PublicKey.from_public_bytes
    places = range(0, len(points), POINT_BYTES)
    return b"".join(times.exchange(point(points[at : at + POINT_BYTES])) for at in places)
