import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.variables import Family, Rows, Variable


def test_missing_is_one_code_more():
    assert [Variable("x", ("a", "b"), missing).codes for missing in (False, True)] == [2, 3]


@pytest.mark.parametrize("states", [("a", "a"), ("", "b", "")])
def test_a_state_that_stands_twice_is_refused(states):
    with pytest.raises(ValueError, match="'x': a state appears twice"):
        Variable("x", states)


def test_members_are_the_child_then_its_parents():
    assert Family("x").members == ("x",)
    assert Family("x", ("z", "y")).members == ("x", "z", "y")


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_a_choice_of_rows_counts_as_a_slice_does(first, length, beyond):
    last = first + length
    records = last + beyond
    assert Rows(3, first, last).count(records) == len(range(records)[first:last])
    assert Rows(3, first).count(records) == len(range(records)[first:])
    assert Rows().count(records) == records


@pytest.mark.parametrize(
    "rows", [Rows(0, -1), Rows(0, 5, 4), Rows(0, 0, 11), Rows(0, 11), Rows(-1)]
)
def test_places_beyond_the_records_are_refused(rows):
    with pytest.raises(ValueError, match="does not lie within 10 records"):
        rows.count(10)
