"""A counter over released tables answers from them alone."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vertibayes.test_choosing import records
from vertibayes.counting import PlainCounter
from vertibayes.counting.released import ReleasedCounter
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family, Rows

EXACT = Rule("exact")


def released(data, families, missing, rule=EXACT):
    plain = PlainCounter(data)
    tables = plain.tables(families, missing=missing)
    request = FamilyTables(tuple(families), missing, rule)
    return plain, ReleasedCounter(plain.variables, plain.records, request, tables)


@settings(max_examples=60, deadline=None)
@given(records(), st.booleans(), st.randoms())
def test_every_table_that_can_be_derived_is_that_of_the_records(data, missing, random):
    names = list(data.variables)
    random.shuffle(names)
    plain, counter = released(data, [Family(names[0], tuple(names[1:3]))], missing)
    for width in (1, 2, 3):
        for members in combinations(names, width):
            for as_state in (False, True):
                family = Family(members[-1], members[:-1])
                kept, others = set(members), set(names[:3]) - set(members)
                needed = others | (kept if as_state else set())
                dropped = any(data.variables[name].missing for name in needed)
                if not kept <= set(names[:3]) or (dropped and not missing):
                    with pytest.raises(ValueError, match="cannot be derived from the released"):
                        counter.check([family], missing=as_state)
                else:
                    (table,) = counter.tables([family], missing=as_state)
                    (expected,) = plain.tables([family], missing=as_state)
                    assert np.array_equal(table, expected) and table.flags.c_contiguous


def test_a_margin_over_a_variable_with_missing_values_needs_them_as_a_state(gaps):
    name = next(n for n, v in gaps.variables.items() if v.missing)
    other = next(n for n in gaps.variables if n != name)
    _, counter = released(gaps, [Family(other, (name,))], missing=False)
    with pytest.raises(ValueError, match=f"the table of {other} cannot be derived"):
        counter.tables([Family(other)])
    plain, counter = released(gaps, [Family(other, (name,))], missing=True)
    assert np.array_equal(counter.tables([Family(other)])[0], plain.tables([Family(other)])[0])


def test_the_margin_is_that_of_the_smallest_released_table(alarm_data):
    a, b, c, *_ = alarm_data.variables
    families = [Family(c, (b, a)), Family(a, (b,))]
    rule = Rule("cut", fewest=30)
    plain = PlainCounter(alarm_data)
    tables = [np.where(t < 30, 0, t) for t in plain.tables(families)]
    counter = ReleasedCounter(
        plain.variables, plain.records, FamilyTables(tuple(families), False, rule), tables
    )
    assert np.array_equal(counter.tables([Family(a)])[0], tables[1].sum(axis=1))
    assert counter.records == plain.records


def test_negative_counts_of_noise_count_as_0_after_they_are_added_up(alarm_data):
    a, b, *_ = alarm_data.variables
    _, counter = released(alarm_data, [Family(a, (b,))], False, Rule("laplace"))
    counter.released[0][...] = -5
    counter.released[0][0] += 9
    table, margin = counter.tables([Family(a, (b,)), Family(b)])
    assert (table[0] == 4).all() and not table[1:].any() and (counter.released[0] < 0).any()
    assert (margin == max(4 - 5 * (len(table) - 1), 0)).all()
    assert list(counter.revealed) == []


def test_what_cannot_be_answered_is_refused(alarm_data):
    a, b, c, *_ = alarm_data.variables
    plain, counter = released(alarm_data, [Family(a, (b,))], False)
    with pytest.raises(ValueError, match=f"the table of {a}, {c} cannot be derived"):
        counter.check([Family(a, (c,))])
    with pytest.raises(ValueError, match="released tables are of all 2000 records"):
        counter.tables([Family(a)], rows=Rows(last=10))
    with pytest.raises(ValueError, match="no variable 'x'"):
        counter.tables([Family("x")])
    assert np.array_equal(
        counter.tables([Family(a)], rows=Rows(last=plain.records))[0], plain.tables([Family(a)])[0]
    )
    with pytest.raises(ValueError, match="has the wrong shape: expected"):
        ReleasedCounter(plain.variables, 5, counter.request, [np.zeros((9, 9), int)])
