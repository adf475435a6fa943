"""Exhaustively, on tiny rings: what coalitions see of shuffled tables is simulated.

Coalitions are the analyst with all sites but one, these sites without the analyst, and the dealer
with the analyst. Beside them the unsafe variants, which the same test must reject.
"""

from __future__ import annotations

import numpy as np
import pytest

import vertibayes_mpc.commitments.columns
import vertibayes_mpc.shuffled_tables.site
from tests.privacy.shuffle_simulation import Case, asked, data_of, distributions, good_views
from tests.privacy.simulation import has_choices, is_simulatable
from tests.worlds import Parts, whole_bytes
from vertibayes_mpc.commitments import Operand
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.shuffled_tables.plan import Streams

pytestmark = pytest.mark.laws


@pytest.fixture(autouse=True)
def elements_of_a_byte():
    with whole_bytes():
        yield


@pytest.fixture(autouse=True)
def no_indicators(request, monkeypatch):
    """Columns have no indicators here, whose masks are in no other message, but where asked."""
    if "with_indicators" not in request.fixturenames:
        monkeypatch.setattr(Operand, "narrow", property(lambda operand: False))


@pytest.fixture
def with_indicators():
    """Have columns committed in all forms."""


def columns_of(*holders, records=2, widths=None, missing=(), codes=None):
    """Columns of one site each, all codes 1 or as given: a code of 0 is not varied."""
    widths, codes = widths or {}, codes or {}
    return [
        (widths.get(i, 1), i in missing, {site: codes.get(i, [1] * records)})
        for i, site in enumerate(holders)
    ]


PAIR = columns_of("a", "b")
TRIO = columns_of("a", "b", "c")
WIDE = columns_of("a", "b", widths={0: 3})
LONG = columns_of("a", "b", records=3, codes={1: [1, 0, 1]})
# A column of a and b by rows: of a's honest records, and of b's, two are open.
HYBRID_A = [(1, False, {"a": [1, 1, 0], "b": [0, 0, 1]}), (1, False, {"c": [1, 1, 1]})]
HYBRID_B = [(1, False, {"a": [0, 0], "b": [1, 1]}), (1, False, {"c": [1, 1]})]
GAP_A = columns_of("a", "b", missing=[0])
GAP_B = columns_of("a", "b", missing=[1])
HYBRID_GAP = [(1, True, {"a": [0, 0], "b": [1, 1]}), (1, False, {"c": [1, 1]})]
# Each of a and b may hold any of the rows that the other does not.
PARTS = [(1, True, Parts(a=[1, 1], b=[1, 1])), (1, False, {"c": [1, 1]})]
GAP_OF_C = [(1, False, {"a": [0, 0], "b": [1, 1]}), (1, True, {"c": [1, 0]})]
# Of two states and a missing value at a; of one state and a missing value at b.
GAPS = columns_of("a", "b", widths={0: 2}, missing=[0, 1], codes={0: [2, 2], 1: [1, 0]})
BOTH = columns_of("a", "b", widths={0: 2}, missing=[0, 1], codes={0: [2, 2], 1: [1, 1]})
ONE_RECORD = columns_of("a", "b", records=1, widths={0: 2}, missing=[0, 1], codes={0: [2]})

