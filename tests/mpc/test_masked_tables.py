from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tampering import changing, longer, run_changing
from tests.worlds import columns_of_sites, plain_tables, world
from vertibayes_mpc.commitments import Commitments, Operand, Selection, commit
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    UnexpectedMessageError,
)
from vertibayes_mpc.masked_tables import (
    Group,
    Plan,
    count_tables,
    deal_tables,
    open_tables,
    share_tables,
)
from vertibayes_mpc.masked_tables.basis import tables_of
from vertibayes_mpc.masked_tables.block import Correction, Masked, Part
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.sharing import Share


@st.composite
def splits(draw):
    """Columns over sites, some of them held by several, with groups to count."""
    columns, records, chosen = draw(columns_of_sites(4, st.integers(1, 3)))
    order = st.permutations(range(len(columns)))
    groups = []
    for places in draw(st.lists(order, min_size=1, max_size=4)):
        size = draw(st.integers(0, min(3, len(columns) - 1)))
        many = draw(st.integers(1, 3))
        groups.append(Group(tuple(places[:size]), tuple(places[size : size + many])))
        if not size:
            groups[-1] = Group((places[0],))
    return columns, records, groups, chosen


@settings(max_examples=150, deadline=None)
@given(splits(), st.sampled_from([16, 32]), st.booleans())
def test_opened_tables_equal_pooled_counts(split, bits, missing):
    columns, records, groups, chosen = split
    w = world(columns, records, bits)
    w.commit()
    plan = w.plan(groups, missing, chosen, b"" if chosen is None else b"sample")
    tables, transcript = w.count(plan)
    expected = plain_tables(columns, records, groups, missing, chosen)
    assert len(tables) == len(expected)
    for table, wanted in zip(tables, expected, strict=True):
        assert table.dtype == np.int64 and table.flags.c_contiguous
        assert np.array_equal(table, wanted)
    to_analyst = [s for s in transcript if s.receiver == "analyst"]
    assert sorted(s.sender for s in to_analyst) == list(plan.parties)
    assert all(type(s.message) is Share for s in to_analyst)
    assert max(s.depth for s in transcript) <= plan.rounds
    assert not [s for s in transcript if s.receiver == "dealer"]


@settings(max_examples=60, deadline=None)
@given(splits(), st.booleans())
def test_the_holders_of_a_table_alone_share_its_cells(split, missing):
    columns, records, groups, chosen = split
    w = world(columns, records)
    w.commit()
    name = b"" if chosen is None else b"sample"
    plan = w.plan(groups, missing, chosen, name)
    programs = {site: share_tables(w.holders[site], plan) for site in plan.parties}
    programs["dealer"] = deal_tables(w.dealer_keys, plan)
    shares, transcript = run_all(programs)
    total = sum(shares[site] for site in plan.parties)
    expected = plain_tables(columns, records, groups, missing, chosen)
    by_site = {site: tables_of(plan, shares[site]) for site in plan.parties}
    for table, cells in zip(expected, tables_of(plan, total), strict=True):
        assert np.array_equal(table, cells)
    members = [m for g in groups for m in ([(*g.prefix, z) for z in g.lasts] or [g.prefix])]
    for site, tables in by_site.items():
        for places, table in zip(members, tables, strict=True):
            assert not table.any() or any(site in columns[i][2] for i in places)
    assert max((s.depth for s in transcript), default=0) <= plan.rounds - 1


def three_sites(records=20):
    generator = np.random.default_rng(5)
    columns = [(2, False, {s: generator.integers(0, 3, records)}) for s in "abc"]
    w = world(columns, records)
    return w, w.commit()


def test_the_messages_of_a_commitment():
    w, transcript = three_sites()
    assert len(w.commitments.sites) == 3
    links = Counter((s.sender, s.receiver) for s in transcript)
    assert links == {(p, q): 2 for p in "abc" for q in "abc" if p != q}  # two blocks of rows
    assert {type(s.message) for s in transcript} == {Columns}


