"""No byte of a keyed stream serves twice, in runs of several parts, batches, lists and blocks."""

from __future__ import annotations

import numpy as np
import pytest

import vertibayes_mpc.lookups.plan
import vertibayes_mpc.unit_vectors
from tests import alignment_worlds
from tests.draws import assert_own_labels, noted
from tests.mpc import test_argmax, test_lookups, test_scalar_product, test_table_lookups
from tests.worlds import Parts, shuffle, world
from vertibayes_mpc.argmax import ArgmaxPlan, RankPlan, deal_argmax, share_ranks
from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.lookups import Batch, LookupPlan, cut
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.randomness import KEY_BYTES, StreamKey
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.table_lookups import CountPlan, TableLookupPlan, deal_counts, share_counts

RECORDS = 40  # three blocks


def columns():
    """Columns of each kind: of one site and of several, with and without missing values."""
    generator = np.random.default_rng(2)
    draw = lambda width: generator.integers(0, width + 1, RECORDS)  # noqa: E731
    alone = [(2, False, {site: draw(2)}) for site in "aabc"]
    parts = Parts({"a": draw(1), "c": np.full(RECORDS, 1)})
    return [*alone, (2, True, {"b": draw(2)}), (1, True, parts), (9, False, {"c": draw(9)})]


def committed_world():
    return world(columns(), RECORDS)


# ---- runs ----------------------------------------------------------------------------------------


def run(programs):
    _, transcript = run_all(programs)
    assert_own_labels(transcript)


def masked_tables(draws):
    w = committed_world()
    w.commit()
    draws.keep()
    groups = Group((0, 2), (3, 4)), Group((1, 3), (2,)), Group((2, 4), (0, 5)), Group((5,), (0,))
    chosen = np.arange(0, RECORDS, 2)
    for _ in range(2):
        w.count(w.plan(groups))
        w.count(w.plan(groups, True, chosen, b"half"))


def shuffled_tables(draws):
    w = committed_world()
    w.commit()
    draws.keep()
    families = [(0, 2, 4), (2, 6), (6, 2), (5, 3), (0, 1), (4, 5, 6)]
    for _ in range(2):
        shuffle(w, families)
    shuffle(w, families[:2], missing=True)


def lookups(_):
    """Two sites and more, in batches of the same sites too, in several parts."""
    functions = cut(2, 100), cut(5, 100)
    batches = tuple(
        Batch(tuple(holders), ((functions[0], 20), (functions[1], 30)))
        for holders in ("ab", "bc", "ab", "abc", "abc", "abcd")
    )
    w, counts = test_lookups.sites_of("abcd", 100), [np.arange(50)] * len(batches)
    plan = LookupPlan(b"query", Ring(32), batches)
    assert len(plan.parts) > 2
    run(test_lookups.programs_of(w, plan, counts))


def table_lookups(_):
    held = [(2, False, {site: np.arange(RECORDS) % 3}) for site in "aabc"]
    w = world(held, RECORDS)
    tables = (0, 2), (1, 2), (0, 2), (0, 2, 3), (0, 1), (3, 0)
    plan = TableLookupPlan(b"query", Selection(w.commitments), tables, 2)
    assert len(plan.shared.parts) > 2
    programs = test_table_lookups.programs_of(w, plan, test_table_lookups.tables_of(plan))
    run(programs)


def index_counts(_):
    w = test_argmax.sites_of(3)
    for name in (b"one", b"other"):
        plan = CountPlan(name, ("a", "b", "c"), RECORDS, 3, Ring(16))
        assert len(plan.shared.parts) > 2
        shares = test_argmax.shares_of(np.arange(RECORDS) % 8, plan.indices, 3)
        pairs = zip(plan.sites, shares, strict=True)
        programs = {site: share_counts(w.holders[site], plan, share) for site, share in pairs}
        run(programs | {"dealer": deal_counts(w.dealer_keys, plan)})


