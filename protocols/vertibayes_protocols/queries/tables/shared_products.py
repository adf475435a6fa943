"""In which order the variables of tables are multiplied, so that tables share products.

A table is the product of all its variables except the last, a prefix, with the last one. The order
makes no difference to what is counted: any variable can be the last. The products of a prefix cost
what is sent of their columns, for each record. So few and narrow prefixes are chosen that serve all
tables, largest tables first: the products of a prefix of a large table serve smaller tables too.

Chvatal (1979). A greedy heuristic for the set-covering problem. doi:10.1287/moor.4.3.233

Everything follows from public sizes, in integers, so that all parties choose alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod
from typing import TypeAlias

from vertibayes_protocols.study import Study

Names: TypeAlias = tuple[str, ...]
Weight: TypeAlias = Callable[[Names], int]  # of a product of some variables, sorted by name

MOST_COMPARED = 800_000  # products of all orders: a second of work
_SCALE = 1 << 20  # so that quotients of weights and numbers of tables are compared as integers


def order_of_products(study: Study, tables: Iterable[Names]) -> list[Names]:
    """Return tables with their variables in an order in which the sites of a study send little.

    Wide tables have many products to compare: many of them keep the order in which they are given,
    so that no party compares for long before it considers a query.
    """
    given = list(tables)
    if sum(len(table) << len(table) for table in given) > MOST_COMPARED:
        return given
    widths = {name: max(variable.codes - 1, 0) for name, variable in study.variables.items()}
    return in_shared_order(given, widths, cache(partial(_sent, study, widths)))


def _sent(study: Study, widths: Mapping[str, int], names: Names) -> int:
    """Return how many columns are sent for a product, to all parties together."""
    holders, others = len(study.holders_of(names)), len(study.sites) - 1
    return prod(widths[name] for name in names) * (others + (holders if holders > 1 else 0))


def in_shared_order(
    tables: Iterable[Names], widths: Mapping[str, int], weight: Weight
) -> list[Names]:
    """Return tables with their variables in an order in which they share products.

    Examples
    --------
    >>> widths = {"a": 1, "b": 1, "c": 4, "d": 4}
    >>> in_shared_order([("a", "c", "b"), ("d", "a", "b")], widths, lambda names: len(names))
    [('a', 'b', 'c'), ('a', 'b', 'd')]
    """
    given = list(tables)
    prefixes = _cover([table for table in given if len(table) > 2], weight)
    chosen = [(table, prefixes.get(table, table[:-1])) for table in given]
    ordered = [(*first, *(name for name in table if name not in first)) for table, first in chosen]
    before, after = (_products(each) for each in (given, ordered))
    cheaper = _total(after, weight) < _total(before, weight)
    return ordered if cheaper and _columns(after, widths) <= _columns(before, widths) else given


def _cover(tables: Sequence[Names], weight: Weight) -> dict[Names, Names]:
    """Return a prefix of each table."""
    prefixes: dict[Names, Names] = {}
    made: set[Names] = set()
    for size in sorted({len(table) for table in tables}, reverse=True):
        chosen = _cover_alike([t for t in tables if len(t) == size], weight, made)
        made |= _products([(*prefix, "") for prefix in chosen.values()])
        prefixes |= chosen
    return prefixes


def _cover_alike(tables: Sequence[Names], weight: Weight, made: set[Names]) -> dict[Names, Names]:
    """Return a prefix of each table of one size: again and again the cheapest for each table."""
    served: dict[Names, list[Names]] = {}
    for table in tables:
        for prefix in combinations(sorted(table), len(table) - 1):
            served.setdefault(prefix, []).append(table)
    costs = {p: _SCALE * _total(_products([(*p, "")]) - made, weight) for p in served}
    queue = [(costs[prefix] // len(serves), prefix) for prefix, serves in served.items()]
    heapify(queue)
    chosen: dict[Names, Names] = {}
    while len(chosen) < len(tables):
        each, prefix = heappop(queue)
        left = [table for table in served[prefix] if table not in chosen]
        if left and costs[prefix] // len(left) > each:
            heappush(queue, (costs[prefix] // len(left), prefix))
        else:
            chosen |= dict.fromkeys(left, prefix)
    return chosen


def _products(tables: Iterable[Names]) -> set[Names]:
    """Return the products of two variables or more of the tables' prefixes, each once."""
    prefixes = {tuple(sorted(table[:-1])) for table in tables}
    return {t for p in prefixes for k in range(2, len(p) + 1) for t in combinations(p, k)}


def _total(products: Iterable[Names], weight: Weight) -> int:
    return sum(map(weight, products))


def _columns(products: Iterable[Names], widths: Mapping[str, int]) -> int:
    return sum(prod(widths[name] for name in names) for names in products)
