"""The default learner: tests find neighbours, orders the structure, and hill climbing repairs it.

Tests find which variables may be neighbours (`skeleton_by_tables`). Best order score search learns
a structure in which parents are among a variable's strongest neighbours, from random orders and
from two that fit the arrows which the tests imply. Greedy hill climbing, to which all edges are
open, goes on from it: tests remove edges falsely where variables determine each other. Edges that
hill climbing adds become neighbours, and the order search runs again.

Choices cannot take this path, which follows sums of scores and bounds of tests: `hybrid_by_choices`
is another learner.

References
----------
Kuipers, Suter and Moffa (2022), Efficient sampling and structure learning of Bayesian networks,
doi:10.1080/10618600.2021.2020127: searches within a skeleton that is widened again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import comb

import numpy as np

from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.structure.climbing_by_tables import PREFETCH, climb
from vertibayes.structure.family_scores import FamilyScores
from vertibayes.structure.graphs import Mask, Order, Parents, neighbours_of, topological
from vertibayes.structure.order_by_colliders import order_by_colliders
from vertibayes.structure.order_by_tables import search_orders
from vertibayes.structure.search import Progress, Search, TimeIsUp
from vertibayes.structure.skeleton import LEVELS
from vertibayes.structure.skeleton_by_tables import SkeletonByTables

NEIGHBOURS = range(7, 11)  # among so many the order search chooses the parents of a variable
MOST_TRIPLES = 2_700  # of neighbours, over all variables: it asks for tables of most of them
ORDERS = 5  # random ones
AGAIN = 3  # times that the order search runs again
SEED = 0  # of the orders: the same for all data, so that one data set gives one structure


class _TimeIsUpError(Exception):
    """The time of a search is up."""


def hybrid_tables(
    search: Search, counter: Counter, progress: Progress, time_is_up: TimeIsUp
) -> Structure:
    """Learn a structure from tables."""
    scores = FamilyScores(search, counter)
    started = _start(scores, progress, time_is_up)
    if started is None:
        return scores.structure(scores.required)
    near, orders = started

    def improve(orders: Sequence[Order], near: Sequence[Mask]) -> Parents:
        tick, up = partial(progress, "order search"), time_is_up
        dag = search_orders(scores, orders, near, tick=tick, time_is_up=up)
        tick = partial(progress, "hill climbing")
        return climb(scores, dag, ahead=PREFETCH, tick=tick, time_is_up=up)

    best = improve(orders, near)
    for _ in range(AGAIN):
        if time_is_up() or not any(p & ~near[c] for c, p in enumerate(best)):
            break
        near = [n | m for n, m in zip(near, neighbours_of(best), strict=True)]
        dag = improve([topological(best), *orders], near)
        if not scores.knows_dag(dag) or scores.total(dag) <= scores.total(best):
            break
        best = dag
    return scores.structure(best)


def _start(
    scores: FamilyScores, progress: Progress, time_is_up: TimeIsUp
) -> tuple[list[Mask], list[Order]] | None:
    """Return the neighbours by tests, and the orders: two that fit the separators, and random ones.

    None if time is up before the neighbours are known.
    """
    calls = 0

    def ask(tables: Iterable[Mask]) -> None:
        nonlocal calls
        if time_is_up():
            raise _TimeIsUpError
        progress("tests", calls, LEVELS + 1)
        calls += 1
        scores.ask(tables)

    skeleton = SkeletonByTables(scores.space, scores.sums, ask)
    try:  # tests have no wider tables than families
        skeleton.find(min(LEVELS, scores.search.max_parents - 1))
    except _TimeIsUpError:
        return None
    orders = [
        order_by_colliders(
            scores.space, skeleton.neighbours, skeleton.separators, backwards=backwards
        )
        for backwards in (False, True)
    ]
    generator = np.random.default_rng(SEED)
    orders += [generator.permutation(scores.variables).tolist() for _ in range(ORDERS)]
    return skeleton.strongest(_neighbours(scores.variables)), orders


def _neighbours(variables: int) -> int:
    """Return how many neighbours the order search chooses from: fewer where variables are many."""
    fit = (most for most in NEIGHBOURS if variables * comb(most, 3) <= MOST_TRIPLES)
    return max(fit, default=NEIGHBOURS[0])
