"""Scores lie within their bound, and the bits of a value suffice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, xlogy

from vertibayes_protocols.queries.choices.precision import (
    MOST_MILLIONTHS,
    Precision,
    in_units,
    likelihood_bound,
    log_bound,
    score_bound,
)


def k2_score(table):
    """Return the K2 score of a table, axis 0 the child, in floating point."""
    r = len(table)
    return float(
        gammaln(table + 1).sum() - gammaln(table.sum(axis=0) + r).sum() + table[0].size * gammaln(r)
    )


def log_likelihood(table):
    """Return the largest log-likelihood of a table, axis 0 the child, in floating point."""
    totals = table.sum(axis=0)
    return float(xlogy(table, table).sum() - xlogy(totals, totals).sum())


@given(st.integers(2, 6), st.integers(1, 30), st.integers(0, 5000), st.randoms())
@settings(max_examples=60, deadline=None)
def test_scores_lie_within_their_bound(states, columns, records, random):
    generator = np.random.default_rng(random.getrandbits(32))
    share = generator.dirichlet(np.full(states * columns, generator.choice([0.01, 1.0])))
    table = generator.multinomial(records, share).reshape(states, columns)
    bound = score_bound(records, states, columns)
    assert -bound - 1e-6 <= k2_score(table) <= 1e-6
    assert -likelihood_bound(records, states) - 1e-6 <= log_likelihood(table) <= 1e-6
    assert log_bound(max(records, 1)) >= 10 * np.log(max(records, 1)) - 1e-9


def test_a_constant_is_rounded_to_the_nearest_unit():
    for bits in (12, 36):
        for millionths in (0, 1, -1, 333_333, -999_999, MOST_MILLIONTHS, -MOST_MILLIONTHS):
            away = Fraction(millionths, 10**6) - Fraction(in_units(millionths, bits), 1 << bits)
            assert abs(away) <= Fraction(1, 2 << bits)


@pytest.mark.parametrize("span", [1, 1000, 2**20, 2**40])
@pytest.mark.parametrize("records", [1, 10_000, 10**6])
def test_all_parts_of_a_value_fit_the_ring(span, records):
    ring, fraction = Precision.of(span, records)
    assert 1 + span.bit_length() + fraction <= ring.bits <= 64
    assert 12 <= fraction <= 36


def test_values_that_leave_no_precision_are_an_error():
    with pytest.raises(ValueError, match="too little precision"):
        Precision.of(2**56, 100)
