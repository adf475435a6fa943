"""What all parties know of an argmax: the sets, their pairs, the parts, the sizes of messages.

The values of all sets lie one after the other. So do the pairs (i, j), i < j, of each set: those of
its first value, then those of its second, and so on. The parties treat the pairs, and then the
values, in parts, so that memory stays bounded. Arrays have one column for each pair or value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party

MOST_VALUES = 1 << 12  # in one set: a rank then has 12 bits, a one-hot rank 512 bytes
MOST_DIGIT_BITS = 6  # a one-hot digit is an element of a ring of at most 64 bits
WORDS = Ring(64)


class Part(NamedTuple):
    """Pairs, or values, that are treated together: their places, and the number of the part."""

    number: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of pairs or values."""
        return self.stop - self.start


def packed_bytes(bits: int) -> int:
    """Return the number of bytes that hold some bits."""
    return -(-bits // 8)


@dataclass(frozen=True)
class ArgmaxPlan:
    """All that the parties do to find the highest value of each set, and whether it leads.

    As signed numbers, the margin and the difference of any two scores of one set must add up to
    less than 2^(ring.bits - 1). A ValueError says that the sites are not distinct, or a number is
    out of its range.
    """

    label: bytes  # names this argmax, and nothing else
    sites: tuple[Party, ...]  # have shares; the first receives what the dealer sends
    sizes: tuple[int, ...]  # of each set: from 2 to 4096 values
    ring: Ring = WORDS  # of the shares
    digit_bits: int = 4  # that one one-hot digit compares: from 1 to 6
    most_pairs: int = 1 << 17  # in a part
    shown: bytes = b""  # of the winners, for an analyst who does not know `label`; masks nothing
    margin: int = 0  # what a winner that leads exceeds each other score of its set by, and one more

    def __post_init__(self) -> None:
        if not self.sites or len(set(self.sites)) < len(self.sites):
            raise ValueError(f"the sites must be one or more, each once, got {self.sites}")
        least, most = min(self.sizes, default=2), max(self.sizes, default=2)
        if not 2 <= least <= most <= MOST_VALUES:
            raise ValueError(
                f"sets must have from 2 to {MOST_VALUES} values, got from {least} to {most}"
            )
        if not 1 <= self.digit_bits <= MOST_DIGIT_BITS:
            raise ValueError(
                f"digit_bits must be from 1 to {MOST_DIGIT_BITS}, got {self.digit_bits}"
            )
        if self.most_pairs < 1:
            raise ValueError(f"most_pairs must be at least 1, got {self.most_pairs}")
        if not 0 <= self.margin < 1 << (self.ring.bits - 1):
            most = (1 << (self.ring.bits - 1)) - 1
            raise ValueError(f"margin must be from 0 to {most}, got {self.margin}")

    @property
    def thresholds(self) -> tuple[int, ...]:
        """What is added to the difference d of a pair (i, j) before it is compared with 0.

        Below 0, d says that j wins; d - margin - 1, that i does not lead; d + margin, that j leads.
        """
        return 0, -self.margin - 1, self.margin

    @cached_property
    def values(self) -> int:
        """The number of values of all sets."""
        return sum(self.sizes)

    @cached_property
    def rank_bits(self) -> int:
        """The number of bits that hold a rank in the largest set."""
        return (max(self.sizes, default=2) - 1).bit_length()

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The place of each set's first value: shape (sets,)."""
        return np.cumsum([0, *self.sizes], dtype=np.intp)[:-1]

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """The place of each value in its set: shape (values,)."""
        return np.arange(self.values) - np.repeat(self.starts, self.sizes)

    @cached_property
    def lasts(self) -> NDArray[np.intp]:
        """The last place of each value's set, which is also the winner's rank: shape (values,)."""
        return np.repeat(np.array(self.sizes, np.intp) - 1, self.sizes)

    @property
    def compared(self) -> NDArray[np.intp]:
        """With how many later values of its set each value is compared: shape (values,)."""
        return self.lasts - self.places

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """The number of pairs up to those whose first is each value: shape (values,)."""
        return np.cumsum(self.compared)

    @property
    def pairs(self) -> int:
        """The number of pairs of all sets."""
        return int(self._ends[-1]) if self.sizes else 0

    def pairs_of(self, part: Part) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the places i < j of the values of each pair of a part."""
        pairs = np.arange(part.start, part.stop)
        i = np.searchsorted(self._ends, pairs, side="right")
        first_of_i = self._ends[i] - self.compared[i]
        return i, i + 1 + pairs - first_of_i

    @property
    def ranks(self) -> int:
        """How many numbers each value has: how many others it wins against, and how many it leads.

        A pair has one comparison for the first number, and two for the second.
        """
        return (1 + len(self.thresholds)) // 2

    def bits_of(self, part: Part) -> int:
        """Return how many comparisons the pairs of a part have: with each threshold, all pairs."""
        return len(self.thresholds) * part.size

    @property
    def shown_bits(self) -> int:
        """How many bits of each set are shown: the place of its winner, and whether it leads."""
        return self.rank_bits + 1

    @property
    def shown_bytes(self) -> int:
        """The bytes that show the winners."""
        return packed_bytes(len(self.sizes) * self.shown_bits)

    @property
    def pair_parts(self) -> Iterator[Part]:
        """The parts of pairs; one site has none."""
        return _parts(self.pairs * self.is_shared, self.most_pairs)

    @property
    def value_parts(self) -> Iterator[Part]:
        """The parts of the ranks of all values; one site has none."""
        return _parts(self.ranks * self.values * self.is_shared, self.most_values)

    @property
    def most_values(self) -> int:
        """The most values in a part: their one-hot ranks take as much as the pairs of a part."""
        return max(self.most_pairs // self.rank_words, 1)

    @property
    def is_shared(self) -> bool:
        """Whether several sites have shares; one site finds the highest values in the clear."""
        return len(self.sites) > 1

    @cached_property
    def digest(self) -> bytes:
        """A digest of the whole plan: part of every label, so that all parties have one plan."""
        numbers = self.ring.bits, self.digit_bits, self.most_pairs, self.margin, len(self.sites)
        sizes = np.array(self.sizes, "<u4").tobytes()
        return label("argmax", self.label, *numbers, *self.sites, sizes)

    @property
    def winners_name(self) -> bytes:
        """The label of the message that shows the winners."""
        return label("argmax winners shown", self.shown) if self.shown else self.name("winners")

    def name(self, purpose: str, *parts: int) -> bytes:
        """Return the label of a stream or message of one purpose, in one part."""
        return label(f"argmax {purpose}", self.digest, *parts)

    @property
    def digits(self) -> int:
        """The number of digits of an element of the ring."""
        return -(-self.ring.bits // self.digit_bits)

    @property
    def digit_ring(self) -> Ring:
        """The ring whose elements hold one-hot digits."""
        return Ring(1 << self.digit_bits)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many pairs of digits are joined in each round: half of those that are left."""
        left, levels = self.digits, []
        while left > 1:
            levels.append(left // 2)
            left -= left // 2
        return tuple(levels)

    @property
    def rank_ring(self) -> Ring:
        """The ring of ranks."""
        return Ring(self.rank_bits)

    @property
    def one_hot_ring(self) -> Ring:
        """The ring whose elements hold a one-hot rank, or 64 bits of one."""
        return Ring(min(1 << self.rank_bits, WORDS.bits))

    @property
    def rank_words(self) -> int:
        """How many elements of `one_hot_ring` hold a one-hot rank."""
        return max((1 << self.rank_bits) // WORDS.bits, 1)

    @property
    def rounds(self) -> int:
        """The number of rounds: the scores; each part's comparisons; ranks; winners."""
        if not self.is_shared:
            return 1
        pair_parts, value_parts = (sum(1 for _ in p) for p in (self.pair_parts, self.value_parts))
        return 1 + pair_parts * (len(self.levels) + 1) + value_parts + 1

    @property
    def dealt_bytes(self) -> int:
        """The number of bytes that the dealer sends, to the first site."""
        counts = (self.rank_words * part.size for part in self.value_parts)
        ranks = sum(map(self.one_hot_ring.packed_size, counts))
        return ranks * self.is_shared + self._dealt_for_pairs

    @property
    def _dealt_for_pairs(self) -> int:
        products = sum(2 * pairs - 1 for pairs in self.levels)
        return sum(
            self.digit_ring.packed_size(self.digits * part.size)
            + self.rank_ring.packed_size(self.bits_of(part))
            + packed_bytes(self.bits_of(part)) * products
            for part in self.pair_parts
        )

    @property
    def sent_bytes(self) -> int:
        """The number of bytes that each site sends to each other site."""
        ranks = sum(self.rank_ring.packed_size(part.size) for part in self.value_parts)
        return (self._sent_for_pairs + ranks) * self.is_shared + self.shown_bytes

    @property
    def _sent_for_pairs(self) -> int:
        bits = sum(packed_bytes(self.bits_of(part)) for part in self.pair_parts)
        bits *= sum(3 * pairs - 1 for pairs in self.levels) + 1
        return self.ring.packed_size(self.values) + bits

    @property
    def memory(self) -> int:
        """The most bytes that a party takes for the arrays of an argmax, about."""
        part = min(self.pairs, self.most_pairs)
        per_bit = self.digits * (3 * self.digit_ring.dtype.itemsize + 12) + 64
        words = min(self.ranks * self.values, self.most_values) * self.rank_words
        ranked = 4 * words * self.one_hot_ring.dtype.itemsize
        return 64 * self.ranks * self.values + max(part * per_bit * len(self.thresholds), ranked)


@dataclass(frozen=True)
class RankPlan(ArgmaxPlan):
    """What the parties do to share how many other values the first value of each set reaches.

    Nothing is revealed. The first value is neither masked with a rank nor shown. Differences of
    values of a set must be below 2^(ring.bits - 1), as signed numbers.
    """

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Pairs are compared once."""
        return (0,)

    @property
    def compared(self) -> NDArray[np.intp]:
        """With how many later values of its set each value is compared: all, or none."""
        return np.where(self.places == 0, self.lasts, 0)

    @property
    def value_parts(self) -> Iterator[Part]:
        """No values are ranked by a revealed number."""
        return iter(())

    @property
    def rounds(self) -> int:
        """The number of rounds: the scores, and each part's comparisons."""
        pair_parts = sum(1 for _ in self.pair_parts)
        return (1 + pair_parts * (len(self.levels) + 1)) * self.is_shared

    @property
    def dealt_bytes(self) -> int:
        """The number of bytes that the dealer sends, to the first site."""
        return self._dealt_for_pairs

    @property
    def sent_bytes(self) -> int:
        """The number of bytes that each site sends to each other site."""
        return self._sent_for_pairs * self.is_shared


def _parts(count: int, most: int) -> Iterator[Part]:
    for number, start in enumerate(range(0, count, most)):
        yield Part(number, start, min(start + most, count))
