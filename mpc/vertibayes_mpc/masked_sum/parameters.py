"""How many neighbours and which threshold: from how many may be corrupt, and how many drop out.

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
from typing import NamedTuple


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
    """Bound the probability that some party has fewer than `threshold` neighbours left.

    `dropped` parties drop out, at random, in all rounds together.
    """
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
