"""Randomness and keys: the operating system's generator, X25519, HKDF-SHA256, AES-256 in CTR mode.

Two parties agree once on a `StreamKey`. Every label under it names one stream of ring elements,
which both parties can expand from any place on. Equal labels give equal streams: a label must
therefore name everything that the stream hides.

>>> alice, bob = KeyPair(b"a" * 32), KeyPair(b"b" * 32)
>>> keys = alice.agree(bob.public, "an example"), bob.agree(alice.public, "an example")
>>> [key.elements(Ring(16), label("a mask"), (3,)).tolist() for key in keys]
[[53650, 20530, 37859], [53650, 20530, 37859]]
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from vertibayes_mpc.ring import Elements, Ring

KEY_BYTES = 32
BLOCK_BYTES = 16
MOST_PLACE_BITS = 21
_ZEROS = memoryview(bytes(1 << 20))


class Randomness(Protocol):
    """A source of random bytes: the operating system's, or in tests a seeded one."""

    def bytes(self, count: int) -> bytes:
        """Return `count` uniform bytes."""
        ...


class SystemRandomness:
    """The operating system's generator."""

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes from the operating system."""
        return secrets.token_bytes(count)


def label(purpose: str, *parts: bytes | str | int) -> bytes:
    """Hash a purpose and its parts, each with its length, to a label of 32 bytes (SHA-256).

    >>> label("mask", 1, 23) == label("mask", 12, 3)
    False
    >>> label("mask", 1).hex()[:16]
    '61ba9c4b3ee36757'
    """
    pieces = [b"vertibayes label 1"]
    for part in (purpose, *parts):
        encoded = part if isinstance(part, bytes) else str(part).encode()
        pieces += (len(encoded).to_bytes(8, "little"), encoded)
    return hashlib.sha256(b"".join(pieces)).digest()


class Stream(Protocol):
    """What masks are drawn from: a `StreamKey`, or an enumeration of all values in a test."""

    def elements(
        self, ring: Ring, label: bytes, shape: tuple[int, ...], start: int = 0
    ) -> Elements:
        """Expand an array of uniform elements: `start` is the place of the first in the stream."""
        ...

    def permutation(self, label: bytes, count: int) -> NDArray[np.intp]:
        """Return the permutation of ``range(count)`` that a stream gives."""
        ...


@dataclass(frozen=True, slots=True)
class StreamKey:
    """A secret of two parties, who expand labelled streams of ring elements from it.

    >>> key = StreamKey(bytes(32))
    >>> key.elements(Ring(8), label("an example"), (2, 3))
    array([[ 95, 249, 243],
           [112, 230, 119]], dtype=uint8)
    >>> key.elements(Ring(8), label("an example"), (2,), start=4)
    array([230, 119], dtype=uint8)
    >>> key.permutation(label("an order"), 5)
    array([1, 3, 0, 2, 4])
    """

    secret: bytes = field(repr=False)  # 32 bytes

    def expand(self, label: bytes, count: int, start: int = 0) -> bytearray:
        """Expand a stream of bytes; `start` is the place of the first."""
        # Of each label its own AES-256 key: the first block of HKDF-Expand (RFC 5869).
        key = hmac.digest(self.secret, label + b"\x01", "sha256")
        block, skip = divmod(start, BLOCK_BYTES)
        counter = modes.CTR(block.to_bytes(BLOCK_BYTES, "big"))
        encryptor = Cipher(algorithms.AES(key), counter).encryptor()
        stream = bytearray(skip + count)
        view = memoryview(stream)
        for at in range(0, len(stream), len(_ZEROS)):
            piece = view[at : at + len(_ZEROS)]
            encryptor.update_into(_ZEROS[: len(piece)], piece)
        return stream[skip:] if skip else stream

    def elements(
        self, ring: Ring, label: bytes, shape: tuple[int, ...], start: int = 0
    ) -> Elements:
        """Expand an array of uniform elements: `start` is the place of the first in the stream."""
        count = int(np.prod(shape))
        if not count:
            return np.zeros(shape, ring.dtype)
        size = ring.dtype.itemsize
        stream = self.expand(label, count * size, start * size)
        little = np.frombuffer(stream, ring.dtype.newbyteorder("<")).reshape(shape)
        elements = little.astype(ring.dtype, copy=False)
        return ring.reduce(elements, out=elements)

    def permutation(self, label: bytes, count: int) -> NDArray[np.intp]:
        """Return a uniform permutation of ``range(count)``: the order of random sort keys.

        Keys are drawn again until no two are equal; each order is then as likely as any other. A
        key and its place share a word of 64 bits, so that sorting the words sorts the places. Above
        2^21 records, keys of fewer than 43 bits would almost always collide: whole words are keys.
        """
        place_bits = max(count - 1, 1).bit_length()
        sort = _sorted_words if place_bits <= MOST_PLACE_BITS else _sorted_keys
        attempt = 0
        while True:
            stream = self.expand(_attempt_label(label, attempt), 8 * count)
            order = sort(np.frombuffer(stream, "<u8").astype(np.uint64, copy=False), place_bits)
            if order is not None:
                return order
            attempt += 1


def _attempt_label(permutation: bytes, attempt: int) -> bytes:
    return label("permutation", permutation, attempt)


def _sorted_words(words: NDArray[np.uint64], place_bits: int) -> NDArray[np.intp] | None:
    """Return the order of the words' low bits as keys; None if two are equal."""
    low = np.uint64(place_bits)
    words <<= low
    words |= np.arange(len(words), dtype=np.uint64)
    words.sort()
    keys = words >> low
    if (keys[1:] == keys[:-1]).any():
        return None
    words &= (np.uint64(1) << low) - np.uint64(1)
    return words.view(np.intp)


def _sorted_keys(keys: NDArray[np.uint64], place_bits: int) -> NDArray[np.intp] | None:
    """Return the order of whole words as keys; None if two are equal."""
    del place_bits
    order = np.argsort(keys)
    ascending = keys[order]
    return order if (ascending[1:] != ascending[:-1]).all() else None


@dataclass(frozen=True)
class KeyPair:
    """A party's X25519 key pair."""

    private: bytes = field(repr=False)  # 32 bytes

    @classmethod
    def generate(cls, randomness: Randomness) -> KeyPair:
        """Draw a key pair."""
        return cls(randomness.bytes(KEY_BYTES))

    @cached_property
    def _own(self) -> X25519PrivateKey:
        """Derive the public key once: it costs as much as an agreement."""
        return X25519PrivateKey.from_private_bytes(self.private)

    @cached_property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._own.public_key().public_bytes_raw()

    def agree(self, peer_public: bytes, purpose: str) -> StreamKey:
        """Agree on a key for one purpose; a ValueError if the public key is not a valid point."""
        shared = self._own.exchange(X25519PublicKey.from_public_bytes(peer_public))
        both = b"".join(sorted((self.public, peer_public)))
        info = label("key", purpose, both)
        return StreamKey(HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(shared))
