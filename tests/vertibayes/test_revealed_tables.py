from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.test_counting import data_and_families
from vertibayes.counting import PlainCounter
from vertibayes.counting.revealed_tables import Asked, RevealedTables
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable


def asked(*members, missing=False, rows=Rows()):
    return Asked(Family(members[0], members[1:]), missing, rows)


def store_of(data, *revealed):
    """A store of tables that a plain counter has counted."""
    store, plain = RevealedTables(data.variables), PlainCounter(data)
    for one in revealed:
        (table,) = plain.tables([one.family], missing=one.missing, rows=one.rows)
        store.add(one, table)
    return store


@settings(max_examples=60)
@given(data_and_families(), data_and_families(), st.booleans(), st.booleans())
def test_whatever_a_store_answers_equals_the_counted_table(first, second, kept, missing):
    data, families = first
    store = store_of(data, *(Asked(family, kept, Rows()) for family in families))
    plain, answered = PlainCounter(data), 0
    names = set(data.variables)
    for family in (*families, *(f for f in second[1] if names.issuperset(f.members))):
        one = Asked(family, missing, Rows())
        if store.new([one]):
            with pytest.raises(KeyError):
                store.table(one)
        else:
            answered += 1
            table = store.table(one)
            assert np.array_equal(table, plain.tables([family], missing=missing)[0])
            assert table.flags.c_contiguous and table.dtype == np.int64
    assert answered or missing > kept


@settings(max_examples=25)
@given(data_and_families(), st.integers(1, 3), st.booleans())
def test_a_counter_asks_for_no_margin_of_what_it_has_or_asks_for(drawn, sites, missing):
    data, families = drawn
    parts = [Family(f.parents[0], f.parents[1:]) for f in families if f.parents]
    with federate(split_columns(data, min(sites, len(data.variables)))) as federation:
        counter = SecureCounter.of(federation)
        for batch in (parts + families, families + parts):
            tables = counter.tables(batch, missing=missing)
            for ours, plain in zip(
                tables, PlainCounter(data).tables(batch, missing=missing), strict=True
            ):
                assert np.array_equal(ours, plain)
        assert counter.calls == 1
        ledger = [frozenset(table.variables) for table in counter.ledger.tables]
    assert len(set(ledger)) == len(ledger)
    if missing or not any(variable.missing for variable in data.variables.values()):
        assert not any(a < b for a in ledger for b in ledger)


def test_each_order_of_axes_of_each_margin(alarm_data):
    names = list(alarm_data.variables)[:4]
    store = store_of(alarm_data, asked(*names))
    families = [Family(m[0], m[1:]) for size in range(1, 5) for m in permutations(names, size)]
    for family, table in zip(families, PlainCounter(alarm_data).tables(families), strict=True):
        assert np.array_equal(store.table(Asked(family, False, Rows())), table)


def test_a_table_over_fewer_records_does_not_answer_for_a_margin(gaps):
    """Summing over a variable that misses values leaves out records: the negative control."""
    misses, other = list(gaps.variables)[0], list(gaps.variables)[9]
    plain = PlainCounter(gaps)
    store = store_of(gaps, asked(misses, other))
    assert store.new([asked(other), asked(misses)]) == [asked(other)]
    wide, narrow = plain.tables([Family(other, (misses,)), Family(other)])
    assert not np.array_equal(wide.sum(axis=1), narrow)


def test_missing_values_as_a_state_answer_for_tables_without(gaps):
    a, b, c = list(gaps.variables)[:3]
    store = store_of(gaps, asked(a, b, c, missing=True))
    assert not store.new([asked(b), asked(c, a), asked(c, missing=True)])
    assert store.new([asked(a, rows=Rows(0, 0, 9))]), "of other records"
    assert store_of(gaps, asked(a, b)).new([asked(a, b, missing=True)])


def test_a_call_asks_once_for_what_contains_the_rest():
    names = "abcd"
    store = RevealedTables({name: Variable(name, ("0", "1")) for name in names})
    new = store.new(
        [asked("a"), asked("a", "b"), asked("b", "a"), asked("c", "b", "a"), asked("d")]
    )
    assert new == [asked("c", "b", "a"), asked("d")]


def test_an_empty_column_and_no_record():
    variables = {"a": Variable("a", ("x",)), "b": Variable("b", ("x", "y"), True)}
    data = SiteData(variables, {name: np.zeros(0, np.uint8) for name in variables})
    store = store_of(data, asked("a", "b", missing=True))
    assert store.table(asked("b")).tolist() == [0, 0]
