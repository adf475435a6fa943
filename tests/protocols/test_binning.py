from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vertibayes_protocols.site.binning import (
    FEWEST_RECORDS,
    Bin,
    bin_names,
    bin_of,
    bins_at,
    bins_of,
    equal_frequency,
    equal_width,
    shortest_between,
)

decimals = st.decimals(-(10**6), 10**6, places=4).map(Decimal.normalize)
integers = st.integers(-300, 300).map(Decimal)
shares = st.floats(0.01, 0.5)
methods = st.sampled_from([equal_frequency, equal_width])


def tables(values, least=1):
    """Return distinct values, ascending, and the records of each."""
    found = st.dictionaries(values, st.integers(1, 15), min_size=least, max_size=40)
    return found.map(lambda table: (sorted(table), [table[value] for value in sorted(table)]))


def sizes_of(values, counts, bins):
    """Return how many records each bin has."""
    sizes = [0] * len(bins)
    for value, count in zip(values, counts, strict=True):
        sizes[bin_of(value, bins)] += count
    return sizes


def edges_of(bins):
    """Return the edges of all bins but those of single values."""
    ends = {end for one in bins if not one.single for end in one}
    return ends - {None} - {one.low for one in bins if one.single}


def digits(value):
    return len(value.normalize().as_tuple().digits)


@given(tables(decimals, 2) | tables(integers, 2), shares, methods)
def test_every_value_has_a_bin_in_order_and_no_bin_is_small(table, share, method):
    bins = method(*table, share)
    sizes = sizes_of(*table, bins)
    assert sum(sizes) == sum(table[1])
    assert len(bins) == 1 or min(sizes) >= FEWEST_RECORDS
    places = [bin_of(value, bins) for value in table[0]]
    assert places == sorted(places)


@given(tables(decimals), shares)
def test_edges_are_no_values_of_the_data_unless_whole_numbers_follow_each_other(table, share):
    values, counts = table
    bins = equal_frequency(values, counts, share)
    whole = all(value == value.to_integral_value() for value in values)
    for edge in edges_of(bins):
        below = max(value for value in values if value <= edge)
        above = min(value for value in values if value > edge)
        assert edge == (below if whole and above - below == 1 else shortest_between(below, above))


@given(tables(integers, 2), shares, methods)
def test_edges_of_whole_numbers_are_whole(table, share, method):
    assert all(edge == edge.to_integral_value() for edge in edges_of(method(*table, share)))


