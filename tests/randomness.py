"""Randomness for tests alone: repeatable, or enumerated."""

from __future__ import annotations

import hashlib
import itertools
from functools import lru_cache

import numpy as np

from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring


class SeededRandomness:
    """A repeatable source of bytes."""

    def __init__(self, seed: bytes = b"test"):
        self.seed = seed
        self.drawn = 0

    def bytes(self, count):
        self.drawn += 1
        return hashlib.shake_256(self.seed + self.drawn.to_bytes(8, "big")).digest(count)


class TableStream:
    """A stream whose elements are looked up: each (label, place) has a value that the test sets.

    `sizes` has the number of values of each: all of its ring, or `limit`.
    """

    def __init__(self, limit=None):
        self.values, self.sizes = {}, {}
        self.limit = limit

    def elements(self, ring: Ring, name: bytes, shape, start=0):
        count = int(np.prod(shape))
        keys = [(name, place) for place in range(start, start + count)]
        values = [self.values.setdefault(key, 0) for key in keys]
        self.sizes.update(dict.fromkeys(keys, self.limit or 2**ring.bits))
        return np.array(values, ring.dtype).reshape(shape)

    def assignments(self, places):
        """Set the elements at `places` to all values in turn; the others stay 0."""
        for values in itertools.product(*(range(self.sizes[place]) for place in places)):
            self.values.update(zip(places, values, strict=True))
            yield


class HashStream:
    """A repeatable stream that asks nothing of a cipher: for small worlds."""

    def __init__(self, seed: bytes):
        self.seed = seed

    def elements(self, ring: Ring, name: bytes, shape, start=0):
        return _hashed(self.seed, ring, name, tuple(shape), start).copy()

    def permutation(self, name: bytes, count):
        return np.argsort(self.elements(Ring(64), label("permutation", name), (count,)))


@lru_cache(4096)
def _hashed(seed, ring, name, shape, start):
    """Return elements of a `HashStream`; enumerations ask for the same ones in each run."""
    count, size = int(np.prod(shape)), ring.dtype.itemsize
    digest = hashlib.shake_256(label("stream", seed, name))
    stream = digest.digest((start + count) * size)[start * size :]
    return ring.reduce(np.frombuffer(stream, ring.dtype).reshape(shape))
