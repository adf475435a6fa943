"""What parties draw from keyed streams: no byte of a stream may serve twice.

Within `noted`, each draw from a `StreamKey` or a `HashStream` is noted with its bytes. Each party
has a stream object of its own, also where two parties have one key: an object is one party's side
of the key. Both parties of a key must draw the same bytes, each of them once.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

from tests.randomness import HashStream
from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.randomness import StreamKey


class Draws:
    """The draws of a run, by secret and side: (label, first byte, end)."""

    def __init__(self):
        self.sides, self.kept = defaultdict(dict), defaultdict(set)

    def note(self, stream, secret, label, start, size):
        end = start + size
        if (secret, label) in self.kept:
            assert (start, end) in self.kept[secret, label], f"drawn otherwise: {label.hex()}"
        elif size:  # the stream is kept, so that no later one has its id
            self.sides[secret].setdefault(id(stream), (stream, []))[1].append((label, start, end))

    def keep(self):
        """Have the same bytes as so far be drawn again: sites keep columns under their masks."""
        for secret, sides in self.sides.items():
            for _, side in sides.values():
                assert_apart(side)
                for label, start, end in side:
                    self.kept[secret, label].add((start, end))
        self.sides.clear()

    def check(self, alone=0):
        """Refuse bytes that a side draws twice, or that one of the two sides of a key draws alone.

        alone: how many keys a single party has drawn from.
        """
        lone = 0
        for sides in self.sides.values():
            drawn = [side for _, side in sides.values()]
            for side in drawn:
                assert_apart(side)
            if len(drawn) == 2:  # of more than two parties, each may draw for other tables
                assert set(drawn[0]) == set(drawn[1]), "a party draws what its peer does not"
            lone += len(drawn) == 1
        assert self.sides and lone == alone, f"{lone} keys of one party alone"


def assert_apart(side):
    for one, other in pairwise(sorted(side)):
        assert one[0] != other[0] or one[2] <= other[1], f"drawn twice: {one[0].hex()}"


@contextmanager
def noted():
    """Note the draws of a run."""
    draws, expand, elements = Draws(), StreamKey.expand, HashStream.elements

    def expanded(key, label, count, start=0):
        draws.note(key, key.secret, label, start, count)
        return expand(key, label, count, start)

    def hashed(stream, ring, name, shape, start=0):
        size = ring.dtype.itemsize
        draws.note(stream, stream.seed, name, start * size, size * int(np.prod(shape)))
        return elements(stream, ring, name, shape, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamKey, "expand", expanded)
        patch.setattr(HashStream, "elements", hashed)
        yield draws


def assert_own_labels(transcript):
    """Refuse two messages of one kind and label on one link: one could stand for the other."""
    labels = [
        (sent.sender, sent.receiver, type(sent.message), sent.message.label)
        for sent in transcript
        if isinstance(sent.message, Labelled)
    ]
    assert len(set(labels)) == len(labels) > 0
