"""How many records are alone in a revealed cell: exactly, or at least."""

import numpy as np
import pytest

from vertibayes.report.disclosure import KnownRecords, disclosure
from vertibayes_protocols.variables import Rows

A, B = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 1, 2, 3])  # 3 is a missing value
CODES = {"a": A, "b": B}
HALVES = {Rows(1, 0, 3): np.array([0, 2, 4]), Rows(1, 3): np.array([1, 3, 5])}


def counted(*names, rows=Rows()):
    lengths = {"a": 3, "b": 3}
    places = HALVES.get(rows, np.arange(6))
    table = np.zeros([lengths[name] for name in names], np.int64)
    for place in places:
        cell = tuple(int(CODES[name][place]) for name in names)
        if all(code < lengths[name] for code, name in zip(cell, names, strict=True)):
            table[cell] += 1
    return names, rows, table


@pytest.mark.parametrize(
    ("tables", "cells", "exactly", "at_least"),
    [([], 0, 0, 0),
     ([counted("a")], 1, 1, 1),  # record 5
     ([counted("b")], 2, 2, 2),  # records 0 and 4
     ([counted("a", "b"), counted("b", "a")], 6, 3, 3),  # records 0, 1 and 4, twice
     ([counted("a"), counted("b"), counted("a", "b")], 6, 4, 3),
     ([counted("a", rows=half) for half in HALVES], 4, 4, 4)],
)  # fmt: skip
def test_records_are_counted_once(tables, cells, exactly, at_least):
    known = KnownRecords(CODES, HALVES.get)
    exact, bound = disclosure(tables, 6, known), disclosure(tables, 6)
    assert (exact.cells, exact.records, exact.exact) == (cells, exactly, True)
    assert (bound.cells, bound.records, bound.exact) == (cells, at_least, False)
    assert exact.share == exactly / 6


def test_a_table_of_other_records_leaves_the_bound():
    names, rows, table = counted("a")
    other = KnownRecords(CODES | {"a": A[::-1] * 0})
    assert disclosure([(names, rows, table)], 6, other) == disclosure([(names, rows, table)], 6)


def test_too_many_lookups_leave_the_bound(monkeypatch):
    monkeypatch.setattr("vertibayes.report.disclosure.MOST_LOOKUPS", 11)
    tables = [counted("a"), counted("b")]
    assert disclosure(tables[:1], 6, KnownRecords(CODES)).exact
    assert not disclosure(tables, 6, KnownRecords(CODES)).exact


def test_a_table_with_an_axis_that_is_no_variable_makes_it_a_bound():
    first, second = HALVES
    scores = ("log odds of b", "b"), second, np.array([[1, 0], [1, 1]])
    found = disclosure([counted("a", "b", rows=first), scores], 6, KnownRecords(CODES, HALVES.get))
    alone = int((counted("a", "b", rows=first)[2] == 1).sum())
    assert (found.cells, found.records, found.exact) == (alone + 3, alone + 3, False)
    whole = disclosure(
        [counted("a"), counted("b"), counted("a", "b"), scores], 6, KnownRecords(CODES, HALVES.get)
    )
    assert (whole.records, whole.exact) == (4, False), "what is known of the others is kept"
