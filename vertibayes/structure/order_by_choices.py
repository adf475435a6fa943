"""Search for the best order of the variables by choices.

    analyst -> sites    Choices     for each variable, which of those before it are its parents
    sites -> analyst    winners
    analyst -> sites    Choices     for each variable, where in the order it goes best
    sites -> analyst    winners
                        ...         until each variable stays where it is

In an order, a variable has the best subset of its neighbours before it as parents. A move of one
variable changes the parents of itself and of the neighbours that it passes. All variables are asked
for their best places in one call, and moves that change other families are made together.

Leakage: the best subset among each set of neighbours that came before a variable, and the best
place of each variable in each order of the path; never by how much.

References
----------
Teyssier and Koller (2005), Ordering-based search: a simple and effective algorithm for learning
Bayesian networks. https://arxiv.org/abs/1207.1429
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

from vertibayes.structure.graphs import Mask, Order, Parents, elements, mask_of, moved
from vertibayes.structure.limited_choices import LimitedChoices
from vertibayes.structure.search_space import SearchSpace
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Candidate

MOST_SUBSETS = 200  # of a pool that are considered, unless there are more of one variable
MOST_PASSES = 20


class Pool(NamedTuple):
    """The variables from which one takes its parents: its neighbours before it in an order."""

    child: int
    among: Mask


class _Change(NamedTuple):
    """What the move of a variable changes."""

    after: tuple[Pool, ...]
    before: tuple[Pool, ...]


class OrderSearch:
    """Structures of orders, within neighbours."""

    def __init__(
        self,
        space: SearchSpace,
        choices: LimitedChoices,
        near: Sequence[Mask],
        hints: Sequence[Sequence[Mask]],
    ) -> None:
        self._space, self._choices, self._near, self._hints = space, choices, near, hints
        self._open = [
            n & a | r for n, a, r in zip(near, space.allowed, space.required, strict=True)
        ]
        self._parents: dict[Pool, Mask] = {}
        self.dag: Parents | None = None

    def search(self, orders: Sequence[Order]) -> Steps[Parents]:
        """Search from several orders in step; of equal structures the first order's wins."""
        orders = [list(order) for order in orders]
        moving = list(range(len(orders)))
        for _ in range(MOST_PASSES):
            yield from self._know(pool for order in orders for pool in self._pools(order))
            self.dag = self._dag(orders[0])
            moving = yield from self._move(orders, moving)
            if not moving:
                break
        yield from self._know(pool for order in orders for pool in self._pools(order))
        dags = list(dict.fromkeys(tuple(self._dag(order)) for order in orders))
        best = yield from self._choices.best([[self._space.gain(enumerate(dag)) for dag in dags]])
        self.dag = list(dags[best[0]])
        return self.dag

    def _move(self, orders: list[Order], moving: Iterable[int]) -> Steps[list[int]]:
        """Move variables to their best places; return the orders in which one has moved."""
        places = {
            (i, v): changes
            for i in moving
            for v in orders[i]
            if (changes := self._changes(orders[i], v))
        }
        yield from self._know(p for own in places.values() for change in own for p in change.after)
        winners = yield from self._choices.best(
            [[(), *map(self._gain, changes)] for changes in places.values()]
        )
        changed: dict[int, None] = {}
        for ((i, v), changes), winner in zip(places.items(), winners, strict=True):
            if winner:
                at = self._changes(orders[i], v).get(list(changes)[winner - 1])
                if at is not None:  # no move before it has changed these families
                    orders[i] = moved(orders[i], v, at)
                    changed[i] = None
        return list(changed)

    def _gain(self, change: _Change) -> Candidate:
        after, before = map(self._families, change)
        return self._space.gain(
            [new for new, old in zip(after, before, strict=True) if new != old],
            [old for new, old in zip(after, before, strict=True) if new != old],
        )

    def _families(self, pools: Iterable[Pool]) -> list[tuple[int, Mask]]:
        return [(pool.child, self._parents[pool]) for pool in pools]

    def _changes(self, order: Order, v: int) -> dict[_Change, int]:
        """Return what changes if a variable goes to another place, and to which."""
        now, changes = self._pools(order), {}
        rest = [w for w in order if w != v]
        passed = [i + 1 for i, w in enumerate(rest) if self._near[v] >> w & 1]
        for place in (0, *passed):
            new = self._pools(moved(order, v, place))
            pairs = [(a, b) for a, b in zip(new, now, strict=True) if a != b]
            if pairs and not any(self._space.required[a.child] & ~a.among for a, _ in pairs):
                after, before = zip(*pairs, strict=True)
                changes[_Change(after, before)] = place
        return changes

    def _pools(self, order: Order) -> list[Pool]:
        """Return the pool of each variable, by name."""
        before, pools = 0, [Pool(0, 0)] * len(order)
        for v in order:
            pools[v] = Pool(v, before & self._open[v])
            before |= 1 << v
        return pools

    def _dag(self, order: Order) -> Parents:
        return [self._parents[pool] for pool in self._pools(order)]

    def _know(self, pools: Iterable[Pool]) -> Steps[None]:
        """Find the best subset of each pool."""
        new = [pool for pool in dict.fromkeys(pools) if pool not in self._parents]
        subsets = [self._subsets(pool) for pool in new]
        winners = yield from self._choices.best(
            [
                [self._space.gain([(pool.child, parents)]) for parents in own]
                for pool, own in zip(new, subsets, strict=True)
            ]
        )
        for pool, own, winner in zip(new, subsets, winners, strict=True):
            self._parents[pool] = own[winner]

    def _subsets(self, pool: Pool) -> list[Mask]:
        """Return the sets of parents that are considered: small ones first, then by name."""
        required = self._space.required[pool.child]
        free = list(elements(pool.among & ~required))
        subsets = [required]
        for size in range(1, self._space.search.max_parents - required.bit_count() + 1):
            if size > 1 and len(subsets) + comb(len(free), size) > MOST_SUBSETS:
                break
            subsets += [required | mask_of(one) for one in combinations(free, size)]
        subsets += [required | hint & pool.among for hint in self._hints[pool.child]]
        fit = (one for one in subsets if one == required or self._space.fits(pool.child, one))
        return list(dict.fromkeys(fit))
