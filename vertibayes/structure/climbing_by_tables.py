"""Greedy hill climbing and tabu search by tables: add, delete and reverse edges.

A step needs the families of the children that the last move has changed. With them, in the same
call, a search asks for the families after the best moves of the other children: the next moves are
mostly among these, so that many steps need no call. The path is the same as without.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.structure.family_scores import FamilyScores
from vertibayes.structure.graphs import Mask, Parents, elements, topological
from vertibayes.structure.search import Progress, Search, TimeIsUp, never, silent
from vertibayes.structure.table_sums import DECIMALS
from vertibayes_protocols.variables import Family

Gains: TypeAlias = NDArray[np.float64]  # [child, kind, parent], in nats
Tick: TypeAlias = Callable[[int, int], None]  # calls done; 0, as nobody knows how many follow

ADD, DELETE, REVERSE = range(3)
PREFETCH = 3
TABU_PREFETCH = 2
TYPICAL_PARENTS = 3  # few children have more
PATIENCE = 50  # steps of tabu search without a better structure
MEMORY = 100  # structures to which tabu search does not return
_silent = partial(silent, "")  # a search for families has no stage of its own


class _Moves:
    """A structure, and by how much each move changes its score."""

    def __init__(self, scores: FamilyScores, start: Parents) -> None:
        self._scores, self.dag = scores, list(start)
        shape = (scores.variables, 3, scores.variables)
        self._own = np.full(shape, -np.inf)  # of moves of one child: no gains of reversed edges
        self.stale = set(range(scores.variables))

    def wanted(self) -> list[Mask]:
        """Return the tables of the moves of the children that have changed."""
        return [one for c in sorted(self.stale) for one in self._scores.moves(c, self.dag[c])]

    def wanted_next(self, ahead: int, losing: int) -> Iterator[Mask]:
        """Return the tables after the best moves of each child that has not changed.

        These are the moves that gain and, of all moves that lose, the best `losing` ones.
        """
        gains = self.gains()
        lost = np.sort(gains[(gains <= 0) & np.isfinite(gains)])[::-1][:losing]
        least = lost.min(initial=np.finfo(float).tiny)
        for child in sorted(set(range(len(self.dag))) - self.stale):
            row = gains[child].ravel()
            for place in np.argsort(-row, kind="stable")[:ahead]:
                if row[place] >= least:
                    for changed, parents in self.after(child, *divmod(int(place), len(self.dag))):
                        if changed not in self.stale:  # its gains are those before the last move
                            yield from self._scores.moves(changed, parents)

    def update(self) -> Gains:
        """Score the moves of the children that have changed; return all gains."""
        for child in self.stale:
            self._own[child] = -np.inf
            parents, score = self.dag[child], self._scores.score
            now = score(child, parents)
            for x in self._scores.candidates(child, parents):
                self._own[child, ADD, x] = score(child, parents | 1 << x) - now
            for x in elements(parents & ~self._scores.required[child]):
                self._own[child, DELETE, x] = score(child, parents & ~(1 << x)) - now
        self.stale = set()
        return self.gains()

    def gains(self) -> Gains:
        """Return the gain of each move, -inf of those that are not possible, rounded."""
        edge, below = self._reachable()
        gains = self._own.copy()
        gains[:, ADD][below] = -np.inf  # the child is above the parent: a cycle
        add, delete = self._own[:, ADD], self._own[:, DELETE]
        gains[:, REVERSE] = np.where(edge, delete + add.T, -np.inf)
        for child, parent in np.argwhere(edge):
            others = edge[:, parent].copy()
            others[child] = False
            if (others & below[:, child]).any():  # the parent is above the child by another way too
                gains[child, REVERSE, parent] = -np.inf
        rounded: Gains = np.round(gains, DECIMALS)
        return rounded

    def after(self, child: int, kind: int, parent: int) -> list[tuple[int, Mask]]:
        """Return the children that a move changes, with their new parents."""
        changed = [(child, self.dag[child] ^ 1 << parent)]
        if kind == REVERSE:
            changed.append((parent, self.dag[parent] | 1 << child))
        return changed

    def make(self, changed: list[tuple[int, Mask]]) -> None:
        """Make a move."""
        for child, parents in changed:
            self.dag[child] = parents
            self.stale.add(child)

    def _reachable(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return [child, parent] of the edges, and [above, below] of all paths."""
        size = len(self.dag)
        edge, below = np.zeros((2, size, size), np.bool_)
        for child in topological(self.dag):
            parents = list(elements(self.dag[child]))
            edge[child, parents] = True
            below[:, child] = below[:, parents].any(axis=1) | edge[child]
        return edge, below


