from math import lgamma, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes.table_scores import free_parameters, k2_scores, log_likelihoods


def by_hand(table):
    """The K2 score, summed over the configurations present."""
    r, total = table.shape[0], 0.0
    for column in table.reshape(r, -1).T:
        if column.sum():
            total += lgamma(r) - lgamma(column.sum() + r) + sum(lgamma(a + 1) for a in column)
    return total


def test_by_hand():
    # One configuration (2, 1) of two states: 1! / 4! * 2! * 1! = 1/12.
    assert k2_scores([np.array([2, 1])])[0] == pytest.approx(log(1 / 12), abs=1e-12)


@given(st.lists(st.integers(0, 2**32), max_size=5))
def test_equals_the_sum_over_configurations_present(seeds):
    tables = [np.random.default_rng(s).integers(0, 4, (2 + s % 3, 1 + s % 2, 3)) for s in seeds]
    assert k2_scores(tables) == pytest.approx([by_hand(t) for t in tables], abs=1e-9)


def test_tables_that_differ_in_the_order_of_cells_tie_exactly():
    table = np.random.default_rng(1).integers(0, 10_000, (3, 7, 5))
    shuffled = table[::-1, [3, 1, 2, 0, 6, 5, 4]][:, :, ::-1]
    one, other = k2_scores([table, shuffled])
    assert one == other


def test_log_likelihood_of_fitted_cpts():
    table = np.array([[3, 0], [1, 0]])
    assert log_likelihoods([table])[0] == pytest.approx(3 * log(3 / 4) + log(1 / 4), abs=1e-12)


def test_free_parameters():
    assert free_parameters((3, 2, 4)) == 16 and free_parameters((2,)) == 1
