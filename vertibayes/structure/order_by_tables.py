"""Best order score search (BOSS): the structure of the best order of the variables.

An order has the structure in which each variable takes its parents from those before it, by its
grow-shrink tree: from the required parents, a variable takes the predecessor with the highest gain,
again and again, as long as a gain is above 0 (grow); then it drops the parent whose loss is best,
as long as the score does not fall (shrink). The tree has a node for each set of parents on the way:
its branches, best first, are the same for all orders of the variables. A node is expanded only when
an order needs it, so that only its families are asked for.

A move puts one variable at its best place. Several orders are searched in step: a pass moves each
variable of each order whose families are all known, and one call then asks for what is missing, for
all orders. Orders ask for each other's families, so that more orders take fewer calls.

References
----------
Andrews, Ramsey, Sanchez-Romero, Camchong and Kummerfeld (2023), Fast scalable and accurate
discovery of DAGs using the best order score search and grow-shrink trees, NeurIPS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.structure.climbing_by_tables import Tick
from vertibayes.structure.family_scores import FamilyScores
from vertibayes.structure.graphs import Mask, Order, Parents, elements, moved
from vertibayes.structure.search import TimeIsUp
from vertibayes.structure.table_sums import DECIMALS


class Taken(NamedTuple):
    """The parents that a variable takes, and their score."""

    score: float
    parents: Mask


@dataclass(slots=True, eq=False)
class Node:
    """A set of parents on the way, and which predecessors could follow.

    `branches` are the further parents that raise the score, best first; None before the node is
    expanded. `left` are the candidates of its branches and those after them: an earlier one, if it
    were a predecessor, would have been taken.
    """

    parents: Mask
    left: Mask
    branches: list[tuple[int, Node]] | None = None
    end: Taken | None = None


Missing: TypeAlias = dict[Node, "GrowShrinkTree"]  # nodes that must be expanded, each with its tree


class GrowShrinkTree:
    """The grow-shrink tree of one variable."""

    def __init__(self, scores: FamilyScores, child: int, among: Mask) -> None:
        self._scores, self._child = scores, child
        self._required = scores.required[child]
        self._among = among & scores.allowed[child] & ~self._required
        self.predecessors, self.successors = self._among | self._required, 0
        self._root = Node(self._required, self._among)
        self._ends: dict[Mask, Taken] = {}

    def family(self, before: Mask, missing: Missing) -> Taken | None:
        """Return the family given predecessors; None, and a node into `missing`, if not known.

        The score is -inf if a required parent is not a predecessor.
        """
        before &= self.predecessors
        known = self._ends.get(before)
        if known is None:
            if self._required & ~before:
                return Taken(-inf, self._required)
            node = self._last(before)
            if node.branches is None:
                missing[node] = self
                return None
            known = self._ends[before] = node.end = node.end or self._shrink(node.parents)
        return known

    def grown(self, before: Mask) -> Mask:
        """Return the parents as far as they are known."""
        return self._last(before & self._among).parents

    def wanted(self, node: Node) -> list[Mask]:
        """Return the tables that a node needs before it can be expanded."""
        return self._scores.moves(self._child, node.parents, node.left)

    def expand(self, node: Node) -> None:
        """Give a node its branches, best first; its families must be known."""
        score = self._scores.score
        now, left = score(self._child, node.parents), node.left
        gains = []
        for x in self._scores.candidates(self._child, node.parents, node.left):
            gain = round(score(self._child, node.parents | 1 << x) - now, DECIMALS)
            if gain > 0:
                gains.append((-gain, x))
        node.branches = []
        for _, x in sorted(gains):
            left &= ~(1 << x)
            node.branches.append((x, Node(node.parents | 1 << x, left)))

    def _last(self, before: Mask) -> Node:
        """Follow the first branches that are predecessors to the last node that is known."""
        node = self._root
        while node.branches:
            for x, further in node.branches:
                if before >> x & 1:
                    node = further
                    break
            else:
                break
        return node

    def _shrink(self, parents: Mask) -> Taken:
        score = self._scores.score
        best = score(self._child, parents)
        while rest := parents & ~self._required:
            without = {x: score(self._child, parents & ~(1 << x)) for x in elements(rest)}
            x = max(without, key=lambda x: round(without[x], DECIMALS))
            if round(without[x] - best, DECIMALS) < 0:
                break
            best, parents = without[x], parents & ~(1 << x)
        return Taken(best, parents)


def trees_of(scores: FamilyScores, among: Sequence[Mask]) -> list[GrowShrinkTree]:
    """Return the tree of each variable."""
    trees = [GrowShrinkTree(scores, child, allowed) for child, allowed in enumerate(among)]
    for child, tree in enumerate(trees):
        for predecessor in elements(tree.predecessors):
            trees[predecessor].successors |= 1 << child
    return trees


def dag_of(trees: Sequence[GrowShrinkTree], order: Sequence[int]) -> Parents:
    """Return the structure of an order, as far as it is known."""
    before, dag = 0, [0] * len(order)
    for child in order:
        family = trees[child].family(before, {})
        dag[child] = trees[child].grown(before) if family is None else family.parents
        before |= 1 << child
    return dag


def search_orders(
    scores: FamilyScores,
    orders: Sequence[Order],
    among: Sequence[Mask],
    *,
    tick: Tick,
    time_is_up: TimeIsUp,
) -> Parents:
    """Search from several orders in step."""
    trees = trees_of(scores, among)
    searches = [_OrderSearch(trees, _keeping(scores.required, order)) for order in orders]
    calls = 0
    while True:
        missing: Missing = {}
        for search in searches:
            search.move_all(missing)
        if not missing:
            break
        wanted = [one for node, tree in missing.items() for one in tree.wanted(node)]
        if not scores.know_all(wanted):
            if time_is_up():
                break
            tick(calls, 0)
            calls += 1
            scores.ask(wanted)
        for node, tree in missing.items():
            tree.expand(node)
    ends = [dag_of(trees, search.order) for search in searches]
    return max((dag for dag in ends if scores.knows_dag(dag)), key=scores.total, default=ends[0])


class _OrderSearch:
    """An order, and the variables that may have a better place in it."""

    def __init__(self, trees: Sequence[GrowShrinkTree], order: Order) -> None:
        self._trees, self.order, self._open = trees, order, list(order)

    def move_all(self, missing: Missing) -> None:
        """Move what can be moved; families that are not known leave a variable open."""
        queue, self._open = deque(self._open), []
        while queue:
            v = queue.popleft()
            better = _at_best_place(self._trees, self.order, v, missing)
            if better is None:
                self._open.append(v)
            elif better is not self.order:
                self.order = better
                queue += [w for w in better if w != v and w not in queue and w not in self._open]


def _at_best_place(
    trees: Sequence[GrowShrinkTree], order: Order, v: int, missing: Missing
) -> Order | None:
    """Return the order with a variable at its best place, the same if it is there.

    None, and nodes into `missing`, if a family is not known.
    """
    concerned = trees[v].predecessors | trees[v].successors
    own, without, behind = [trees[v].family(0, missing)], [], []
    places, before = [0], 0  # where v may be: in front, and behind each variable that it concerns
    rest = [w for w in order if w != v]
    for place, w in enumerate(rest, 1):
        if concerned >> w & 1:
            without.append(trees[w].family(before, missing))
            behind.append(trees[w].family(before | 1 << v, missing))
            own.append(trees[v].family(before | 1 << w, missing))
            places.append(place)
        before |= 1 << w
    if None in own or None in without or None in behind:
        return None
    totals = _totals(*([f.score for f in families if f] for families in (own, without, behind)))
    now = max(i for i, place in enumerate(places) if place <= order.index(v))
    best = int(np.argmax(totals))
    if totals[best] <= totals[now]:
        return order
    return moved(order, v, places[best])


def _totals(
    own: Sequence[float], without: Sequence[float], behind: Sequence[float]
) -> NDArray[np.float64]:
    """Return the scores with a variable at each place: those before it are without it."""
    first, last = np.cumsum([0.0, *without]), np.cumsum([0.0, *behind[::-1]])[::-1]
    totals: NDArray[np.float64] = np.round(np.add(own, first) + last, DECIMALS)
    return totals


def _keeping(required: Parents, order: Order) -> Order:
    """Return an order with required parents before their children, otherwise as it was."""
    kept: Order = []
    placed = 0
    while len(kept) < len(order):
        v = next(v for v in order if not (placed >> v & 1 or required[v] & ~placed))
        kept.append(v)
        placed |= 1 << v
    return kept