def climb(
    scores: FamilyScores,
    start: Parents,
    *,
    ahead: int = PREFETCH,
    patience: int = 0,
    tick: Tick = _silent,
    time_is_up: TimeIsUp = never,
) -> Parents:
    """Search greedily from a structure; with patience, beyond the first local optimum (tabu).

    Each step makes the move with the highest gain in BIC: of equals the first by the child's name,
    then add, delete, reverse, then by the parent's name. Greedy search ends where no gain is above
    0. Tabu search makes the best move that does not return to one of the last `MEMORY` structures,
    and ends after `patience` steps that are not better than the best structure before.

    References
    ----------
    Glover (1989), Tabu search - part I, doi:10.1287/ijoc.1.3.190.
    """
    moves, best, behind, score, calls = _Moves(scores, start), list(start), 0, 0.0, 0
    visited: deque[tuple[Mask, ...]] = deque([tuple(start)], MEMORY)
    least = -np.inf if patience else 0.0
    while True:
        if not scores.know_all(wanted := moves.wanted()):
            if time_is_up():
                return best
            tick(calls, 0)
            calls += 1
            early = moves.wanted_next(ahead, patience) if calls > 1 else ()
            scores.ask([*wanted, *early])
        chosen = _first_best(moves, visited if patience else (), least)
        if chosen is None:
            return best
        gain, changed = chosen
        moves.make(changed)
        visited.append(tuple(moves.dag))
        score, behind = round(score + gain, DECIMALS), behind + 1
        if score > 0:  # better than the best
            best, behind, score = list(moves.dag), 0, 0.0
        elif behind >= patience:
            return best


def _first_best(
    moves: _Moves, visited: deque[tuple[Mask, ...]] | tuple[()], least: float
) -> tuple[float, list[tuple[int, Mask]]] | None:
    """Return the gain and the changes of the best move, if there is one above `least`."""
    gains = moves.update()
    for place in np.argsort(-gains, axis=None, kind="stable"):
        child, kind, parent = map(int, np.unravel_index(place, gains.shape))
        gain = float(gains[child, kind, parent])
        if gain <= least:
            return None
        changed = moves.after(child, kind, parent)
        dag = list(moves.dag)
        for one, parents in changed:
            dag[one] = parents
        if tuple(dag) not in visited:
            return gain, changed
    return None


def _search(
    search: Search,
    counter: Counter,
    progress: Progress,
    time_is_up: TimeIsUp,
    *,
    stage: str,
    ahead: int,
    patience: int,
) -> Structure:
    """Search from a given structure, or from the required edges."""
    scores = FamilyScores(search, counter)
    dag = climb(
        scores,
        scores.space.start,
        ahead=ahead,
        patience=patience,
        tick=partial(progress, stage),
        time_is_up=time_is_up,
    )
    return scores.structure(dag)


def typical_families(search: Search) -> list[Family]:
    """Return families like those whose tables a search asks for.

    The list is typical, not an upper bound: a search asks for tables as the data decide. It has
    all pairs, and for each child the families of as many parents as `TYPICAL_PARENTS`: the
    variables that follow the child by name, and one more, which is any other variable. Families
    that do not fit are no candidates of a search, and not in the list.
    """
    names = search.names
    families = [Family(b, (a,)) for i, b in enumerate(names) for a in names[:i]]
    for i, child in enumerate(names):
        others = [*names[i + 1 :], *names[:i]]
        for parents in range(2, min(search.max_parents, TYPICAL_PARENTS) + 1):
            prefix, last = others[: parents - 1], others[parents - 1 :]
            families += [Family(child, (*prefix, name)) for name in last]
    return [family for family in families if search.fits(family)]


hill_climbing_tables = partial(_search, stage="hill climbing", ahead=PREFETCH, patience=0)
tabu_tables = partial(_search, stage="tabu search", ahead=TABU_PREFETCH, patience=PATIENCE)
