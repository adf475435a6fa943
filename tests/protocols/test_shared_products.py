"""Tables of choices share prefixes: the same tables, at no higher cost, however they are given."""

from __future__ import annotations

from itertools import combinations
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes_protocols.queries.tables.shared_products import in_shared_order

WIDTHS = dict(zip("abcdefg", (1, 1, 2, 3, 4, 9, 20), strict=True))


def width(names):
    """Return the number of columns of a product."""
    return prod(WIDTHS[name] for name in names)


def products(tables):
    """Return the products of two variables or more of all prefixes."""
    prefixes = [sorted(table[:-1]) for table in tables]
    return {t for p in prefixes for k in range(2, len(p) + 1) for t in combinations(p, k)}


def sent(tables):
    """Return how many columns the products of tables have."""
    return sum(map(width, products(tables)))


TABLES = st.lists(
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True).map(tuple),
    unique_by=frozenset,
)


@given(TABLES)
@settings(deadline=None)
def test_tables_keep_their_variables_and_cost_no_more(tables):
    ordered = in_shared_order(tables, WIDTHS, width)
    assert list(map(frozenset, ordered)) == list(map(frozenset, tables))
    assert sent(ordered) <= sent(tables)


@given(TABLES, st.randoms())
@settings(deadline=None)
def test_the_order_of_variables_and_tables_makes_no_difference_to_the_cost(tables, random):
    """In the order of their variables with the widest first, tables cost the most."""
    worst = [tuple(sorted(table, reverse=True)) for table in tables]
    shuffled = random.sample(worst, len(worst))
    assert len({sent(in_shared_order(each, WIDTHS, width)) for each in (worst, shuffled)}) == 1


def test_wide_variables_are_the_last_of_their_tables():
    tables = [tuple(reversed(each)) for each in combinations("abcdefg", 3)]
    ordered = in_shared_order(tables, WIDTHS, width)
    assert sent(ordered) < sent(tables) / 2
    assert not any("g" in product for product in products(ordered))


def test_products_of_large_tables_serve_small_ones():
    ordered = in_shared_order([("c", "b", "a"), ("d", "a", "b", "c")], WIDTHS, width)
    assert {frozenset(ordered[0][:-1])} <= set(map(frozenset, products([ordered[1]])))
    assert ordered[1][-1] == "d"