CASES = {
    "a pair, first": Case(PAIR, [(0, 1)], "analyst", "a"),
    "a pair, last": Case(PAIR, [(0, 1)], "analyst", "b"),
    "a pair of three records, first": Case(LONG, [(0, 1)], "analyst", "a"),
    "a wide column, first": Case(WIDE, [(0, 1)], "analyst", "a", bits=3),
    "axes the other way round": Case(PAIR, [(1, 0)], "analyst", "b"),
    "three sites, first": Case(TRIO, [(0, 1, 2)], "analyst", "a", bits=3),
    "three sites, second": Case(TRIO, [(0, 1, 2)], "analyst", "b", bits=3),
    "three sites, last": Case(TRIO, [(0, 1, 2)], "analyst", "c", bits=3),
    "two tables, first then last": Case(PAIR, [(0, 1), (1, 0)], "analyst", "a"),
    "a repeated table, last then first": Case(PAIR, [(0, 1), (0, 1)], "analyst", "b"),
    "two tables of three": Case(TRIO, [(0, 1), (1, 2), (0, 2)], "analyst", "a"),
    "not in the chain": Case(TRIO, [(0, 1)], "analyst", "c"),
    "hybrid, first": Case(HYBRID_A, [(0, 1)], "analyst", "a"),
    "hybrid, second": Case(HYBRID_B, [(0, 1)], "analyst", "b"),
    "hybrid, last": Case(HYBRID_B, [(0, 1)], "analyst", "c"),
    "some records, first": Case(LONG, [(0, 1)], "analyst", "a", indices=(0, 2)),
    "some records, last": Case(columns_of("a", "b", records=3), [(0, 1)], "analyst", "b",
                               indices=(0, 2)),
    "missing as a state, first": Case(GAP_A, [(0, 1)], "analyst", "a", missing=True),
    "missing as a state, last": Case(GAP_B, [(0, 1)], "analyst", "b", missing=True),
    "sites, first": Case(PAIR, [(0, 1)], "sites", "a"),
    "sites, last": Case(PAIR, [(0, 1)], "sites", "b"),
    "three sites alone, first": Case(TRIO, [(0, 1, 2)], "sites", "a", bits=3),
    "three sites alone, second": Case(HYBRID_B, [(0, 1)], "sites", "b"),
    "three sites alone, last": Case(HYBRID_B, [(0, 1)], "sites", "c"),
    "dealer and analyst": Case(PAIR, [(0, 1)], "dealer"),
    "dealer and analyst, three records": Case(LONG, [(0, 1)], "dealer"),
    "dealer and analyst, two tables": Case(PAIR, [(0, 1), (1, 0)], "dealer"),
    "dealer and analyst, hybrid": Case(HYBRID_B, [(0, 1)], "dealer"),
    "dealer and analyst, gaps": Case(BOTH, [(0, 1)], "dealer", flag_bits=8),
    "gap at the first": Case(GAP_A, [(0, 1)], "analyst", "a", bits=1, flag_bits=2),
    "gap at the other, last": Case(GAP_A, [(0, 1)], "analyst", "b", bits=1),
    "gap at the other, first": Case(GAP_B, [(0, 1)], "analyst", "a", bits=1, flag_bits=2),
    "gap at the last": Case(GAP_B, [(0, 1)], "analyst", "b", bits=1),
    "gap of a hybrid column, second": Case(HYBRID_GAP, [(0, 1)], "analyst", "b", bits=1),
    "rows of two holders, second": Case(PARTS, [(0, 1)], "analyst", "b", bits=1),
    "rows of two holders, sites alone": Case(PARTS, [(0, 1)], "sites", "b", bits=1),
    "rows of two holders as states, first": Case(PARTS, [(0, 1)], "analyst", "a", missing=True),
    "rows of two holders, dealer and analyst": Case(PARTS, [(0, 1)], "dealer", missing=True),
    "gap of another, second": Case(GAP_OF_C, [(0, 1)], "analyst", "b", bits=1),
    "gaps of both, first": Case(GAPS, [(0, 1)], "analyst", "a"),
    "gaps of both, last": Case(GAPS, [(0, 1)], "analyst", "b"),
    "gaps of one record, first": Case(ONE_RECORD, [(0, 1)], "analyst", "a", flag_bits=2),
    "gaps of one record, last": Case(ONE_RECORD, [(0, 1)], "analyst", "b", flag_bits=2),
    "gap, sites alone, first": Case(GAP_A, [(0, 1)], "sites", "a", bits=1),
    "gap, sites alone, last": Case(GAP_B, [(0, 1)], "sites", "b", bits=1),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_view_is_simulated_from_the_opened_tables(case):
    found = distributions(CASES[case])
    assert has_choices(found)
    assert is_simulatable(found)


def test_a_view_with_indicators_is_simulated(with_indicators):
    found = distributions(CASES["a pair, last"])
    assert has_choices(found)
    assert is_simulatable(found)


@pytest.mark.parametrize("case", ["a pair, last", "some records, first", "gaps of both, last"])
def test_a_run_of_many_settings_is_as_good_as_many_runs(case):
    case, generator = CASES[case], np.random.default_rng(3)
    columns = list(data_of(case))[1]
    sizes = asked(case, columns, generator)
    values = {key: generator.integers(size, size=60) for key, size in sizes.items()}
    views, good, _ = good_views(case, columns, values)
    assert len(np.unique(views, axis=0)) > 5
    for view, setting in zip(views, np.flatnonzero(good), strict=True):
        alone = {key: drawn[[setting]] for key, drawn in values.items()}
        assert np.array_equal(good_views(case, columns, alone)[0], view[None])


# ---- unsafe variants, which must be rejected -----------------------------------------------------


def is_rejected(case):
    """Whether the view, with some streams of the coalition's own, is not simulatable."""
    salted = (case._replace(salt=str(salt)) for salt in range(4))
    return any(not is_simulatable(distributions(each)) for each in salted)


@pytest.mark.parametrize("case", ["a pair, first", "a pair, last", "hybrid, second"])
def test_records_that_keep_their_order_are_rejected(monkeypatch, case):
    monkeypatch.setattr(Streams, "order", lambda s, _: np.arange(s.plan.selection.records))
    assert is_rejected(CASES[case])


def test_one_order_for_two_tables_is_rejected(monkeypatch):
    """Of both of a's columns with b's: together they tell which records have which two codes."""

    def one_order(streams, _):
        name = label("order", streams.plan.label)
        return streams.key.permutation(name, streams.plan.selection.records)

    monkeypatch.setattr(Streams, "order", one_order)
    columns = columns_of("a", "a", "b", "c")
    families = [(0, 2), (2, 3), (1, 2)]  # a is the first of both its chains
    assert is_rejected(Case(columns, families, "analyst", "a"))


def test_a_biased_order_is_rejected(monkeypatch):
    """Sort keys of one bit, ties in the order of the records."""

    def biased(streams, table):
        records = streams.plan.selection.records
        keys = streams.key.elements(Ring(1), streams.label("order", table), (records,))
        size = records // streams.key.secret.settings
        blocks = keys.reshape(-1, size)
        return (
            blocks.argsort(axis=1, kind="stable") + size * np.arange(len(blocks))[:, None]
        ).ravel()

    monkeypatch.setattr(Streams, "order", biased)
    assert is_rejected(CASES["a pair, first"])


def zeros_of(method, *zeroed):
    """Return a method of streams whose vectors at some places are zeros."""

    def changed(streams, table, *more):
        drawn = method(streams, table, *more)
        if not zeroed:
            return np.zeros_like(drawn)
        return [v * v.dtype.type(i not in zeroed) for i, v in enumerate(drawn)]

    return changed


def test_codes_handed_on_without_a_new_mask_are_rejected(monkeypatch):
    monkeypatch.setattr(Streams, "masks", zeros_of(Streams.masks, 0))
    assert is_rejected(CASES["three sites, second"])


def test_one_mask_for_two_columns_is_rejected(monkeypatch):
    def without_id(purpose, context, _, form):
        return label(purpose, context, form)

    monkeypatch.setattr(vertibayes_mpc.commitments.columns, "label", without_id)
    assert is_rejected(Case(columns_of("a", "a", "b"), [(0, 2)], "analyst", "a"))


def test_a_holder_that_keeps_no_share_of_the_masks_is_rejected(monkeypatch):
    """The first and the last have the masks and the masked codes: they read the table."""
    monkeypatch.setattr(Streams, "share", zeros_of(Streams.share))
    assert is_rejected(CASES["three sites alone, second"])


def test_codes_that_are_not_sealed_are_rejected(monkeypatch):
    monkeypatch.setattr(Streams, "seal", lambda _, __, count: np.arange(count))
    assert is_rejected(CASES["dealer and analyst"])


def test_shares_without_zero_shares_are_rejected(monkeypatch):
    """The dealer knows the holders' shares: it finds the seal's order in what they open."""
    monkeypatch.setattr(
        vertibayes_mpc.shuffled_tables.site,
        "zero_share",
        lambda party, peers, ring, name, count: np.zeros(count, ring.dtype),
    )
    assert is_rejected(CASES["dealer and analyst"])


def test_tags_opened_without_a_mask_are_rejected(monkeypatch):
    """The tags of incomplete records, which the others know, tell the honest site's order."""
    monkeypatch.setattr(Streams, "masks", zeros_of(Streams.masks, 1))
    assert is_rejected(CASES["gap at the last"]._replace(flag_bits=1))


def test_noise_sent_without_a_mask_is_rejected(monkeypatch):
    monkeypatch.setattr(Streams, "noise_mask", zeros_of(Streams.noise_mask))
    assert is_rejected(CASES["gap at the last"])


def test_noise_of_the_missing_site_alone_is_rejected(monkeypatch):
    """It knows its own noise: another tag says that the other site misses a value too."""
    drawn = Streams.noise

    def lone(streams, table, place):
        noise = drawn(streams, table, place)
        holders = streams.plan.commitments.operands[place].holders
        return noise if set(holders) & set(streams.key.pair) else np.zeros_like(noise)

    monkeypatch.setattr(Streams, "noise", lone)
    assert is_rejected(CASES["gaps of one record, first"])