@given(tables(decimals), shares)
def test_a_bin_that_names_a_value_is_of_more_records_than_a_bin_should_have(table, share):
    values, counts = table
    most = min(int(1 / share + 1e-9), sum(counts) // FEWEST_RECORDS)
    for one in equal_frequency(values, counts, share):
        assert not one.single or counts[values.index(one.low)] > sum(counts) / most


@pytest.mark.parametrize("records", [100, 101, 994, 1788, 17_898])
@pytest.mark.parametrize(("share", "number"), [(0.1, 10), (0.25, 4), (0.3, 3), (0.5, 2)])
def test_bins_without_ties_differ_by_one_record(records, share, number):
    values = [Decimal(place) for place in range(records)]
    bins = equal_frequency(values, [1] * records, share)
    sizes = sizes_of(values, [1] * records, bins)
    assert len(bins) == number and max(sizes) - min(sizes) <= 1


def test_a_frequent_value_has_a_bin_of_its_own_and_the_rest_are_cut_around_it():
    values, counts = [Decimal(place) for place in range(10)], [900, *[12] * 9]
    bins = equal_frequency(values, counts, 0.25)
    assert bin_names(bins) == ("eq_0", "from_0_to_3", "from_3_to_6", "gt_6")
    assert sizes_of(values, counts, bins) == [900, 36, 36, 36]
    around = [value - 3 for value in values]
    bins = equal_frequency(around, [20, 20, 20, 900, *[20] * 6], 0.25)
    assert bin_names(bins) == ("lt_0", "eq_0", "from_0_to_3", "gt_3")
    assert [bin_of(Decimal(v), bins) for v in ("-9", "0", "0.5", "3", "4")] == [0, 1, 2, 2, 3]


def test_the_rest_of_a_frequent_value_joins_it_if_it_is_small():
    values = [Decimal(place) for place in range(10)]
    assert len(equal_frequency(values, [900, *[1] * 9], 0.1)) == 1
    assert bin_names(equal_frequency(values[:4], [900, 4, 4, 4], 0.1)) == ("eq_0", "gt_0")
    around = equal_frequency(values, [1, 900, *[20] * 8], 0.5)
    assert bin_names(around) == ("le_1", "gt_1"), "nine hundred with the one below"


@given(tables(decimals, 2), st.integers(2, 20), methods)
def test_a_number_of_bins_is_as_many_as_its_share_gives(table, number, method):
    assert method(*table, number) == method(*table, 1 / number)


@pytest.mark.parametrize(
    ("counts", "share", "names"),
    [
        ([9, 12, 10], 0.3, ("le_2", "gt_2")),
        ([10, 10, 9], 0.1, ("le_1", "gt_1")),
        ([30, 30, 30, 30], 0.5, ("le_2", "gt_2")),
        ([9, 9], 0.1, ("all",)),
        ([9, 12, 9], 0.3, ("all",)),
    ],
)
def test_known_bins(counts, share, names):
    values = [Decimal(place + 1) for place in range(len(counts))]
    assert bin_names(equal_frequency(values, counts, share)) == names


def test_bins_of_equal_width_are_rounded_and_join_if_they_are_small():
    values = [Decimal(place) / 4 for place in range(401)]
    bins = equal_width(values, [1] * 401, 0.25)
    assert bin_names(bins) == ("le_25", "from_25_to_50", "from_50_to_75", "gt_75")
    values = [*values, Decimal(400)]
    names = bin_names(equal_width(values, [1] * 402, 0.1))
    assert names == ("le_40", "from_40_to_80", "gt_80"), "400 alone would be a bin"


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


# ---- names ---------------------------------------------------------------------------------------


def test_names_are_plain():
    bins = bins_at([Decimal(edge) for edge in ("-1.5", "0E+2", "2E+3")])
    assert bin_names(bins) == ("le_-1.5", "from_-1.5_to_0", "from_0_to_2000", "gt_2000")
    assert [bin_of(Decimal(v), bins) for v in ("-9", "-1", "0", "1999", "2001")] == [0, 1, 1, 2, 3]


@given(
    st.lists(decimals, min_size=1, max_size=8, unique=True).map(sorted),
    st.sets(st.integers(0, 7)),
)
def test_names_can_be_taken_back(edges, alone):
    bins = bins_at(edges)
    for place in sorted(alone & set(range(len(edges))), reverse=True):
        bins.insert(place + 1, Bin(edges[place], edges[place]))
    assert bins_of(bin_names(bins)) == bins


@given(tables(decimals) | tables(integers), shares)
def test_names_of_found_bins_can_be_taken_back(table, share):
    bins = equal_frequency(*table, share)
    assert bins_of(bin_names(bins)) == (bins if len(bins) > 1 else None)


@pytest.mark.parametrize(
    "names",
    [
        ("no", "yes"),
        ("le_5",),
        ("5_7", "8_9"),
        ("le_5", "from_7_to_9", "gt_9"),
        ("gt_5", "le_5"),
        ("le_5", "gt_5", "unknown"),
        ("le_5", "gt_5.0"),
        ("le_05", "gt_05"),
        ("le_5", "eq_5", "gt_5"),
        ("from_9_to_5", "gt_5"),
        ("le_5", "gt_6"),
        ("le_", "gt_"),
        ("le_5\n", "gt_5"),
    ],
)
def test_other_states_are_not_bins(names):
    assert bins_of(names) is None


def test_a_number_beside_single_values_is_in_no_bin():
    bins = bins_of(("eq_0", "eq_1", "gt_1"))
    assert [bin_of(Decimal(v), bins) for v in ("-1", "0", "0.5", "1", "7")] == [None, 0, None, 1, 2]
