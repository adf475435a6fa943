"""Coins and uniform integers in bulk, exact to 64 bits: AES-256 under a fresh key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import KEY_BYTES, Randomness, StreamKey, SystemRandomness, label

ONE = 1 << 64  # probabilities are integers over 2^64
_LOW_BITS = 56
_STREAM = label("frequency oracle")


class Draws:
    """A stream of draws under a key of its own."""

    def __init__(self, randomness: Randomness | None = None) -> None:
        self._key = StreamKey((randomness or SystemRandomness()).bytes(KEY_BYTES))
        self._at = 0

    def _bytes(self, count: int) -> bytearray:
        start, self._at = self._at, self._at + count
        return self._key.expand(_STREAM, count, start)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform integers below 2^64: shape (count,)."""
        return np.frombuffer(self._bytes(8 * count), "<u8").astype(np.uint64, copy=False)

    def coins(self, threshold: int, count: int) -> NDArray[np.bool_]:
        """Toss coins that are heads with probability ``threshold / 2^64``."""
        first, rest = divmod(threshold, 1 << _LOW_BITS)
        drawn = np.frombuffer(self._bytes(count), np.uint8)  # of each draw; the rest if it is a tie
        heads = drawn < first
        ties = np.flatnonzero(drawn == first)
        heads[ties] = self.words(len(ties)) >> np.uint64(64 - _LOW_BITS) < np.uint64(rest)
        return heads

    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        """Return uniform integers from 0 to `bound` - 1: shape (count,), by rejection."""
        words = self.words(count)
        last = np.uint64(ONE // bound * bound - 1)
        while len(late := np.flatnonzero(words > last)):
            words[late] = self.words(len(late))
        return (words % np.uint64(bound)).astype(np.int64)