def argmax_in_parts(_):
    w = test_argmax.sites_of(3)
    plan = ArgmaxPlan(b"query", ("a", "b", "c"), (5, 3), most_pairs=4)
    assert [len(list(p)) for p in (plan.pair_parts, plan.value_parts)] == [4, 4]
    scores = [0, 3, 9, 2, 1, 5, 7, 6]
    run(test_argmax.programs_of(w, plan, scores))


def ranks(_):
    w = test_argmax.sites_of(3)
    plan = RankPlan(b"query", ("a", "b", "c"), (5, 3), most_pairs=4)
    shares = test_argmax.shares_of(np.arange(8), plan.ring, 3)
    pairs = zip(plan.sites, shares, strict=True)
    programs = {site: share_ranks(w.holders[site], plan, share) for site, share in pairs}
    run(programs | {"dealer": deal_argmax(w.dealer_keys, plan)})


def scalar_products(_):
    product = test_scalar_product.product_of(4)
    run_all(test_scalar_product.programs(product, test_scalar_product.ones(product)))


LISTS = {"a": [b"1", b"2", b"3"], "b": [b"3", b"1", b"4"], "c": [b"5", b"1", b"3", b"6"]}


def alignment_of(level):
    """Three lists, with rows of two columns at level 2."""

    def align(_):
        plan = alignment_worlds.plan_of(LISTS, level=level, sizes={"a": 5})
        run(alignment_worlds.programs(plan, LISTS))

    return align


RUNS = {  # and how many keys one party alone draws from
    "masked tables": (masked_tables, 0),
    "shuffled tables": (shuffled_tables, 0),
    "lookups": (lookups, 0),
    "table lookups": (table_lookups, 0),
    "index counts": (index_counts, 0),
    "argmax": (argmax_in_parts, 0),
    "ranks": (ranks, 0),
    "scalar products": (scalar_products, 0),
    "alignment, level 1": (alignment_of(1), 4),  # each site's own orders, and the matcher's
    "alignment, level 2": (alignment_of(2), 4),
}


@pytest.fixture
def small_parts(monkeypatch):
    """Have lookups in parts of a few records."""
    monkeypatch.setattr(vertibayes_mpc.lookups.plan, "PART_BYTES", 30_000)
    monkeypatch.setattr(vertibayes_mpc.unit_vectors, "PART_BYTES", 300)


@pytest.mark.parametrize(("runs", "alone"), RUNS.values(), ids=RUNS)
@pytest.mark.usefixtures("small_parts")
def test_each_byte_of_a_stream_is_drawn_once_by_each_of_its_two_parties(runs, alone):
    with noted() as draws:
        runs(draws)
        draws.check(alone)


# ---- what would be noticed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (("name", 0), "drawn twice"),
        (("name", 1), "drawn twice"),
        (("name", 2), "what its peer does not"),
        (("another", 0), "what its peer does not"),
    ],
)
def test_bytes_that_are_drawn_twice_or_by_one_party_alone_are_noticed(other, reason):
    with noted() as draws:
        for side in (StreamKey(bytes(KEY_BYTES)) for _ in range(2)):
            side.elements(Ring(16), b"name", (4,))
        name, start = other
        side.elements(Ring(32), name.encode(), (1,), start)
        with pytest.raises(AssertionError, match=reason):
            draws.check()


def test_a_key_of_one_party_alone_is_noticed():
    with noted() as draws:
        StreamKey(bytes(KEY_BYTES)).permutation(b"name", 3)
        draws.check(alone=1)
        with pytest.raises(AssertionError, match="1 keys of one party alone"):
            draws.check()


def test_other_bytes_under_the_label_of_a_column_are_noticed():
    with noted() as draws:
        key = StreamKey(bytes(KEY_BYTES))
        key.elements(Ring(16), b"name", (4,))
        draws.keep()
        key.elements(Ring(16), b"name", (4,))
        with pytest.raises(AssertionError, match="drawn otherwise"):
            key.elements(Ring(16), b"name", (3,))
