"""Randomness and keys: the operating system's generator, X25519, HKDF-SHA256, AES-256 in CTR mode.

Two parties agree once on a `StreamKey`; every label under it names one stream of ring elements,
which both can expand, from any place on. Equal labels give equal streams: a label must therefore
name everything that the stream hides.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from mpc.ring import Elements, Ring

KEY_BYTES = 32
BLOCK_BYTES = 16
_ZEROS = memoryview(bytes(1 << 20))


class Randomness(Protocol):
    """A source of random bytes: the operating system's in use, a seeded one in tests alone."""

    def bytes(self, count: int) -> bytes:
        """Return `count` uniform bytes."""
        ...


class SystemRandomness:
    """The operating system's generator."""

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes from the operating system."""
        return secrets.token_bytes(count)


def label(purpose: str, *parts: bytes | str | int) -> bytes:
    """Hash a purpose and its parts, each with its length, to a label of 32 bytes (SHA-256)."""
    digest = hashlib.sha256(b"vertibayes label 1")
    for part in (purpose, *parts):
        encoded = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.digest()


class Stream(Protocol):
    """What masks are drawn from: a `StreamKey`, or an enumeration of all values in a test."""

    def elements(self, ring: Ring, name: bytes, shape: tuple[int, ...], start: int = 0) -> Elements:
        """Expand ``prod(shape)`` elements of the stream `name`, from element `start` on."""
        ...


@dataclass(frozen=True, slots=True)
class StreamKey:
    """A secret of two parties from which labelled streams of ring elements are expanded.

    Parameters
    ----------
    secret : bytes of length 32
    """

    secret: bytes = field(repr=False)

    def expand(self, name: bytes, count: int, start: int = 0) -> bytearray:
        """Expand `count` bytes of the stream `name`, from byte `start` on.

        Each label has an AES-256 key of its own (HKDF-Expand, RFC 5869), counted from zero.
        """
        key = HKDFExpand(hashes.SHA256(), KEY_BYTES, name).derive(self.secret)
        block, skip = divmod(start, BLOCK_BYTES)
        counter = modes.CTR(block.to_bytes(BLOCK_BYTES, "big"))
        encryptor = Cipher(algorithms.AES(key), counter).encryptor()
        stream = bytearray(skip + count)
        view = memoryview(stream)
        for at in range(0, len(stream), len(_ZEROS)):
            piece = view[at : at + len(_ZEROS)]
            encryptor.update_into(_ZEROS[: len(piece)], piece)
        return stream[skip:] if skip else stream

    def elements(self, ring: Ring, name: bytes, shape: tuple[int, ...], start: int = 0) -> Elements:
        """Expand ``prod(shape)`` uniform elements of `ring`, from element `start` on."""
        count = int(np.prod(shape))
        if not count:
            return np.zeros(shape, ring.dtype)
        size = ring.dtype.itemsize
        stream = self.expand(name, count * size, start * size)
        return ring.reduce(np.frombuffer(stream, ring.dtype.newbyteorder("<")).reshape(shape))


@dataclass(frozen=True)
class KeyPair:
    """A party's X25519 key pair.

    Parameters
    ----------
    private : bytes of length 32
    """

    private: bytes = field(repr=False)

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
        """Agree on a key with the owner of `peer_public`, for one purpose (X25519, HKDF-SHA256).

        Raises
        ------
        ValueError
            If the public key is not 32 bytes, or gives no contribution (a point of small order).
        """
        shared = self._own.exchange(X25519PublicKey.from_public_bytes(peer_public))
        both = b"".join(sorted((self.public, peer_public)))
        info = label("key", purpose, both)
        return StreamKey(HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(shared))
