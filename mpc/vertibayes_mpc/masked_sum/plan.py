"""What all parties of a sum know; how many neighbours it needs, and which threshold.

A party's *neighbourhood* is itself and k others, k/2 to each side on a circle in random order; t of
its k + 1 members give back its seeds. Of k/2 neighbours to one side, a hypergeometric number is
corrupt. Three things must not happen:

- t - 1 - k/2 or more are corrupt to one side. At least that many are among the survivors, as t of
  the k + 1 are, whoever the aggregator says dropped out. If an honest one is among them, to each
  side of each party, masks link all honest survivors, and nothing less than their sum is revealed.
- A party has 2t - (k + 1) corrupt neighbours or more. An aggregator that lies, sending some members
  that it dropped out and others that it stayed, then has t shares of both its seeds: each kind
  needs t - c honest members, and the k + 1 - c honest members reveal one kind each. In a circle the
  first condition includes this: one side has more than half of them. In the complete graph this is
  the only condition.
- Fewer than t of the k are left: the sum fails.

The bounds are those of Bell et al. (2020), section 3.3, on "good" graphs, there with drop-outs at
random and an aggregator that follows the protocol.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party


class Neighbourhood(NamedTuple):
    """How many neighbours each party has, and how many members give back a seed."""

    degree: int  # k: even, or the number of parties minus 1 (the complete graph)
    threshold: int  # t, of a party and its neighbours together; more than half of them

    def quorum(self, parties: int) -> int:
        """Return how many parties must be left so that t of each neighbourhood can be."""
        return -(-parties * self.threshold // (self.degree + 1))


def smallest_neighbourhood(
    parties: int,
    corrupt: int,
    dropped: int,
    *,
    compromise: float = 2.0**-40,
    failure: float = 2.0**-20,
) -> Neighbourhood:
    """Return the fewest neighbours with which a sum is safe and succeeds, and a threshold for them.

    Of `parties`, at least 2, up to `corrupt` work with the aggregator, which may lie, and up to
    `dropped` drop out, at random. `compromise` and `failure` are the largest accepted probabilities
    (`compromise_probability`, `failure_probability`). If no smaller degree suffices, it is the
    complete graph; a ValueError says that no t has 2 t > parties + corrupt and t <= parties -
    dropped.

    >>> smallest_neighbourhood(5, corrupt=1, dropped=1)
    Neighbourhood(degree=4, threshold=4)
    >>> smallest_neighbourhood(1000, corrupt=100, dropped=100)
    Neighbourhood(degree=154, threshold=116)
    """
    for degree in (*range(2, parties - 1, 2), parties - 1):
        neighbourhood = _least_safe(parties, degree, corrupt, compromise)
        if neighbourhood and failure_probability(parties, neighbourhood, dropped) <= failure:
            return neighbourhood
    raise ValueError(f"too few are left of {parties} parties: {corrupt} corrupt, {dropped} dropped")


def _least_safe(parties: int, degree: int, corrupt: int, compromise: float) -> Neighbourhood | None:
    """Return the neighbourhood of a degree with the lowest threshold that is safe, if any is."""

    def is_safe(threshold: int) -> bool:
        neighbourhood = Neighbourhood(degree, threshold)
        return compromise_probability(parties, neighbourhood, corrupt) <= compromise

    thresholds = range(degree // 2 + 1, degree + 2)
    place = bisect_left(thresholds, True, key=is_safe)
    return Neighbourhood(degree, thresholds[place]) if place < len(thresholds) else None


def compromise_probability(parties: int, neighbourhood: Neighbourhood, corrupt: int) -> float:
    """Bound the probability that some honest party's neighbourhood is not safe.

    It is over the draw of one graph for the smallest roster that the parties accept, whoever the
    aggregator then says dropped out; 0 or 1 in the complete graph. An aggregator that chooses among
    w rosters, each with its own graph, has up to w times as much.
    """
    degree, threshold = neighbourhood
    if degree == parties - 1:
        return float(2 * threshold <= parties + corrupt)
    roster, half = max(neighbourhood.quorum(parties), degree + 1), degree // 2
    return min(1.0, 2 * roster * at_least(threshold - 1 - half, roster - 1, corrupt, half))


def failure_probability(parties: int, neighbourhood: Neighbourhood, dropped: int) -> float:
    """Bound the probability that a party has too few neighbours left after random drop-outs."""
    degree, threshold = neighbourhood
    if parties - dropped < neighbourhood.quorum(parties):
        return 1.0
    if degree == parties - 1:
        return 0.0
    return min(1.0, parties * at_least(degree - threshold + 1, parties - 1, dropped, degree))


def at_least(count: int, population: int, marked: int, drawn: int) -> float:
    """Return the probability that `count` or more of `drawn` are marked: a hypergeometric tail."""
    first, last = max(count, 0, drawn + marked - population), min(marked, drawn)
    if first > last:
        return 0.0
    plain = population - marked
    term = math.comb(marked, first) * math.comb(plain, drawn - first)
    total = 0
    for i in range(first, last + 1):
        total += term
        term = term * (marked - i) * (drawn - i) // ((i + 1) * (plain - drawn + i + 1))
    return total / math.comb(population, drawn)


@dataclass(frozen=True)
class SumPlan:
    """A sum of one vector from each party; a ValueError names what does not fit."""

    name: bytes  # names this sum; no other sum may have the name
    signing_keys: Mapping[Party, bytes]  # long-term, Ed25519; not from the aggregator
    length: int  # of each vector
    bound: int  # the largest absolute value of an element
    neighbourhood: Neighbourhood  # from `smallest_neighbourhood`

    def __post_init__(self) -> None:
        count, (degree, threshold) = len(self.signing_keys), self.neighbourhood
        if count < 2:
            raise ValueError(f"a sum must have at least two parties, got {count}")
        if degree != count - 1 and not (degree % 2 == 0 and 2 <= degree < count):
            raise ValueError(f"degree must be {count - 1} or an even number below it, got {degree}")
        if not (degree + 1) / 2 < threshold <= degree + 1:
            raise ValueError(
                f"threshold must be more than half of the {degree + 1} of a neighbourhood and at "
                f"most all, or the aggregator could have both seeds of a party, got {threshold}"
            )
        if self.length < 0 or self.bound < 0 or 2 * self.largest >= 2**64:
            raise ValueError(f"no ring holds sums of length {self.length} and bound {self.bound}")
        self._check_keys()

    def _check_keys(self) -> None:
        """Check that no party can sign for another: it would count twice in a quorum."""
        owners: dict[bytes, Party] = {}
        for party in self.parties:
            first = owners.setdefault(self.signing_keys[party], party)
            if first != party:
                raise ValueError(f"{first} and {party} have the same signing key")

    @property
    def largest(self) -> int:
        """The largest absolute value of an element of the sum."""
        return len(self.signing_keys) * self.bound

    @cached_property
    def ring(self) -> Ring:
        """The smallest ring in which no sum wraps."""
        return next(Ring(bits) for bits in (16, 32, 64) if 2 * self.largest < 2**bits)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """All parties, sorted: a party's place is its index here."""
        return tuple(sorted(self.signing_keys))

    def place(self, party: Party) -> int:
        """Return a party's place."""
        return self.parties.index(party)

    def parties_at(self, places: NDArray[np.integer]) -> tuple[Party, ...]:
        """Return the parties at some places."""
        return tuple(self.parties[place] for place in places)

    @property
    def quorum(self) -> int:
        """The number of parties that must be left after each round."""
        return self.neighbourhood.quorum(len(self.signing_keys))

    @cached_property
    def label(self) -> bytes:
        """A digest of the plan: in every message, signature and label."""
        parts: list[bytes | int] = [self.name, self.length, self.bound, *self.neighbourhood]
        for party in self.parties:
            parts += [party.encode(), self.signing_keys[party]]
        return label("masked sum", *parts)

    def encode(self, values: NDArray[np.integer]) -> Elements:
        """Return a party's vector as elements of the ring; a ValueError if the sum could wrap."""
        if values.shape != (self.length,) or not np.issubdtype(values.dtype, np.integer):
            given = f"shape {values.shape} and type {values.dtype}"
            raise ValueError(f"a vector must be integers of shape ({self.length},), got {given}")
        if values.size and not -self.bound <= int(values.min()) <= int(values.max()) <= self.bound:
            raise ValueError(f"values must be from -{self.bound} to {self.bound} (the bound)")
        return values.astype(self.ring.dtype)

    def decode(self, elements: Elements) -> NDArray[np.int64]:
        """Return the integers nearest to zero that elements of the ring represent."""
        return elements.view(f"i{self.ring.dtype.itemsize}").astype(np.int64)
