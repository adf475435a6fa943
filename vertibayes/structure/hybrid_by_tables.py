"""The default learner: tests find neighbours, orders the structure, and hill climbing repairs it.

PC-stable's tests find which variables may be neighbours. Best order score search learns a structure
within these, from random orders and from two that fit the arrows which the tests imply. Greedy hill
climbing, to which all edges are open, goes on from it: tests remove edges falsely where variables
determine each other. Edges that hill climbing adds become neighbours, and the order search runs
again.

Why two learners: over tables, `hybrid_by_choices` reveals 1.8 times the cells on ALARM (10,000
records, 10 calls instead of 8), and differs from the true network in 23 edges instead of 14 with
1,000 records, in 20 instead of 16 where 5 % of the cells are missing. Choices cannot take this
path, which follows sums of scores.

References
----------
Kuipers, Suter and Moffa (2022), Efficient sampling and structure learning of Bayesian networks,
doi:10.1080/10618600.2021.2020127: searches within a skeleton that is widened again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from vertibayes.choosing import TableChooser, follow
from vertibayes.counting.counter import Counter
from vertibayes.dag import Structure
from vertibayes.structure.climbing_by_tables import PREFETCH, climb
from vertibayes.structure.family_scores import FamilyScores
from vertibayes.structure.graphs import Mask, Order, Parents, mask_of, neighbours_of, topological
from vertibayes.structure.neighbours_by_choices import order_by_colliders
from vertibayes.structure.order_by_tables import search_orders
from vertibayes.structure.search import Progress, Search, TimeIsUp
from vertibayes.structure.search_space import SearchSpace
from vertibayes.structure.skeleton import LEVELS, Skeleton, skeleton_steps
from vertibayes_protocols.approval import Step, Winners
from vertibayes_protocols.choices import Choices

ORDERS = 10  # random ones
AGAIN = 3  # times that the order search runs again
SEED = 0  # of the orders: the same for all data, so that one data set gives one structure


class _TimeIsUpError(Exception):
    """The time of a search is up."""


def hybrid_tables(
    search: Search, counter: Counter, progress: Progress, time_is_up: TimeIsUp
) -> Structure:
    """Learn a structure from tables."""
    scores = FamilyScores(search, counter)
    skeleton = _skeleton(search, counter, progress, time_is_up)
    if skeleton is None:
        return scores.structure(scores.required)

    def improve(orders: Sequence[Order], near: Sequence[Mask]) -> Parents:
        tick, up = partial(progress, "order search"), time_is_up
        dag = search_orders(scores, orders, near, tick=tick, time_is_up=up)
        tick = partial(progress, "hill climbing")
        return climb(scores, dag, ahead=PREFETCH, tick=tick, time_is_up=up)

    near, orders = _start(scores.space, skeleton)
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


def _start(space: SearchSpace, skeleton: Skeleton) -> tuple[list[Mask], list[Order]]:
    """Return the neighbours, and the orders: two that fit the separators, and random ones."""
    names = space.search.names
    place = {name: i for i, name in enumerate(names)}
    near = [mask_of(place[n] for n in skeleton.neighbours[name]) for name in names]
    separators = {
        (place[x], place[y]): mask_of(place[name] for name in given)
        for (x, y), given in skeleton.separators.items()
    }
    generator = np.random.default_rng(SEED)
    orders = [
        order_by_colliders(space, near, separators, backwards=backwards)
        for backwards in (False, True)
    ]
    return near, orders + [generator.permutation(len(near)).tolist() for _ in range(ORDERS)]


def _skeleton(
    search: Search, counter: Counter, progress: Progress, time_is_up: TimeIsUp
) -> Skeleton | None:
    """Return the neighbours of each variable by tests; None if time is up before they are known."""
    chooser, calls = TableChooser(counter), 0

    def answer(step: Step) -> Winners:
        nonlocal calls
        assert isinstance(step, Choices)  # the tests of one level
        if time_is_up():
            raise _TimeIsUpError
        progress("tests", calls, LEVELS + 1)
        calls += 1
        return chooser.choose(step)

    levels = min(LEVELS, search.max_parents - 1)  # tests have no wider tables than families
    try:
        return follow(skeleton_steps(search, levels=levels), answer)
    except _TimeIsUpError:
        return None
