"""Count by shuffle: equal to pooled counts, on all shapes; its messages, and wrong ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tampering import (
    changing,
    longer,
    of_another_query,
    of_another_type,
    run_changing,
    shorter,
)
from tests.worlds import columns_of_sites, plain_tables, shuffle, world
from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.errors import (
    DealReusedError,
    ImpossibleTablesError,
    MalformedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.shuffled_tables import ShufflePlan, count_shuffled, deal_shuffled, open_shuffled
from vertibayes_mpc.shuffled_tables.plan import Codes, Masks, Noise, Shuffled, Tags


@st.composite
def splits(draw):
    """Columns over sites, some of them held by several, with families to count."""
    columns, records, chosen = draw(columns_of_sites(5, st.sampled_from([1, 2, 3, 20])))
    order = st.permutations(range(len(columns)))
    families = [
        tuple(places[: draw(st.integers(1, min(4, len(columns))))])
        for places in draw(st.lists(order, min_size=1, max_size=4))
    ]
    return columns, records, families, chosen


@settings(max_examples=200, deadline=None)
@given(splits(), st.booleans())
def test_shuffled_tables_equal_pooled_counts(split, missing):
    columns, records, families, chosen = split
    w = world(columns, records)
    w.commit()
    name = b"" if chosen is None else b"sample"
    plan, tables, transcript = shuffle(w, families, missing, chosen, name)
    groups = [Group(f[:-1], f[-1:]) if len(f) > 1 else Group(f) for f in families]
    for table, wanted in zip(
        tables, plain_tables(columns, records, groups, missing, chosen), strict=True
    ):
        assert table.dtype == np.int64 and table.flags.c_contiguous
        assert np.array_equal(table, wanted)
    assert max(s.depth for s in transcript) <= plan.rounds
    assert not [s for s in transcript if s.receiver == "dealer"]


# ---- messages ------------------------------------------------------------------------------------

RECORDS = 20


def committed(sites, *, missing=False, states=3):
    """Columns of one site each, with codes of all states; the first may miss values."""
    generator = np.random.default_rng(5)
    columns = [
        (states - 1 + (missing and not i), missing and not i, {s: codes})
        for i, s in enumerate(sites)
        for codes in [generator.integers(0, states + (missing and not i), RECORDS)]
    ]
    w = world(columns, RECORDS)
    w.commit()
    return w, columns


def complete(columns):
    codes = next(iter(columns[0][2].values()))
    return int((codes < columns[0][0]).sum()) if columns[0][1] else RECORDS


LINKS = {
    ("ab", False): [("a", "b", Shuffled), ("dealer", "a", Masks)],
    ("abc", False): [("a", "b", Shuffled), ("b", "c", Shuffled), ("dealer", "a", Masks)],
    ("ab", True): [
        ("b", "a", Noise),
        ("a", "b", Shuffled),
        ("dealer", "a", Masks),
        ("dealer", "b", Masks),
        ("b", "a", Tags),
    ],
    ("abc", True): [
        ("b", "a", Noise),
        ("c", "a", Noise),
        ("a", "b", Shuffled),
        ("b", "c", Shuffled),
        *(("dealer", site, Masks) for site in "abc"),
        ("c", "a", Tags),
        ("c", "b", Tags),
    ],
}


@pytest.mark.parametrize(("sites", "missing"), LINKS)
@pytest.mark.parametrize("states", [3, 20])
def test_the_messages_of_a_table(sites, missing, states):
    w, _columns = committed(sites, missing=missing, states=states)
    plan, _, transcript = shuffle(w, [tuple(range(len(sites)))])
    opened = [(site, "analyst", Codes) for site in sites]
    links = Counter((s.sender, s.receiver, type(s.message)) for s in transcript)
    assert links == Counter([*LINKS[sites, missing], *opened])
    assert max(s.depth for s in transcript) == plan.rounds == len(sites) + 2 * missing
    assert {s.message.values.dtype for s in transcript} == {np.dtype(np.uint8)}
    # The bytes that the package's docstring states: no size tells how many records are complete.
    k = len(sites)
    bits = (states**k - 1).bit_length()
    size = -(-RECORDS * (bits + bits % 2 * (bits > 8)) // 8)
    assert sum(s.message.values.size for s in transcript) == (
        2 * k * size + missing * 6 * RECORDS * (4 * k - 3)
    )


def test_rounds_do_not_depend_on_the_number_of_tables():
    w, _ = committed("abc", missing=True)
    few, _, transcript = shuffle(w, [(0, 1, 2)])
    many, _, more = shuffle(w, [(0, 1, 2), (1, 2), (0, 2), (2, 1, 0), (1,), (0, 1)])
    assert max(s.depth for s in more) == max(s.depth for s in transcript) == few.rounds
    assert many.rounds == few.rounds
    links = Counter((s.sender, s.receiver, type(s.message)) for s in more)
    assert set(links.values()) == {1}, "a message carries the vectors of all tables"


def test_a_query_asked_again_is_under_new_masks_and_orders():
    w, _ = committed("abc", missing=True)
    (_, first, sent), (_, again, later) = (shuffle(w, [(0, 1, 2)]) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    key = lambda s: (s.sender, s.receiver, type(s.message).__name__)  # noqa: E731
    for a, b in zip(sorted(sent, key=key), sorted(later, key=key), strict=True):
        assert not np.array_equal(a.message.values, b.message.values)


def run_with(w, sender, kind, change, families=((0, 1, 2),)):
    """Count tables, of which one message is changed on its way."""
    w.plans += 1
    plan = ShufflePlan(w.commitments, families, Selection(w.commitments), number=w.plans)
    programs = {s: count_shuffled(w.holders[s], plan, "analyst") for s in plan.parties}
    programs["dealer"] = deal_shuffled(w.dealer_keys, plan)
    programs["analyst"] = open_shuffled(plan)
    run_changing(programs, changing(kind, change, sender))


SENDERS = [(Noise, "b"), (Shuffled, "a"), (Shuffled, "b"), (Masks, "dealer"), (Tags, "c")]


@pytest.mark.parametrize(("kind", "sender"), SENDERS)
@pytest.mark.parametrize("change", [longer, shorter, of_another_type])
def test_a_message_of_a_wrong_size_or_type_names_its_sender(kind, sender, change):
    w, _ = committed("abc", missing=True)
    with pytest.raises(MalformedMessageError, match=f"{kind.__name__} of shape") as caught:
        run_with(w, sender, kind, change)
    assert caught.value.party == sender


@pytest.mark.parametrize(("kind", "sender"), SENDERS)
def test_a_message_of_another_query_names_its_sender(kind, sender):
    w, _ = committed("abc", missing=True)
    with pytest.raises(UnexpectedMessageError, match=f"{kind.__name__} of another") as caught:
        run_with(w, sender, kind, of_another_query)
    assert caught.value.party == sender


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (longer, "more codes than its tables have"),
        (shorter, "cut short"),
        (of_another_type, "of a wrong type"),
        (lambda m: replace(m, values=m.values[None]), "of a wrong shape"),
        (lambda m: replace(m, complete=m.complete[:0]), "of a wrong shape"),
        (lambda m: replace(m, complete=m.complete.astype(np.int64)), "of a wrong type"),
    ],
)
def test_shares_of_a_wrong_size_or_type_name_their_sender(change, reason):
    w, _ = committed("abc", missing=True)
    with pytest.raises(MalformedMessageError, match=reason) as caught:
        run_with(w, "b", Codes, change)
    assert caught.value.party == "b"


@pytest.mark.parametrize("count", [0, RECORDS, RECORDS + 1])
def test_sites_that_keep_unlike_numbers_of_records_open_no_table(count):
    w, columns = committed("abc", missing=True)
    assert complete(columns) not in (0, RECORDS)
    with pytest.raises(ImpossibleTablesError, match="a, b, c or dealer"):
        run_with(w, "b", Codes, lambda m: replace(m, complete=np.array([count], np.uint32)))


def test_more_complete_records_than_there_are_open_no_table(monkeypatch):
    """All sites agree."""
    w, _ = committed("ab", missing=True)
    plan = ShufflePlan(w.commitments, ((0, 1),), Selection(w.commitments), number=1)
    more, codes = RECORDS + 1, np.zeros(RECORDS, np.uint8)

    def site():
        yield Round(
            {"analyst": Codes(plan.tables[0].ring.pack(codes), np.array([more], np.uint32))}, {}
        )

    with pytest.raises(ImpossibleTablesError):
        run_all({"a": site(), "b": site(), "analyst": open_shuffled(plan)})


def test_codes_beyond_the_cells_open_no_table():
    """9 cells in a ring of 16 elements; the first of the chain says that its code is 3."""
    w, _ = committed("ab")
    w.holders["a"].columns[0].codes[:] = 3
    with pytest.raises(ImpossibleTablesError, match="a, b or dealer"):
        shuffle(w, [(0, 1)])


def test_a_number_that_does_not_ascend_is_refused_before_anything_is_sent():
    w, _ = committed("ab")
    old = ShufflePlan(w.commitments, ((0, 1),), Selection(w.commitments), number=0)
    new, _, _ = shuffle(w, [(0, 1)])
    for plan in (new, old):
        for site in plan.parties:
            with pytest.raises(DealReusedError, match="numbers must increase"):
                next(count_shuffled(w.holders[site], plan, "analyst"))


@pytest.mark.parametrize(
    ("families", "reason"),
    [
        ([(0, 9)], "was not committed"),
        ([(0, -1)], "was not committed"),
        ([(0, 0)], "each once"),
        ([()], "must have operands"),
    ],
)
def test_impossible_families(families, reason):
    w, _ = committed("ab")
    with pytest.raises(ValueError, match=reason):
        ShufflePlan(w.commitments, tuple(families), Selection(w.commitments))


def test_a_table_of_more_cells_than_masked_codes_tell_apart_is_refused():
    columns = [(255, False, {site: np.zeros(RECORDS)}) for site in "abcd"]
    w = world(columns, RECORDS)
    selection = Selection(w.commitments)
    assert ShufflePlan(w.commitments, ((0, 1, 2),), selection).tables[0].ring.bits == 24
    with pytest.raises(ValueError, match=r"4294967296 cells; at most 2\*\*24"):
        ShufflePlan(w.commitments, ((0, 1, 2, 3),), selection)


def test_chains_begin_with_each_holder_in_turn():
    w, _ = committed("abc")
    plan = ShufflePlan(w.commitments, ((0, 1, 2),) * 4, Selection(w.commitments))
    assert [table.chain for table in plan.tables] == [
        ("a", "b", "c"),
        ("b", "c", "a"),
        ("c", "a", "b"),
        ("a", "b", "c"),
    ]


def test_no_tables_take_no_messages():
    w, _ = committed("ab")
    plan, tables, transcript = shuffle(w, [])
    assert (tables, transcript, plan.rounds) == ([], [], 0)
