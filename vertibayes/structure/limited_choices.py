"""Sets of candidates, asked for within a number of bits and calls, and without what is known.

A winner says more than which candidate won: each other candidate of its set is not better.
`LimitedChoices` leaves such a candidate out of a later set that has the winner too, so that a
search reveals fewer bits and nothing twice. What is left out follows from the winners alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod

from vertibayes.structure.search import Search
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate, Choices


class LimitReachedError(Exception):
    """The next call would exceed the bits or calls of a search."""


class LimitedChoices:
    """Asks which candidates win, and remembers it."""

    def __init__(self, search: Search, most_bits: int, most_calls: int) -> None:
        self._search = search
        given = search.most_bits
        self._most_bits = most_bits if given is None else min(most_bits, given)
        self._most_calls = most_calls
        self.bits = self.calls = 0
        # By candidate: the winners of sets that it has lost, and whether these came before it.
        self._lost: defaultdict[Candidate, dict[Candidate, bool]] = defaultdict(dict)

    def best(self, sets: Sequence[Sequence[Candidate]]) -> Steps[list[int]]:
        """Find the winner of each set, in one call; in none if all winners are known."""
        left = [self._open(candidates) for candidates in sets]
        unknown = tuple(dict.fromkeys(one for one in left if len(one) > 1))
        won: dict[tuple[Candidate, ...], Candidate]
        won = {one: one[0] for one in left if len(one) == 1}
        if unknown:
            self._spend(unknown)
            search = self._search
            winners = yield Choices(unknown, search.missing, search.rows, score="likelihood")
            for one, winner in zip(unknown, winners, strict=True):
                won[one] = one[winner]
                self._remember(one, winner)
        return [list(one).index(won[rest]) for one, rest in zip(sets, left, strict=True)]

    def _open(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates of a set that may win, as far as is known; at least one.

        Winners can contradict each other: scores that are nearly equal have other errors in another
        call, and a site can lie. If each candidate has lost, the first remains.
        """
        places: dict[Candidate, int] = {}
        for place, candidate in enumerate(candidates):
            places.setdefault(candidate, place)
        may_win = tuple(
            candidate
            for candidate, place in places.items()
            if not any(
                winner in places and (places[winner] < place or not was_first)
                for winner, was_first in self._lost.get(candidate, {}).items()
            )
        )
        return may_win or (candidates[0],)

    def _remember(self, candidates: tuple[Candidate, ...], winner: int) -> None:
        for place, candidate in enumerate(candidates):
            if place != winner:  # a winner that came after it is strictly better
                lost, best = self._lost[candidate], candidates[winner]
                lost[best] = lost.get(best, True) and winner < place

    def _spend(self, sets: Sequence[Sequence[Candidate]]) -> None:
        bits = self.bits + bits_of([len(one) for one in sets])
        if bits > self._most_bits or self.calls >= self._most_calls:
            raise LimitReachedError
        self.bits, self.calls = bits, self.calls + 1


def bits_of(sizes: Sequence[int]) -> int:
    """Return how many bits the winners of sets have, rounded up: exactly, in whole numbers.

    Examples
    --------
    >>> bits_of([2, 3, 3])  # 3 + log2(18), rounded up
    8
    """
    return len(sizes) + (prod(sizes) - 1).bit_length()


def most_bits(variables: int, max_parents: int) -> int:
    """Return at how many bits of winners a search ends if it states none.

    Networks of 8 to 40 variables take about half of them.
    """
    del max_parents
    return 1_000 + 15 * variables * (1 + (variables - 1).bit_length())
