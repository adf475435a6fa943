"""How many neighbours and which threshold: from how many may be corrupt, and how many drop out.

A party's *neighbourhood* is itself and k others, k/2 to each side on a circle in random order; t of
its k + 1 members give back its seeds. Of k/2 neighbours to one side, a hypergeometric number is
corrupt. What must not happen:

- t - 1 - k/2 or more are corrupt to one side. At least that many are among the survivors, as t of
  the k + 1 are, whoever is said to have dropped out. With an honest one among them, to each side of
  each party, all honest survivors are linked by masks, and nothing less than their sum is opened;
- a party has 2t - (k + 1) corrupt neighbours or more. A server that lies, telling some members that
  it dropped out and others that it stayed, has t shares of both its seeds then: each kind needs
  t - c honest members, and the k + 1 - c honest members reveal one kind each. In a circle the
  first includes this: one side has more than half of them. In the complete graph it is all;
- fewer than t of the k are left: the sum fails.

References
----------
J. H. Bell, K. A. Bonawitz, A. Gascon, T. Lepoint, M. Raykova (2020), Secure single-server
aggregation with (poly)logarithmic overhead, CCS 2020: section 3.3 and its bounds on "good" graphs,
there with drop-outs at random and a server that follows the protocol.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple


class Neighbourhood(NamedTuple):
    """How many neighbours each party has, and how many members give back a seed.

    Attributes
    ----------
    degree : int
        k: even, or one less than the number of parties (the complete graph).
    threshold : int
        t, of a party and its neighbours together; more than half of these.
    """

    degree: int
    threshold: int

    def quorum(self, parties: int) -> int:
        """Return how many of all parties are left at least, if t of each neighbourhood are."""
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

    Parameters
    ----------
    parties : int
        n, at least 2.
    corrupt : int
        How many parties at most work with the server, which may lie.
    dropped : int
        How many at most drop out, at random.
    compromise : float, default=2**-40
        See `compromise_probability`.
    failure : float, default=2**-20
        See `failure_probability`.

    Returns
    -------
    neighbourhood : Neighbourhood
        The complete graph, if no smaller degree will do.

    Raises
    ------
    ValueError
        If no threshold will do: 2 t > parties + corrupt and t <= parties - dropped.
    """
    for degree in (*range(2, parties - 1, 2), parties - 1):
        found = _least_safe(parties, degree, corrupt, compromise)
        if found and failure_probability(parties, found, dropped) <= failure:
            return found
    raise ValueError(f"{parties} parties, {corrupt} corrupt, {dropped} dropped: too few are left")


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

    Over the draw of one graph, whatever the server then says of who dropped out. A server that
    chooses among w rosters, each with a graph of its own, has up to w times the probability.

    Parameters
    ----------
    parties : int
    neighbourhood : Neighbourhood
    corrupt : int

    Returns
    -------
    probability : float
        For the smallest roster that the parties accept. 0 or 1 in the complete graph.
    """
    degree, threshold = neighbourhood
    if degree == parties - 1:
        return float(2 * threshold <= parties + corrupt)
    roster, half = max(neighbourhood.quorum(parties), degree + 1), degree // 2
    return min(1.0, 2 * roster * at_least(threshold - 1 - half, roster - 1, corrupt, half))


def failure_probability(parties: int, neighbourhood: Neighbourhood, dropped: int) -> float:
    """Bound the probability that some party has fewer than `threshold` neighbours left.

    Parameters
    ----------
    parties : int
    neighbourhood : Neighbourhood
    dropped : int
        How many drop out, at random, in all rounds together.

    Returns
    -------
    probability : float
        0 or 1 in the complete graph.
    """
    degree, threshold = neighbourhood
    if parties - dropped < neighbourhood.quorum(parties):
        return 1.0
    if degree == parties - 1:
        return 0.0
    return min(1.0, parties * at_least(degree - threshold + 1, parties - 1, dropped, degree))


def at_least(count: int, population: int, marked: int, drawn: int) -> float:
    """Return the probability that `count` or more of `drawn` are marked: a hypergeometric tail.

    Parameters
    ----------
    count : int
    population : int
        Of how many is drawn, without replacement.
    marked : int
        How many of these are marked.
    drawn : int

    Returns
    -------
    probability : float
        Computed in integers, rounded once.
    """
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
