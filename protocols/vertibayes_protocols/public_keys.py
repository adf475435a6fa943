"""Public keys as text.

A public key is `vb1:` and 48 characters in base64: the 32 bytes of an X25519 key and the first four
bytes of their SHA-256, which show typing errors when the key is read. A colon and 48 more
characters are the owner's Ed25519 key, with which masked sums are signed, in the same form.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from vertibayes_mpc.randomness import KEY_BYTES, KeyPair
from vertibayes_mpc.signing import SigningKey

PREFIX = "vb1:"
CHECK_BYTES = 4


def public_text(keys: KeyPair) -> str:
    """Return both public keys of a key pair's owner as text: what the other parties pin."""
    return f"{encode_public(keys.public)}:{_encode(SigningKey.of(keys).public)}"


def encode_public(public: bytes) -> str:
    """Return a public key of X25519 as text."""
    return PREFIX + _encode(public)


def decode_public(text: str) -> bytes:
    """Return the X25519 key of `public_text` or `encode_public`."""
    return _parts(text)[0]


def decode_signing(text: str) -> bytes:
    """Return the Ed25519 key of `public_text`; nothing if the text is of X25519 alone."""
    return b"".join(_parts(text)[1:])


def _parts(text: str) -> list[bytes]:
    if not text.startswith(PREFIX):
        raise ValueError(f"expected a public key, as `vertibayes keygen` prints it: {PREFIX}...")
    parts = text[len(PREFIX) :].split(":")
    if len(parts) > 2:
        raise ValueError("the public key has a typing error: it has more than two parts")
    return [_decode(part) for part in parts]


def _encode(public: bytes) -> str:
    check = hashlib.sha256(public).digest()[:CHECK_BYTES]
    return base64.urlsafe_b64encode(public + check).decode()


def _decode(text: str) -> bytes:
    try:
        content = base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("the public key has a typing error: it is not valid base64") from None
    public, check = content[:KEY_BYTES], content[KEY_BYTES:]
    if len(public) < KEY_BYTES or check != hashlib.sha256(public).digest()[:CHECK_BYTES]:
        raise ValueError("the public key has a typing error: its checksum does not match")
    return public
