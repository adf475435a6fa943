"""Byte strings one after the other, so that no two sequences of them are the same bytes."""

from __future__ import annotations


def prefixed(*parts: bytes) -> bytes:
    """Return parts one after the other, each behind its length (LEB128).

    >>> list(prefixed(b"ab", b"c"))
    [2, 97, 98, 1, 99]
    """
    encoded = bytearray()
    for part in parts:
        count = len(part)
        while count > 127:
            encoded.append(count & 127 | 128)
            count >>= 7
        encoded.append(count)
        encoded += part
    return bytes(encoded)
