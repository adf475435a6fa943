from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.budget import Cost
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.variables import Rows


def refuses(check, *arguments):
    """Return the reason of a refusal, None if there is none."""
    try:
        check(*arguments)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "name", ["most_variables", "fewest_records", "most_row_sets", "most_cells"]
)
@pytest.mark.parametrize("number", [0, -3])
def test_numbers_below_one_are_refused(name, number):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got {number}"):
        Policy(**{name: number})


@pytest.mark.parametrize("name", ["most_epsilon", "most_delta", "most_scores"])
@pytest.mark.parametrize("number", [-1, float("nan")])
def test_budgets_below_zero_are_refused(name, number):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 0, got {number}"):
        Policy(**{name: number})


@pytest.mark.parametrize("value", [None, "1", Decimal(0), [1, 2], np.array(1)])
@pytest.mark.parametrize("name", ["fewest_records", "most_epsilon", "most_memory"])
def test_limits_that_are_not_numbers_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be at least [01], got"):
        Policy(**{name: value})


def test_sums_without_noise_are_refused_unless_they_are_allowed():
    assert "does not set exact_sums" in refuses(Policy().check_exact)
    assert refuses(Policy(exact_sums=True).check_exact) is None


@pytest.mark.parametrize(
    ("spent", "cost", "reason"),
    [
        ((0.0, 0.0), (1.0, 1e-5), None),
        ((0.7, 0.0), (0.1 + 0.2, 0.0), None),  # which is .30000000000000004
        ((0.7, 0.0), (0.31, 0.0), "costs epsilon 0.31: 0.3 is left of most_epsilon = 1"),
        ((0.0, 9e-6), (0.1, 2e-6), "costs delta 2e-06: 1e-06 is left of most_delta = 1e-05"),
        ((3.0, 0.0), (0.1, 0.0), "costs epsilon 0.1: 0 is left"),  # the policy was stricter later
    ],
)
def test_a_release_over_the_budget_is_refused_and_what_is_left_is_named(spent, cost, reason):
    found = refuses(Policy().check_budget, Cost.of(*spent), Cost.of(*cost))
    assert found is None if reason is None else reason in found


def test_a_policy_of_ones_is_none_of_the_smallest_but_a_policy():
    policy = Policy(most_variables=1, fewest_records=1, most_row_sets=1)
    assert refuses(policy.check_records, Rows(0, 0, 1), 2) is None


def test_all_variables_are_shown_or_those_that_are_named():
    assert Policy().shows("x")
    assert [Policy(variables=("x",)).shows(v) for v in "xy"] == [True, False]
    assert not Policy(variables=()).shows("x")


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ([], None),
        ([(3, 60), (1, 40)], None),
        ([(1, 2), (4, 2)], "a table of 4 variables, at most 3"),
        ([(3, 60), (1, 41)], "tables of 101 cells, at most 100"),
        ([(1, 101)], "tables of 101 cells"),
    ],
)
def test_tables_that_are_wide_or_large_together_are_refused(tables, reason):
    found = refuses(Policy(most_variables=3, most_cells=100).check_tables, tables)
    assert found is None if reason is None else reason in found


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (Rows(), None),
        (Rows(0, 0, 100), None),
        (Rows(0, 0, 90), None),
        (Rows(5, 90), None),
        (Rows(0, 0, 91), "leave out 9, and at least 10"),
        (Rows(0, 1), "leave out 1, and"),
        (Rows(0, 5, 95), None),
        (Rows(0, 5, 96), "leave out 9, and"),
        (Rows(0, 0, 9), "tables over 9 records, at least 10"),
        (Rows(0, 91), "tables over 9 records"),
        (Rows(0, 50, 50), "tables over 0 records"),
        (Rows(0, 0, 101), "does not lie within 100 records"),
        (Rows(-1), "does not lie within 100 records"),
    ],
    ids=str,
)
def test_tables_over_or_without_few_records_are_refused(rows, reason):
    found = refuses(Policy().check_records, rows, 100)
    assert found is None if reason is None else reason in found


@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_what_is_answered_is_large_and_so_is_what_is_left_out(fewest, records, first, last):
    reason = refuses(Policy(fewest_records=fewest).check_records, Rows(0, first, last), records)
    chosen, out = last - first, records - (last - first)
    within = first <= last <= records
    assert (reason is None) == (within and chosen >= fewest and (out == 0 or out >= fewest))


def test_a_variable_that_is_not_shown_is_refused_by_name():
    policy = Policy(["age", "smoker"])
    policy.check_shown(["smoker", "age"])
    with pytest.raises(ValueError, match=r"^it does not show income, name"):
        policy.check_shown(["age", "income", "name"])
