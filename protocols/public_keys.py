"""Public keys as people handle them.

A public key is `vb1:` and 48 characters: 32 bytes of X25519 and four of their SHA-256, so that a
slip of the pen is an error at once and not a connection that never comes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from mpc.randomness import KEY_BYTES

PREFIX = "vb1:"
CHECK_BYTES = 4


def encode_public(public: bytes) -> str:
    """Return a public key as text."""
    check = hashlib.sha256(public).digest()[:CHECK_BYTES]
    return PREFIX + base64.urlsafe_b64encode(public + check).decode()


def decode_public(text: str) -> bytes:
    """Take `encode_public` back.

    Raises
    ------
    ValueError
        If it is no public key, or one with a slip.
    """
    if not text.startswith(PREFIX):
        raise ValueError(f"a public key is wanted, as `vertibayes keygen` prints it: {PREFIX}...")
    try:
        found = base64.b64decode(text[len(PREFIX) :], altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("a public key with a slip in it: no base64") from None
    public, check = found[:KEY_BYTES], found[KEY_BYTES:]
    if len(public) < KEY_BYTES or check != hashlib.sha256(public).digest()[:CHECK_BYTES]:
        raise ValueError("a public key with a slip in it: its last characters do not fit")
    return public
