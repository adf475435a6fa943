"""Best order score search (BOSS): the structure of the best order of the variables.

An order has the structure in which each variable takes its parents from those before it, by its
grow-shrink tree. A move puts one variable at its best place. Several orders are searched in step:
a pass moves each variable of each order whose families are all known, and one call then asks for
what is missing, for all orders. Orders ask for each other's families, so that more orders take
fewer calls.

References
----------
Andrews, Ramsey, Sanchez-Romero, Camchong and Kummerfeld (2023), Fast scalable and accurate
discovery of DAGs using the best order score search and grow-shrink trees, NeurIPS.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes.structure.climbing_by_tables import Tick
from vertibayes.structure.family_scores import DECIMALS, FamilyScores
from vertibayes.structure.graphs import Mask, Order, Parents, moved
from vertibayes.structure.grow_shrink import GrowShrinkTree, Missing, dag_of, trees_of
from vertibayes.structure.search import TimeIsUp


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
    orders = [_keeping(scores.required, order) for order in orders]
    active, calls = list(range(len(orders))), 0
    while active:
        missing: Missing = {}
        active = [i for i in active if not _pass(trees, orders, i, missing)]
        wanted = [one for node, tree in missing.items() for one in tree.wanted(node)]
        if not scores.know_all(wanted):
            if time_is_up():
                break
            tick(calls, 0)
            calls += 1
            scores.ask(wanted)
        for node, tree in missing.items():
            tree.expand(node)
    ends = [dag_of(trees, order) for order in orders]
    return max((dag for dag in ends if scores.knows_dag(dag)), key=scores.total, default=ends[0])


def _pass(trees: Sequence[GrowShrinkTree], orders: list[Order], i: int, missing: Missing) -> bool:
    """Move what can be moved in one order; return whether its search has ended."""
    new: Missing = {}
    moved = True
    while moved and not new:
        moved = False
        for v in list(orders[i]):
            better = _at_best_place(trees, orders[i], v, new)
            if better is not None:
                orders[i], moved = better, True
    missing |= new
    return not new


def _at_best_place(
    trees: Sequence[GrowShrinkTree], order: Order, v: int, missing: Missing
) -> Order | None:
    """Return the order with a variable at its best place; None if it is there, or not known."""
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
        return None
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
