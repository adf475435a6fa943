"""Signatures: Ed25519 (RFC 8032), deterministic, under a party's long-term key."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, Randomness, label

SIGNATURE_BYTES = 64


@dataclass(frozen=True)
class SigningKey:
    """A party's signing key.

    >>> key = SigningKey(bytes(32))
    >>> is_signed(b"a roster", key.sign(b"a roster"), key.public)
    True
    """

    private: bytes = field(repr=False)

    @classmethod
    def generate(cls, randomness: Randomness) -> SigningKey:
        """Draw a key."""
        return cls(randomness.bytes(KEY_BYTES))

    @classmethod
    def of(cls, keys: KeyPair) -> SigningKey:
        """Return the signing key that goes with a key pair: one secret to keep for both."""
        return cls(label("signing key", keys.private))

    @cached_property
    def _own(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.private)

    @cached_property
    def public(self) -> bytes:
        """The key that others verify with, 32 bytes."""
        return self._own.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Sign a message: 64 bytes."""
        return self._own.sign(message)


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the owner of `public` signed a message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):  # ValueError: not a public key
        return False
    return True
