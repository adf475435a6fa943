"""The default learner by choices: neighbours, the best order among them, and hill climbing.

    `neighbours_by_choices`     each variable grows a set of parents, and pairs are separated
    `order_by_choices`          the best order, from two orders that fit the separators
    `climbing_by_choices`       moves of single edges, to which all pairs are open
                                ...         again, while it adds pairs that were no neighbours

Up to 8 variables, all pairs are neighbours. The search ends with the structure so far if the next
call would exceed `most_bits` or `hybrid_calls`, so that an approved study states both.

Leakage: that of the three; which part asks, and how often, also follows from the winners.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from vertibayes.dag import Structure
from vertibayes.structure.climbing_by_choices import EdgeMoves
from vertibayes.structure.graphs import Mask, Order, Parents, neighbours_of, topological
from vertibayes.structure.limited_choices import LimitedChoices, LimitReachedError, most_bits
from vertibayes.structure.neighbours_by_choices import grown, separated
from vertibayes.structure.order_by_choices import OrderSearch
from vertibayes.structure.order_by_colliders import order_by_colliders
from vertibayes.structure.search import Search
from vertibayes.structure.search_space import SearchSpace
from vertibayes_protocols.approval import Steps

FEW = 8  # variables
AGAIN = 5  # times that the order search runs again
MOST_CALLS = 60


def hybrid_steps(search: Search) -> Steps[Structure]:
    """Learn a structure by choices."""
    space = SearchSpace(search)
    numbers = len(search.names), search.max_parents
    choices = LimitedChoices(search, most_bits(*numbers), hybrid_calls(*numbers))
    hybrid = _Hybrid(space, choices)
    if search.max_parents:
        with suppress(LimitReachedError):
            yield from hybrid.search()
    return space.structure(hybrid.dag)


class _Hybrid:
    """The search, and its structure so far."""

    def __init__(self, space: SearchSpace, choices: LimitedChoices) -> None:
        self._space, self._choices = space, choices
        self.dag: Parents = list(space.required)

    def search(self) -> Steps[None]:
        """Improve the structure until nothing changes."""
        space, choices = self._space, self._choices
        taken = list(space.required)
        if space.size > FEW:
            taken = yield from grown(space, choices)
            near, separators = yield from separated(space, choices, taken)
        else:
            near, separators = neighbours_of(space.allowed), {}  # all pairs
        orders = [
            order_by_colliders(space, near, separators, backwards=backwards)
            for backwards in (False, True)
        ]
        for _ in range(AGAIN + 1):
            yield from self._best_order(near, taken, orders)
            moves = EdgeMoves(space, choices, self.dag)  # which changes it
            yield from moves.in_parallel()
            if not any(parents & ~near[c] for c, parents in enumerate(self.dag)):
                return
            near = [n | m for n, m in zip(near, neighbours_of(self.dag), strict=True)]
            orders = [topological(self.dag)]

    def _best_order(
        self, near: Sequence[Mask], taken: Sequence[Mask], orders: Sequence[Order]
    ) -> Steps[None]:
        hints = list(zip(self.dag, taken, strict=True))
        search = OrderSearch(self._space, self._choices, near, hints)
        try:
            yield from search.search(orders)
        finally:
            self.dag = search.dag or self.dag


def hybrid_calls(variables: int, max_parents: int) -> int:
    """Return after how many calls the search ends."""
    del variables, max_parents
    return MOST_CALLS
