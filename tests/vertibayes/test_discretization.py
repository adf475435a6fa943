"""MDLP on counts of pre-bins equals MDLP on the values themselves."""

from collections import Counter as Tally
from decimal import Decimal
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.discretization import discretize, edges_of, mdlp_edges, pre_binned
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable


def entropy(classes):
    return -sum(n / len(classes) * log2(n / len(classes)) for n in Tally(classes).values())


def mdlp_of_values(pairs):
    """Fayyad and Irani on sorted (value, class) pairs: the last value below each cut."""
    classes = [label for _, label in pairs]
    best = None
    for i in range(1, len(pairs)):
        if pairs[i - 1][0] < pairs[i][0]:
            left, right = classes[:i], classes[i:]
            after = (i * entropy(left) + (len(pairs) - i) * entropy(right)) / len(pairs)
            if best is None or after < best[0] - 1e-12:
                best = after, i
    if best is None or entropy(classes) - best[0] <= 1e-12:
        return []
    after, i = best
    left, right = classes[:i], classes[i:]
    k, k1, k2 = (len(set(part)) for part in (classes, left, right))
    delta = log2(3**k - 2) - k * entropy(classes) + k1 * entropy(left) + k2 * entropy(right)
    if (entropy(classes) - after) * len(pairs) <= log2(len(pairs) - 1) + delta:
        return []
    return [*mdlp_of_values(pairs[:i]), pairs[i - 1][0], *mdlp_of_values(pairs[i:])]


def table_of(pairs, classes, values):
    table = np.zeros((classes, values), np.int64)
    for value, label in pairs:
        table[label, value] += 1
    return table


@st.composite
def pairs_of_values(draw):
    """Ties, several classes, and parts of the range that favour one class."""
    classes, values = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    records = draw(st.integers(0, 120))
    value = np.sort(generator.integers(0, values, records))
    favoured = generator.integers(0, classes, 4)[value * 4 // values]
    noise = generator.random(records) < draw(st.sampled_from([0, 0.1, 0.5, 1]))
    label = np.where(noise, generator.integers(0, classes, records), favoured)
    return classes, values, list(zip(value.tolist(), label.tolist(), strict=True))


@settings(max_examples=150, deadline=None)
@given(pairs_of_values())
def test_cuts_on_counts_are_those_on_values_where_each_value_is_a_pre_bin(drawn):
    classes, values, pairs = drawn
    edges = [Decimal(value) for value in range(values - 1)]
    cuts = mdlp_edges(table_of(pairs, classes, values), edges)
    assert [int(edge) for edge in cuts] == mdlp_of_values(sorted(pairs, key=lambda pair: pair[0]))


def test_the_property_covers_columns_with_several_cuts():
    """The oracle finds cuts, so that the property is not about empty lists alone."""
    pairs = [(value, (value // 10) % 2) for value in range(30) for _ in range(4)]
    assert mdlp_of_values(pairs) == [9, 19]
    assert mdlp_edges(table_of(pairs, 2, 30), [Decimal(v) for v in range(29)]) == (9, 19)


def test_a_column_that_is_independent_of_the_class_is_not_cut():
    table = np.array([[30] * 20, [10] * 20])
    assert mdlp_edges(table, [Decimal(v) for v in range(19)]) == ()
    drawn = np.random.default_rng(0).multinomial(2000, [0.025] * 40).reshape(2, 20)
    assert mdlp_edges(drawn, [Decimal(v) for v in range(19)]) == ()


@pytest.mark.parametrize("table", [[[5, 9, 20]], [[7], [8]], [[0, 0], [0, 0]], [[1, 0], [0, 0]]])
def test_one_class_one_bin_or_no_record_gives_no_cut(table):
    edges = [Decimal(v) for v in range(len(table[0]) - 1)]
    assert mdlp_edges(np.array(table), edges) == ()


def test_the_first_of_two_equal_cuts_wins():
    assert mdlp_edges(np.array([[40, 0, 0], [0, 0, 40]]), [Decimal(1), Decimal(2)]) == (1,)


def test_a_table_without_an_edge_between_each_two_pre_bins_is_refused():
    with pytest.raises(ValueError, match=r"got the shape \(2, 3\) and 1 edges"):
        mdlp_edges(np.zeros((2, 3), np.int64), [Decimal(1)])


def test_intervals_are_pre_bins_and_other_states_are_not():
    assert edges_of(Variable("x", ("le_1.5", "from_1.5_to_3", "gt_3"))) == (Decimal("1.5"), 3)
    assert edges_of(Variable("x", ("lt_0", "eq_0", "gt_0"))) is None
    assert edges_of(Variable("x", ("no", "yes"))) is None
    assert pre_binned({"x": Variable("x", ("le_1", "gt_1")), "y": Variable("y", ("a", "b"))}) == [
        "x"
    ]


def column(values):
    return TextColumn.of(["" if value is None else str(value) for value in values])


def data_of(missing=False):
    """A class, a column that predicts it, one that does not, and one that is mostly zero."""
    generator = np.random.default_rng(1)
    ages = generator.integers(18, 90, 1000).tolist()
    income = generator.normal(50, 20, 1000).round(1).tolist()
    gain = np.where(generator.random(1000) < 0.8, 0, generator.integers(1, 900, 1000)).tolist()
    ill = [("yes" if age > 55 else "no") for age in ages]
    if missing:
        ages[::7] = [None] * len(ages[::7])
        ill[::11] = [None] * len(ill[::11])
    columns = {"age": ages, "income": income, "gain": gain, "ill": ill}
    encoding = Encoding(bins=1 / 64, binning="intervals")
    return SiteData.from_text("all", {n: column(v) for n, v in columns.items()}, encoding)


@pytest.mark.parametrize("missing", [False, True])
def test_two_sites_cut_as_pooled_records_from_one_call(missing):
    data = data_of(missing)
    columns = pre_binned(data.variables)
    assert columns == ["age", "income", "gain"]
    pooled = discretize(PlainCounter(data), columns, "ill")
    assert len(pooled["age"]) == 1 and 53 <= pooled["age"][0] <= 57
    assert pooled["income"] == pooled["gain"] == ()
    with federate(split_columns(data, 2, 0)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        assert discretize(counter, columns, "ill") == pooled
        assert counter.calls == 1
        revealed = [table.variables for table in counter.ledger.tables]
    assert sorted(map(sorted, revealed)) == [["age", "ill"], ["gain", "ill"], ["ill", "income"]]


def test_missing_values_in_column_or_class_are_left_out():
    data = data_of(missing=True)
    kept = np.flatnonzero(
        (data.codes["age"] < len(data.variables["age"].states)) & (data.codes["ill"] < 2)
    )
    assert discretize(PlainCounter(data), ["age"], "ill") == discretize(
        PlainCounter(data.rows(kept)), ["age"], "ill"
    )


@pytest.mark.parametrize(
    ("columns", "target", "reason"),
    [
        (["age"], "q", "no variable 'q'"),
        (["ill"], "age", "ill: the states must be intervals"),
        (["age"], "age", "age is the class"),
    ],
)
def test_columns_that_cannot_be_cut_are_refused(columns, target, reason):
    with pytest.raises(ValueError, match=reason):
        discretize(PlainCounter(data_of()), columns, target)