def test_the_messages_of_a_pair_table_are_none_of_record_length():
    w, _ = three_sites()
    _, transcript = w.count(w.plan([Group((0,), (1,))]))
    sent = [(s.sender, s.receiver, type(s.message), s.message.values.size) for s in transcript]
    assert sorted(sent, key=str) == [
        ("a", "analyst", Share, 18),  # bytes
        ("b", "analyst", Share, 18),
        ("dealer", "b", Correction, 8),
    ]


def bytes_of_an_extension(records):
    """Count a table of three sites over some records; return the bytes of all messages."""
    columns = [(1, False, {site: np.arange(records) % (place + 2) == 0}) for place, site in
               enumerate("abc")]  # fmt: skip
    stream = lambda a, b: StreamKey(label("key", a, b))  # noqa: E731
    w = world(columns, records, Ring.holding(records).bits, 1 << 15, stream)
    sent = w.commit()
    tables, counted = w.count(w.plan([Group((0, 1), (2,))]))
    assert tables[0].sum() == records
    return sum(s.message.values.nbytes for s in (*sent, *counted))


def test_bytes_grow_with_the_records_and_have_no_cliff():
    """At 65,536 records the elements of counts become wider: by a quarter, not twice as wide."""
    assert bytes_of_an_extension(66_000) < 1.26 * bytes_of_an_extension(65_000)


def test_the_messages_of_an_extension():
    w, _ = three_sites()
    plan = w.plan([Group((0, 1), (2,))])
    _, transcript = w.count(plan)
    assert Counter((s.sender, s.receiver, type(s.message)) for s in transcript) == {
        ("a", "b", Part): 2,  # a's part of the product of a and b, for each block of rows
        ("dealer", "b", Part): 2,
        ("b", "c", Masked): 2,
        ("dealer", "c", Correction): 1,
        **{(site, "analyst", Share): 1 for site in "abc"},
    }
    assert plan.rounds == 2 * 2 + 1 + 1  # a bound: blocks, and parties, overlap
    assert max(s.depth for s in transcript) <= plan.rounds


def test_rounds_do_not_depend_on_the_number_of_tables():
    generator = np.random.default_rng(5)
    columns = [(2, False, {"abc"[i % 3]: generator.integers(0, 3, 16)}) for i in range(12)]
    w = world(columns, 16)
    few = w.plan([Group((0, 1), (2,))])
    many = w.plan([Group((i, j), (k,)) for i in range(12) for j in range(i) for k in range(j)])
    assert few.rounds == 4
    assert many.rounds == 5  # some have two columns of one site, multiplied there and sent


def test_columns_of_one_site_are_multiplied_there():
    generator = np.random.default_rng(5)
    columns = [(1, False, {site: generator.integers(0, 2, 16)}) for site in "aab"]
    w = world(columns, 16)
    w.commit()
    _, transcript = w.count(w.plan([Group((0, 1), (2,))]))
    assert not [s for s in transcript if type(s.message) is Part]


