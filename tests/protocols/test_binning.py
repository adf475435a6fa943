from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protocols.site.binning import FEWEST_RECORDS, bin_edges, bin_names, bin_of, shortest_between

decimals = st.decimals(-(10**6), 10**6, places=4).map(Decimal.normalize)
tables = st.dictionaries(decimals, st.integers(1, 15), min_size=1, max_size=40)


def bins_of(values, counts, edges):
    """Return how many records each bin has."""
    sizes = [0] * (len(edges) + 1)
    for value, count in zip(values, counts, strict=True):
        sizes[bin_of(value, edges)] += count
    return sizes


def digits(value):
    return len(value.normalize().as_tuple().digits)


@given(tables, st.floats(0.01, 0.5))
def test_bins_are_large_and_their_edges_are_no_values_of_the_data(table, share):
    values = sorted(table)
    counts = [table[value] for value in values]
    edges = bin_edges(values, counts, share)
    sizes = bins_of(values, counts, edges)
    assert sum(sizes) == sum(counts)
    if edges:
        assert min(sizes) >= max(share * sum(counts), FEWEST_RECORDS)
    for low, high in pairwise([*values, None][: len(values)]):
        inside = [edge for edge in edges if low < edge < high]
        assert len(inside) <= 1
        assert all(edge == shortest_between(low, high) for edge in inside)
    assert not set(edges) & set(values)
    assert all(values[0] < edge < values[-1] for edge in edges)
    assert edges == sorted(set(edges)) and len(set(bin_names(edges))) == len(edges) + 1


@given(tables, st.floats(0.01, 0.5))
def test_no_bin_could_end_earlier(table, share):
    values = sorted(table)
    counts = [table[value] for value in values]
    edges = bin_edges(values, counts, share)
    for place, edge in enumerate(edges):
        last = max(value for value in values if value < edge)
        size = sum(table[v] for v in values if v < last and bin_of(v, edges) == place)
        assert size < max(share * sum(counts), FEWEST_RECORDS)


@pytest.mark.parametrize(
    ("counts", "share", "edges"),
    [
        ([10, 10, 10], 0.1, ["1.1", "2.1"]),
        ([10, 10, 9], 0.1, ["1.1"]),  # the last joins
        ([9, 1, 10], 0.1, ["2.1"]),
        ([10, 10, 10], 0.4, []),  # 20 and 10: one is left, and too small
        ([10, 10, 10, 10], 0.4, ["2.1"]),
        ([9, 9], 0.1, []),
        ([100], 0.1, []),
        ([5, 5, 3, 10], 0.1, ["2.1"]),
    ],
)
def test_known_edges(counts, share, edges):
    values = [Decimal(place + 1) for place in range(len(counts))]
    assert bin_edges(values, counts, share) == [Decimal(edge) for edge in edges]


@pytest.mark.parametrize(
    ("low", "high", "between"),
    [
        ("1", "2", "1.1"),
        ("1", "3", "2"),
        ("9", "11", "10"),
        ("0.95", "1.05", "1"),
        ("18.5", "24.9", "20"),
        ("99.9", "100.1", "100"),
        ("-1", "1", "0"),
        ("-0.5", "-0.25", "-0.4"),
        ("-3", "-1", "-2"),
        ("-2", "-1", "-1.9"),
        ("0", "0.001", "0.0001"),
        ("-0.001", "0", "-0.0009"),
        ("1E-30", "2E-30", "1.1E-30"),
        ("1E+20", "3E+20", "2E+20"),
        ("1.2345", "1.2346", "1.23451"),
    ],
)
def test_known_numbers_between_two(low, high, between):
    found = shortest_between(Decimal(low), Decimal(high))
    assert Decimal(low) < found < Decimal(high)
    assert digits(found) == digits(Decimal(between))


@given(decimals, decimals)
def test_nothing_shorter_lies_between(low, high):
    assume(low < high)
    found = shortest_between(low, high)
    assert low < found < high
    step = Decimal(1).scaleb(found.adjusted() - digits(found) + 2)  # a digit fewer
    shorter = found // step * step
    if digits(found) > 1:
        assert not any(low < other < high for other in (shorter, shorter + step.copy_sign(found)))


@pytest.mark.parametrize(("low", "high"), [("1", "1"), ("1", "1.0"), ("2", "1")])
def test_nothing_lies_between_a_number_and_itself(low, high):
    with pytest.raises(ValueError, match=f"nothing lies between {low} and {high}"):
        shortest_between(Decimal(low), Decimal(high))


def test_names_are_intervals():
    assert bin_names([]) == ("(-inf,inf)",)
    edges = [Decimal(edge) for edge in ("-1.5", "0E+2", "2E+3")]
    assert bin_names(edges) == ("(-inf,-1.5]", "(-1.5,0]", "(0,2000]", "(2000,inf)")
    assert [bin_of(Decimal(v), edges) for v in ("-9", "-1", "1999", "2001")] == [0, 1, 2, 3]
