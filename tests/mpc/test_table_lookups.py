"""Table lookups: sums of rows as in the clear, at the stated cost; and wrong messages."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vertibayes_mpc.unit_vectors
from tests.tampering import changing, of_another_query, run_changing, shorter
from tests.worlds import pooled, world
from vertibayes_mpc.commitments import PartColumn, Selection, SharedColumn
from vertibayes_mpc.errors import DealReusedError, MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.table_lookups import (
    TableLookupPlan,
    deal_rows,
    open_rows,
    share_rows,
    show_rows,
)
from vertibayes_mpc.unit_vectors import MaskedIndices, UnitVectors


def site_program(holder, plan, tables):
    shares = yield from share_rows(holder, plan, tables)
    yield from show_rows(holder, plan, shares, "analyst")


def programs_of(w, plan, tables):
    """The programs of all parties."""
    programs = {s: site_program(w.holders[s], plan, tables) for s in plan.parties}
    if plan.is_dealt:
        programs["dealer"] = deal_rows(w.dealer_keys, plan)
    programs["analyst"] = open_rows(plan)
    return programs


def tables_of(plan, seed=1):
    generator = np.random.default_rng(seed)
    return [
        generator.integers(-(2**62), 2**62, (plan.rows(t), plan.columns))
        for t in range(len(plan.tables))
    ]


def in_the_clear(columns, records, plan, tables):
    """The sums of the rows of each record, from pooled codes: shape (columns, records)."""
    codes = pooled(columns, records)
    chosen = slice(None) if plan.selection.indices is None else plan.selection.indices
    total = np.zeros((plan.selection.records, plan.columns), np.int64)
    for axes, table in zip(plan.tables, tables, strict=True):
        shape = [columns[place][0] + 1 for place in axes]
        index = np.ravel_multi_index(tuple(codes[place][chosen] for place in axes), shape)
        total += table[index]  # wraps, as the ring does
    return total.T.view(np.uint64)


@st.composite
def worlds(draw):
    """Columns of few states at one to five sites, and the axes of some tables."""
    records, sites = draw(st.integers(1, 20)), draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for _ in range(draw(st.integers(1, 6))):
        width = draw(st.integers(1, 5))
        site = "abcde"[draw(st.integers(0, sites - 1))]
        columns.append((width, False, {site: generator.integers(0, width + 1, records).tolist()}))
    places = st.lists(st.integers(0, len(columns) - 1), min_size=1, max_size=3, unique=True)
    tables = draw(st.lists(places.map(tuple), min_size=1, max_size=4))
    indices = np.flatnonzero(generator.random(records) < 0.7) if draw(st.booleans()) else None
    return columns, records, tuple(tables), indices, draw(st.integers(1, 3))


@settings(max_examples=40, deadline=None)
@given(worlds(), st.sampled_from([200, 1 << 23]))
def test_the_sums_are_those_of_the_rows_in_the_clear(drawn, part_bytes):
    columns, records, axes, indices, width = drawn
    w = world(columns, records)
    plan = TableLookupPlan(b"query", Selection(w.commitments, indices), axes, width)
    tables = tables_of(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertibayes_mpc.unit_vectors, "PART_BYTES", part_bytes)
        outputs, transcript = run_all(programs_of(w, plan, tables))
    assert np.array_equal(outputs["analyst"], in_the_clear(columns, records, plan, tables))
    check_costs(plan, transcript)


def check_costs(plan, transcript):
    """Compare with what the plan says of its cost; the dealer receives nothing."""
    sent = Counter()
    for s in transcript:
        sent[s.sender == "dealer"] += s.message.values.nbytes
    assert (sent[True], sent[False]) == (plan.dealt_bytes, plan.sent_bytes)
    assert not [s for s in transcript if s.receiver == "dealer"]
    if plan.is_dealt:
        assert max(s.depth for s in transcript) <= 1 + len(plan.shared.parts) + 1


THREE = [
    (2, False, {"a": [0, 1, 2, 1]}),
    (1, False, {"b": [1, 0, 1, 1]}),
    (2, False, {"c": [2, 2, 0, 1]}),
]


def three():
    w = world(THREE, 4)
    plan = TableLookupPlan(b"query", Selection(w.commitments), ((0, 1, 2), (1, 0), (2,)), 2)
    return w, plan, tables_of(plan)


def test_a_column_of_several_holders_is_looked_up_by_their_parts():
    """A row of the first column is at no site; of the second column the sites have shares."""
    w = world(
        [(2, True, {"a": [0] * 4, "b": [0] * 4}), (3, False, {"a": [0] * 4, "b": [0] * 4})], 4
    )
    parts = {"a": [1, 2, 2, 2], "b": [2, 0, 2, 1]}
    shares = np.random.default_rng(1).integers(0, 2**24, 4).astype(np.uint32)
    codes = np.array([3, 0, 2, 1], np.uint32)
    halves = {"a": shares, "b": (codes - shares) % 2**24}
    for site, holder in w.holders.items():
        held = PartColumn(np.array(parts[site], np.uint8), missing=2, first=site == "a")
        holder.columns = {0: held, 1: SharedColumn({"codes": halves[site][None]})}
    plan = TableLookupPlan(b"query", Selection(w.commitments), ((0, 1),), 1)
    tables = tables_of(plan)
    outputs, _ = run_all(programs_of(w, plan, tables))
    expected = tables[0][np.array([1, 0, 2, 1]) * 4 + codes]
    assert np.array_equal(outputs["analyst"][0], expected[:, 0].view(np.uint64))


def test_labels_serve_one_lookup():
    w, plan, tables = three()
    run_all(programs_of(w, plan, tables))
    with pytest.raises(DealReusedError):
        next(share_rows(w.holders["a"], plan, tables))


@pytest.mark.parametrize(
    ("axes", "columns", "reason"),
    [
        (((),), 1, "one axis or more, each once"),
        (((0, 0),), 1, "one axis or more, each once"),
        (((0,),), 0, "at least one column, got 0"),
        (((0, 1, 2, 3),), 1, "a table has 10,000 rows; at most 4,096 are allowed"),
    ],
)
def test_a_plan_refuses_tables(axes, columns, reason):
    w = world([(9, False, {"a": [0]})] * 4, 1)
    with pytest.raises(ValueError, match=reason):
        TableLookupPlan(b"query", Selection(w.commitments), axes, columns)


def test_tables_of_other_shapes_are_refused():
    w, plan, tables = three()
    with pytest.raises(ValueError, match="tables must have the shapes"):
        next(share_rows(w.holders["a"], plan, tables[:2]))


@pytest.mark.parametrize(("kind", "sender"), [(MaskedIndices, "b"), (UnitVectors, "dealer")])
@pytest.mark.parametrize(
    ("change", "error"),
    [(shorter, MalformedMessageError), (of_another_query, UnexpectedMessageError)],
)
def test_a_message_of_a_wrong_size_or_label_blames_its_sender(kind, sender, change, error):
    with pytest.raises(error) as caught:
        run_changing(programs_of(*three()), changing(kind, change, sender))
    assert caught.value.party == sender