def test_a_query_asked_again_is_under_new_masks():
    w, _ = three_sites()
    (first, sent), (again, later) = (w.count(w.plan([Group((0, 1), (2,))])) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    key = lambda s: (s.sender, s.receiver, s.depth)  # noqa: E731
    for a, b in zip(sorted(sent, key=key), sorted(later, key=key), strict=True):
        assert not np.array_equal(a.message.values, b.message.values)


def test_a_number_that_does_not_ascend_is_refused_before_anything_is_sent():
    w, _ = three_sites()
    old, new = (w.plan([Group((0, 1), (2,))]) for _ in range(2))
    w.count(new)
    for plan in (new, old):
        for site in plan.parties:
            with pytest.raises(DealReusedError, match="numbers must increase"):
                next(count_tables(w.holders[site], plan, "analyst"))


@pytest.mark.parametrize(
    ("kind", "sender"),
    [(Part, "a"), (Part, "dealer"), (Masked, "b"), (Correction, "dealer"), (Share, "c")],
)
def test_a_message_of_a_wrong_shape_names_its_sender(kind, sender):
    """One cell too many."""
    w, _ = three_sites()
    plan = w.plan([Group((0, 1), (2,))])
    with pytest.raises(MalformedMessageError, match="expected") as caught:
        run_changing(w.programs(plan), changing(kind, longer, sender))
    assert caught.value.party == sender


def test_a_site_that_is_waited_for_is_named():
    w, _ = three_sites()
    plan = w.plan([Group((0,), (1,))])
    with pytest.raises(ProtocolError, match="a, b: does not go on; analyst waits"):
        run_all({"analyst": open_tables(plan)})


def test_a_site_that_commits_in_another_study_is_named():
    w, _ = three_sites()
    other = world([(1, False, {s: np.zeros(20)}) for s in "abc"], 20)
    programs = {s: commit(w.holders[s]) for s in "ab"} | {"c": commit(other.holders["c"])}
    with pytest.raises(UnexpectedMessageError, match="another query"):
        run_all(programs)


@pytest.mark.parametrize("block", range(3))
def test_receivers_of_different_columns_in_one_block_have_different_digests(block):
    w, _ = three_sites(records=33)
    w = w.again(run_all)

    programs = {site: commit(w.holders[site]) for site in "abc"}
    outputs, _ = run_all({**programs, "b": lying_to_a(programs["b"], block)})
    assert outputs["a"]["b"] != outputs["c"]["b"]
    assert outputs["a"]["c"] == outputs["b"]["c"] and outputs["b"]["a"] == outputs["c"]["a"]


def lying_to_a(program, block):
    """Send a other columns than the other sites in one block."""
    step = next(program)
    for place in count():
        if place == block:
            message = step.outbox["a"]
            other = replace(message, values=message.values ^ np.uint8(1))
            step = Round({**step.outbox, "a": other}, step.expect)
        try:
            step = program.send((yield step))
        except StopIteration as stop:
            return stop.value


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([Group((0, 0), (1,))], "only once"),
        ([Group((0,), (0,))], "only once"),
        ([Group((0,), (1, 1))], "only once"),
        ([Group((), (1,))], "must have a prefix"),
        ([Group((0, 1))], "last one"),
        ([Group((0,), (9,))], "not committed"),
    ],
)
def test_impossible_groups(groups, reason):
    w, _ = three_sites()
    with pytest.raises(ValueError, match=reason):
        w.plan(groups)


@pytest.mark.parametrize(
    ("operands", "more", "reason"),
    [
        ([Operand(b"1", 0, ("a",))], {}, "no columns"),
        ([Operand(b"1", 1, ())], {}, "no columns or no holders"),
        ([Operand(b"1", 1, ("a",))] * 2, {}, "the same id"),
        ([Operand(b"1", 1, ("dealer",))], {}, "is the dealer"),
        ([Operand(b"1", 1, ("a",))], {"block_rows": 10}, "multiple of 16"),
    ],
)
def test_impossible_commitments(operands, more, reason):
    with pytest.raises(ValueError, match=reason):
        Commitments(b"s", Ring(16), 5, tuple(operands), **more)


def test_blocks_cover_all_records_and_no_more():
    w, _ = three_sites(records=33)
    selection = Selection(w.commitments)
    assert [selection.rows(b) for b in selection.blocks] == [16, 16, 1]
    assert Plan(w.commitments, (Group((0,)),), selection).rounds == 1


def test_an_extension_of_many_columns_is_sent_in_pieces(monkeypatch):
    """No party holds large messages to all others at a time; the tables are the same."""
    groups = [Group((0, 1), (2,)), Group((1, 2), (0,)), Group((0, 2), (1,))]
    w, _ = three_sites()
    whole = w.plan(groups)
    expected, _ = w.count(whole)
    monkeypatch.setattr("vertibayes_mpc.masked_tables.plan.STEP_BYTES", 1)
    plan = w.plan(groups)
    tables, transcript = w.count(plan)
    assert all(map(np.array_equal, tables, expected))
    assert len(plan.steps) > len(whole.steps)
    assert max(s.depth for s in transcript) <= plan.rounds
