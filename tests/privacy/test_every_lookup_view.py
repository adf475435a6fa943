"""Exhaustively, on tiny rings: what all sites but one see of a lookup says nothing of the count.

Counts of two bits, values modulo four or two. A smaller coalition sees a part of this, the analyst
and the dealer see nothing. Beside it the unsafe variants: without any one of the masks, or with one
mask used twice, the same test must reject the view.
"""

from __future__ import annotations

import numpy as np
import pytest

import vertibayes_mpc.lookups.rounds
from tests.privacy.lookup_simulation import Case, Settings, is_simulatable, view_of
from tests.worlds import whole_bytes
from vertibayes_mpc.lookups.plan import Masks
from vertibayes_mpc.randomness import label

pytestmark = pytest.mark.laws


@pytest.fixture(autouse=True)
def elements_of_a_byte():
    with whole_bytes():
        yield


@pytest.fixture(autouse=True)
def large_chunks(monkeypatch):
    monkeypatch.setattr(vertibayes_mpc.lookups.rounds, "CHUNK", 1 << 16)


PAIRS = ((0, 0), (1, 2))
FIRST_OF_TWO = Case(("ab",), "a")
SECOND_OF_TWO = Case(("ab",), "b")
FIRST_OF_THREE = Case(("abc",), "a")
SECOND_OF_THREE = Case(("abc",), "b")
CASES = {
    "the first of two": FIRST_OF_TWO,
    "the second of two": SECOND_OF_TWO,
    "the first of three": FIRST_OF_THREE,
    "the second of three": SECOND_OF_THREE,
    "the first of three, twice": Case(("abc", "abc"), "a", data=PAIRS),
    "the first of three, in two parts": Case(("abc",), "a", data=PAIRS, parts=2),
    "the second of two, in two parts": Case(("ab",), "b", data=PAIRS, parts=2, bits=1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_view_does_not_depend_on_the_count(case):
    assert is_simulatable(CASES[case])


@pytest.mark.parametrize("case", [FIRST_OF_TWO, SECOND_OF_THREE])
def test_lookups_of_many_settings_are_as_good_as_many_lookups(case):
    generator, one = np.random.default_rng(3), Settings()
    view_of(case, (1,), one)
    values = {key: generator.integers(size, size=20) for key, size in one.sizes.items()}
    views = view_of(case, (1,), Settings(20, values))
    assert len(np.unique(views, axis=0)) > 15
    for place, view in enumerate(views):
        alone = {key: drawn[[place]] for key, drawn in values.items()}
        assert np.array_equal(view_of(case, (1,), Settings(1, alone))[0], view)


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(case):
    """Whether the view, with some streams of the coalition's own, depends on the count."""
    return any(not is_simulatable(case._replace(salt=str(salt))) for salt in range(1, 5))


MASKS = [
    *((FIRST_OF_TWO, mask) for mask in ("rotation", "left", "right", "product")),
    *((FIRST_OF_TWO, mask) for mask in ("high bits", "low bits", "cross", "sign", "signed")),
    *((SECOND_OF_TWO, mask) for mask in ("rotation", "left", "right", "product")),
    *((FIRST_OF_THREE, mask) for mask in ("rotation", "left", "right")),
    *((SECOND_OF_THREE, mask) for mask in ("rotation", "left", "right", "high", "low", "cross")),
]


@pytest.mark.parametrize(("case", "mask"), MASKS)
def test_a_view_without_one_of_the_masks_is_rejected(monkeypatch, case, mask):
    elements = Masks.elements

    def without(masks, purpose, piece):
        if purpose == mask:
            return np.zeros(piece.shape, piece.ring.dtype)
        return elements(masks, purpose, piece)

    monkeypatch.setattr(Masks, "elements", without)
    assert is_rejected(case)


def test_one_mask_for_a_sign_and_for_what_is_signed_is_rejected(monkeypatch):
    elements = Masks.elements

    def sign_twice(masks, purpose, piece):
        return elements(masks, "sign" if purpose == "signed" else purpose, piece)

    monkeypatch.setattr(Masks, "elements", sign_twice)
    assert is_rejected(FIRST_OF_TWO)


def without_batch(masks, purpose):
    return label("lookup", masks.plan.name, masks.part.start, purpose)


def without_start(masks, purpose):
    return label("lookup", masks.plan.name, masks.part.batch, purpose)


@pytest.mark.parametrize(
    ("named", "case"),
    [
        (without_batch, "the first of three, twice"),
        (without_start, "the first of three, in two parts"),
        (without_start, "the second of two, in two parts"),
    ],
)
def test_one_mask_for_two_batches_or_parts_is_rejected(monkeypatch, named, case):
    monkeypatch.setattr(Masks, "label", named)
    assert is_rejected(CASES[case])
