"""Byte strings one after the other, so that no two sequences of them are the same bytes."""

from __future__ import annotations


def prefixed(*parts: bytes) -> bytes:
    """Return parts one after the other, each behind its length (LEB128).

    >>> list(prefixed(b"ab", b"c"))
    [2, 97, 98, 1, 99]
    """
    return b"".join(_length(len(part)) + part for part in parts)


def _length(count: int) -> bytes:
    encoded = bytearray()
    while True:
        count, low = count >> 7, count & 127
        encoded.append(low | (128 if count else 0))
        if not count:
            return bytes(encoded)
