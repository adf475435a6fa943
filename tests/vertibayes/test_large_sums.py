"""Sums of squares beyond int64: exact, and variances right."""

import numpy as np
import pytest

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site import statistics
from vertibayes_protocols.site.statistics import MOST_SQUARES, LocalData, Numeric, exact_sum
from vertibayes_protocols.variables import Variable

TARGET, NUMBER = Variable("y", ("no", "yes")), Numeric("z", 0.0, 1.0)
SCHEMA = Schema(TARGET, {"z": NUMBER})
SPREAD = 0.005  # of numbers near the upper bound, whose squares are the largest


def records(count):
    z = np.where(np.arange(count) % 2, 0.99 - SPREAD, 0.99 + SPREAD)
    y = np.zeros(count, np.int8)
    return LocalData(SCHEMA.variables, {"y": y}, SCHEMA.numerics, {"z": z})


def wrapped(arrays):
    """Add up in int64, which wraps around."""
    return np.sum([array.astype(np.int64) for array in arrays], axis=0)


def test_sums_of_many_batches_are_exact_beyond_int64():
    batch = SCHEMA.measure(records(1000))
    many = exact_sum([batch * 8000] * 2)  # of 16 million records
    assert many.dtype == object and many.tolist() == [16_000 * v for v in batch.tolist()]
    assert wrapped([batch * 8000] * 2).tolist() != many.tolist(), "the control"
    assert exact_sum([batch, batch]).dtype == np.int64
    assert exact_sum([batch, batch * 0.5]).tolist() == (batch * 1.5).tolist()


def test_a_model_of_many_batches_has_the_variance_of_one(monkeypatch):
    batch = SCHEMA.measure(records(1000)) * 1000  # a million records

    def variance():
        model = NaiveBayes(SCHEMA)
        for _ in range(16):
            model.add_sums(batch)
        return model.sums_.tolist(), model.var_["z"][0]

    sums, found = variance()
    assert sums == [16 * v for v in batch.tolist()]
    assert found == pytest.approx(SPREAD**2, rel=1e-3)
    monkeypatch.setattr("vertibayes.naive_bayes.base.exact_sum", wrapped)
    assert variance()[1] != pytest.approx(SPREAD**2, rel=0.5), "the control"


def test_records_are_measured_in_pieces_that_fit(monkeypatch):
    """The largest squares of so many records are the last that fit: one more would not."""
    assert MOST_SQUARES * 2**40 < 2**63 <= (MOST_SQUARES + 1) * 2**40
    whole, nothing = SCHEMA.measure(records(1000)), SCHEMA.measure(records(0))
    monkeypatch.setattr(statistics, "MOST_SQUARES", 7)
    assert np.array_equal(SCHEMA.measure(records(1000)), whole)
    assert np.array_equal(SCHEMA.measure(records(0)), nothing) and not nothing.any()


@pytest.mark.laws
def test_the_variance_of_ten_million_records_is_that_of_a_thousand(monkeypatch):
    data = records(10_000_000)
    assert NaiveBayes(SCHEMA).fit(data).var_["z"][0] == pytest.approx(SPREAD**2, rel=1e-3)
    monkeypatch.setattr(statistics, "MOST_SQUARES", data.records)
    variance = NaiveBayes(SCHEMA).fit(data).var_["z"][0]
    assert variance != pytest.approx(SPREAD**2, rel=0.5), "the control: one sum in int64"
