"""Hill climbing by choices: a move is the winner of a set, and no gain is revealed.

    analyst -> sites    Choices     for each variable, the moves of its edges; in greedy search also
                                    the best moves of all variables
    sites -> analyst    winners     no score and no table
                        ...         until no move raises BIC

Leakage: which move of each variable is best, each time that its moves have changed, and the path
of the search; never by how much.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import starmap
from typing import TypeAlias

from vertibayes.dag import Structure
from vertibayes.structure.graphs import Mask, Parents, ancestors, elements, topological
from vertibayes.structure.limited_choices import LimitedChoices, LimitReachedError, most_bits
from vertibayes.structure.search import Search
from vertibayes.structure.search_space import SearchSpace
from vertibayes_protocols.approval import Steps

Move: TypeAlias = tuple[tuple[int, Mask], ...]  # the variables that change, with their new parents


class EdgeMoves:
    """A structure that moves of single edges improve."""

    def __init__(self, space: SearchSpace, choices: LimitedChoices, dag: Parents) -> None:
        self._space, self._choices, self.dag = space, choices, dag
        self._gain = cache(space.gain)
        self._known: dict[tuple[tuple[Move, Move], ...], Move | None] = {}

    def greedily(self) -> Steps[None]:
        """Make the best move of all, again and again: the path of `structure.climbing_by_tables`.

        Of equal moves the first wins: by the child's name, then add, delete, reverse, then by the
        parent's name. The first call asks for the best move of each variable. Each further call
        asks for the best of these. The moves of a variable that the last move has changed all take
        part, and a set of their own shows the best of them in the same call.
        """
        yield from self._winners(self._moves())
        for _ in range(self._most_rounds):
            moves = self._moves()
            best = yield from self._winners([self._likely(moves), *moves])
            if best[0] is None:
                return
            self._make(best[0])

    def in_parallel(self) -> Steps[None]:
        """Make the best move of each variable in one call, again and again.

        Moves are made in the order of names. A move is left out if a move before it has changed
        one of its variables, or has made it a cycle: so each move raises BIC by what it won with.
        """
        for _ in range(self._most_rounds):
            best = yield from self._winners(self._moves())
            changed: set[int] = set()
            for move in best:
                if move and changed.isdisjoint(c for c, _ in move) and not self._closes_cycle(move):
                    self._make(move)
                    changed.update(c for c, _ in move)
            if not changed:
                return

    @property
    def _most_rounds(self) -> int:
        """In how many rounds moves are made at most.

        Winners can contradict each other (`LimitedChoices`), so that moves undo each other, and
        none of them is asked again.
        """
        return 100 + 10 * self._space.size

    def _likely(self, moves: list[list[Move]]) -> list[Move]:
        """Return of each variable its best move if it is known, and otherwise all its moves."""
        likely: list[Move] = []
        for own in moves:
            key = tuple(map(self._with_before, own))
            if key in self._known:
                own = [best] if (best := self._known[key]) else []
            likely += own
        return likely

    def _winners(self, sets: list[list[Move]]) -> Steps[list[Move | None]]:
        """Find the best move of each set; None if no move raises BIC."""
        keys = [tuple(map(self._with_before, moves)) for moves in sets]
        new = list(dict.fromkeys(key for key in keys if key not in self._known))
        candidates = [[(), *starmap(self._gain, key)] for key in new]
        winners = yield from self._choices.best(candidates)
        for key, winner in zip(new, winners, strict=True):
            self._known[key] = key[winner - 1][0] if winner else None
        return [self._known[key] for key in keys]

    def _with_before(self, move: Move) -> tuple[Move, Move]:
        """Return a move, and the families whose place it takes."""
        return move, tuple((child, self.dag[child]) for child, _ in move)

    def _make(self, move: Iterable[tuple[int, Mask]]) -> None:
        for child, parents in move:
            self.dag[child] = parents

    def _closes_cycle(self, move: Move) -> bool:
        dag = list(self.dag)
        for child, parents in move:
            dag[child] = parents
        return len(topological(dag)) < len(dag)

    def _moves(self) -> list[list[Move]]:
        """Return the moves of each variable: add, delete, reverse, each by the parent's name."""
        above = ancestors(self.dag)
        return [self._moves_of(child, above) for child in range(self._space.size)]

    def _moves_of(self, child: int, above: list[Mask]) -> list[Move]:
        space, parents = self._space, self.dag[child]
        adds: list[Move] = [
            ((child, parents | 1 << x),)
            for x in elements(space.allowed[child] & ~parents)
            if not above[x] >> child & 1 and space.fits(child, parents | 1 << x)
        ]
        free = list(elements(parents & ~space.required[child]))
        deletes: list[Move] = [((child, parents & ~(1 << x)),) for x in free]
        reverses: list[Move] = [
            ((child, parents & ~(1 << x)), (x, self.dag[x] | 1 << child))
            for x in free
            if space.allowed[x] >> child & 1
            and not any(above[other] >> x & 1 for other in elements(parents & ~(1 << x)))
            and space.fits(x, self.dag[x] | 1 << child)
        ]
        return adds + deletes + reverses


def hill_climbing_steps(search: Search) -> Steps[Structure]:
    """Search greedily from a given structure, or from the required edges, by choices.

    The path is that of hill climbing by tables, a call for each move. The search ends early with
    the structure so far if the next call would exceed `most_bits` or `hill_climbing_calls`.
    """
    space = SearchSpace(search)
    numbers = len(search.names), search.max_parents
    choices = LimitedChoices(search, most_bits(*numbers), hill_climbing_calls(*numbers))
    moves = EdgeMoves(space, choices, list(space.start))
    with suppress(LimitReachedError):
        yield from moves.greedily()
    return space.structure(moves.dag)


def hill_climbing_calls(variables: int, max_parents: int) -> int:
    """Return after how many calls hill climbing ends."""
    del max_parents
    return 10 + 4 * variables
