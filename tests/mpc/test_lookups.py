"""Lookups: functions as integers, and shares of their values from shares of counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, xlogy

import vertibayes_mpc.lookups.plan
from tests.tampering import longer, of_another_query, run_changing
from tests.worlds import world
from vertibayes_mpc.errors import DealReusedError, MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.lookups import (
    Batch,
    LookupPlan,
    PublicFunction,
    cut,
    deal_lookups,
    log_gamma,
    log_power,
    look_up,
    rounded,
)
from vertibayes_mpc.lookups.logarithms import LOG_BITS, LOG_ERROR, MOST_RECORDS, logs
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import run_all

# ---- functions -----------------------------------------------------------------------------------


def test_logarithms_are_exact_to_their_bits():
    numbers = np.concatenate([np.arange(1, 70_000), 2 ** np.arange(26), 2 ** np.arange(1, 26) - 1])
    assert np.abs(logs(numbers) / 2.0**LOG_BITS - np.log(numbers)).max() < LOG_ERROR


@pytest.mark.parametrize(
    ("records", "bits", "bound"),
    [(0, 30, 1e-9), (1, 30, 1e-8), (3, 40, 1e-9), (7, 40, 1e-11), (100, 40, 2e-7),
     (1_000, 42, 2e-7), (10_000, 38, 1.4e-6), (60_000, 36, 4e-6)],
)  # fmt: skip
@pytest.mark.parametrize("shift", [1, 2, 7])
def test_log_gamma_is_close_for_every_count(records, bits, bound, shift):
    function = log_gamma(shift, records, bits)
    counts = np.arange(records + 1)
    line = counts * np.log(max(records, 1))
    away = np.abs(function(counts) / 2.0**bits - (gammaln(counts + float(shift)) - line)).max()
    assert away <= function.error + 1e-10 * records**0.5 + 1e-12
    assert function.error < bound
    assert function.terms == 8 and function.high * function.low > records


@pytest.mark.parametrize(
    ("records", "bits", "bound"),
    [(0, 30, 1e-12), (1, 30, 1e-12), (3, 40, 2e-12), (7, 40, 4e-12), (100, 40, 1e-7),
     (1_000, 42, 1e-7), (10_000, 38, 1.4e-6), (60_000, 36, 4e-6), (60_000, 45, 4e-6)],
)  # fmt: skip
def test_log_power_is_close_for_every_count(records, bits, bound):
    function, counts = log_power(records, bits), np.arange(records + 1)
    true = xlogy(counts, counts / max(records, 1))
    away = np.abs(function(counts) / 2.0**bits - true).max()
    assert away <= function.error + 1e-15 * records and function.error < bound
    assert function(counts[:1]) == 0 and function.terms == 8


@pytest.mark.laws
@pytest.mark.parametrize(("records", "bound"), [(1_000_000, 1.6e-5), (MOST_RECORDS, 4e-4)])
def test_log_power_of_millions_of_records_is_close_for_every_count(records, bound):
    function, counts = log_power(records, 34), np.arange(records + 1)
    true = xlogy(counts, counts / records)
    assert np.abs(function(counts) / 2.0**34 - true).max() <= function.error < bound


@pytest.mark.laws
@pytest.mark.parametrize("shift", [1, 3])
def test_log_gamma_of_a_million_records_is_close_for_every_count(shift):
    function = log_gamma(shift, 1_000_000, 34)
    counts = np.arange(1_000_001)
    true = gammaln(counts + float(shift)) - counts * np.log(1e6)
    assert np.abs(function(counts) / 2.0**34 - true).max() <= function.error < 1.6e-5


@pytest.mark.parametrize(
    ("arguments", "digest"),
    [
        ((1, 1_000, 42), "c276c58a70781b73b8240611a8532894"),
        ((3, 10_000, 38), "83ad4a238282f7667380936e6c58d890"),
        ((2, 60_000, 36), "4edb0ee27baaf6bfafba129a044b87ec"),
    ],
)
def test_the_integers_are_the_same_on_every_machine(arguments, digest):
    assert log_gamma(*arguments).digest.hex()[:32] == digest


def test_the_integers_of_log_power_are_the_same_on_every_machine():
    assert log_power(10_000, 38).digest.hex()[:32] == "1f1cef9dac3d3cda00324e2c1bbec49d"


def test_a_function_is_made_once():
    assert log_power(500, 40) is log_power(500, 40)
    assert log_gamma(2, 500, 40) is log_gamma(2, 500, 40)


@pytest.mark.parametrize("fewest", [0, 1, 5, 10, 31, 70, 600])
@pytest.mark.parametrize("records", [0, 1, 9, 500])
def test_a_cut_is_exact(fewest, records):
    function, counts = cut(fewest, records), np.arange(records + 1)
    assert np.array_equal(function(counts), np.where(counts < fewest, 0, counts))
    assert function.error == 0 and function.fraction_bits == 0


@pytest.mark.parametrize("base", [1, 2, 3, 4, 5, 7, 10, 32, 33, 100, 997])
@pytest.mark.parametrize("records", [0, 1, 9, 500, 1000, 1008])
def test_a_count_is_rounded_to_the_nearest_multiple(base, records):
    function, counts = rounded(base, records), np.arange(records + 1)
    multiples = function(counts)
    assert not (multiples % base).any() and (np.diff(multiples) >= 0).all()
    further = 0 if (np.abs(2 * (multiples - counts)) <= base).all() else 2  # than the half
    assert (np.abs(multiples - counts) <= base / 2 + further).all()
    assert function.error == 0 and function.fraction_bits == 0
    assert function.terms <= 1 + min(base, function.high)


@pytest.mark.parametrize("base", [5, 7, 10, 100])
def test_two_multiples_and_the_number_of_records_show_no_small_count(base):
    """Numbers of records in turn: halves that are always rounded up show one count for some."""

    def shown(multiples):
        pairs = np.stack([multiples, multiples[::-1]], axis=1)
        _, places, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        return (sizes[places.ravel()] == 1)[1:base].any()

    sizes = range(3 * base, 5 * base)
    assert not any(shown(rounded(base, n)(np.arange(n + 1))) for n in sizes)
    assert any(shown((np.arange(n + 1) + base // 2) // base * base) for n in sizes)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: rounded(0, 10), "base must be at least 1 and records at least 0, got 0 and 10"),
        (lambda: log_gamma(0, 10, 30), "shift must be at least 1"),
        (lambda: log_gamma(1, MOST_RECORDS, 30), "records from 0 to"),
        (lambda: log_gamma(1, 10_000, 60), "fraction_bits must be from 0 to"),
        (lambda: log_power(MOST_RECORDS + 1, 30), "records must be from 0 to"),
        (lambda: log_power(10_000, 60), "fraction_bits must be from 0 to 47"),
        (lambda: cut(-1, 10), "at least 0, got -1 and 10"),
        (lambda: PublicFunction(*np.zeros((2, 4, 1), np.int64), 0, 16, 0), "must exceed 16"),
        (lambda: PublicFunction(*np.zeros((2, 3, 1), np.int64), 0, 2, 0), "powers of two"),
    ],
)
def test_a_function_that_cannot_be_made_is_refused(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


# ---- lookups -------------------------------------------------------------------------------------


def sites_of(names, records, bits=16):
    return world([(1, False, {name: np.zeros(records)}) for name in names], records, bits)


def shares_of(counts, holders, bits, generator):
    """Return random shares of counts, by holder."""
    ring = Ring(bits)
    others = [
        ring.reduce(generator.integers(0, 2**bits, len(counts)).astype(ring.dtype))
        for _ in holders[1:]
    ]
    first = counts.astype(ring.dtype) - sum(others, np.zeros(len(counts), ring.dtype))
    return dict(zip(holders, [ring.reduce(first), *others], strict=True))


def programs_of(w, plan, counts, seed=0):
    """Return the programs of all parties, for counts by number of the batch."""
    generator = np.random.default_rng(seed)
    shares = {site: {} for site in plan.parties}
    for index, batch in enumerate(plan.batches):
        bits = w.commitments.ring.bits
        for site, own in shares_of(counts[index], batch.holders, bits, generator).items():
            shares[site][index] = own
    programs = {site: look_up(w.holders[site], plan, shares[site]) for site in plan.parties}
    return programs | {"dealer": deal_lookups(w.dealer_keys, plan)}


def values_of(plan, outputs):
    """Add up the sites' shares of the values, by number of the batch."""
    return [
        plan.ring.reduce(sum(outputs[site][index] for site in batch.holders))
        for index, batch in enumerate(plan.batches)
    ]


def expected(plan, counts):
    values = []
    for batch, own in zip(plan.batches, counts, strict=True):
        ends = np.cumsum([count for _, count in batch.pieces])
        pieces = zip(batch.pieces, np.split(own, ends), strict=False)
        whole = [function(part) for (function, _), part in pieces]
        value = np.concatenate([np.zeros(0, np.int64), *whole]).astype(np.uint64)
        values.append(plan.ring.reduce(value.astype(plan.ring.dtype)))
    return values


def check(w, plan, counts):
    """Run a plan; compare values, rounds and bytes; return the messages."""
    outputs, transcript = run_all(programs_of(w, plan, counts))
    for value, wanted in zip(values_of(plan, outputs), expected(plan, counts), strict=True):
        assert value.dtype == wanted.dtype and np.array_equal(value, wanted)
    sizes = [(s.sender == "dealer", len(s.message.values)) for s in transcript]
    assert sum(size for dealt, size in sizes if dealt) == plan.dealt_bytes
    assert sum(size for dealt, size in sizes if not dealt) == plan.sent_bytes
    depth = max((s.depth for s in transcript), default=0)
    assert depth == plan.rounds if len(plan.parts) < 2 else depth <= plan.rounds
    assert not [s for s in transcript if s.receiver == "dealer"]
    return transcript


@pytest.mark.parametrize("holders", ["ab", "abc", "abcd", "abcde"])
@pytest.mark.parametrize(("records", "bits"), [(1_000, 16), (70_000, 32)])
def test_every_count_is_looked_up_exactly(holders, records, bits):
    function = log_gamma(2, records, 36)
    counts = (
        np.unique(np.geomspace(1, records, 3_000).astype(int)) if bits > 16 else np.arange(1001)
    )
    batch = Batch(tuple(holders), ((function, len(counts)),))
    check(sites_of(holders, records, bits), LookupPlan(b"q", Ring(64), (batch,)), [counts])


@st.composite
def plans(draw):
    sites = "abcde"[: draw(st.integers(2, 5))]
    records = draw(st.sampled_from([1, 5, 40, 300]))
    ring = Ring(draw(st.sampled_from([2, 16, 33, 64])))
    functions = [log_gamma(shift, records, 40) for shift in (1, 2, 3)]
    if draw(st.booleans()):
        functions = [log_power(records, 40)]
    if draw(st.booleans()):
        functions = [cut(fewest, records) for fewest in (0, 1)]
    subsets = st.lists(st.sampled_from(sites), min_size=2, unique=True)
    counts = st.lists(st.tuples(st.sampled_from(functions), st.integers(0, 6)), max_size=4)
    batches = [
        Batch(tuple(sorted(draw(subsets))), tuple(draw(counts)))
        for _ in range(draw(st.integers(0, 4)))
    ]
    seed = draw(st.integers(0, 1000))
    return sites, records, LookupPlan(b"q", ring, tuple(batches)), seed


@settings(max_examples=60, deadline=None)
@given(plans(), st.sampled_from([1 << 27, 3000]))
def test_batches_of_any_sites_and_functions_are_looked_up_in_the_same_rounds(drawn, part_bytes):
    sites, records, plan, seed = drawn
    generator = np.random.default_rng(seed)
    counts = [generator.integers(0, records + 1, batch.counts) for batch in plan.batches]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertibayes_mpc.lookups.plan, "PART_BYTES", part_bytes)
        check(sites_of(sites, records), plan, counts)
        assert plan.rounds <= 4 * len(plan.parts)
        assert plan.memory <= part_bytes + 3000 * len(plan.batches)


def test_parts_have_all_lookups_once_and_take_no_more_memory_than_allowed(monkeypatch):
    monkeypatch.setattr(vertibayes_mpc.lookups.plan, "PART_BYTES", 50_000)
    function = cut(5, 100)
    batches = Batch(("a", "b"), ((function, 501),)), Batch(("a", "b", "c"), ((function, 77),) * 2)
    plan = LookupPlan(b"q", Ring(32), batches)
    assert len(plan.parts) > 3 and plan.memory < 51_000
    for index, batch in enumerate(batches):
        slices = [s for part in plan.parts for s in part if s.batch == index]
        assert [s.start for s in slices] == [0, *(s.stop for s in slices[:-1])]
        assert slices[-1].stop == batch.counts
    generator = np.random.default_rng(1)
    counts = [generator.integers(0, 101, batch.counts) for batch in batches]
    check(sites_of("abc", 100), plan, counts)


def test_the_bytes_of_a_lookup():
    """Of one count among 10,000 records: high = low = 128, eight terms."""
    function = log_gamma(1, 10_000, 38)
    one = LookupPlan(b"q", Ring(64), (Batch(("a", "b"), ((function, 1),)),))
    assert one.dealt_bytes == 2 * 128 // 8 + 24 and one.sent_bytes == 2 * (2 + 8 * 32 + 8)
    for sites in ("abc", "abcde"):
        plan = LookupPlan(b"q", Ring(64), (Batch(tuple(sites), ((function, 1),)),))
        assert plan.dealt_bytes == 8 * (2 * 128 + 1)
        assert plan.sent_bytes == 2 * (len(sites) - 1) * (2 + 8 * 32)


def test_lookups_of_one_count_are_shared_with_other_shares_under_another_label():
    function, w = cut(2, 10), sites_of("ab", 10)
    batches = (Batch(("a", "b"), ((function, 3),)),)
    first, second = (
        run_all(programs_of(w, LookupPlan(name, Ring(64), batches), [np.array([1, 2, 3])]))[0]
        for name in (b"1", b"2")
    )
    assert not (first["a"][0] == second["a"][0]).any()


# ---- mistakes and lies ---------------------------------------------------------------------------

FUNCTION = cut(3, 40)
BATCHES = (
    Batch(("a", "b"), ((FUNCTION, 4),)),
    Batch(("b", "c"), ((FUNCTION, 2),)),
    Batch(("a", "b", "c"), ((FUNCTION, 3),)),
)
COUNTS = [np.arange(batch.counts) for batch in BATCHES]


def small_plan(label=b"q"):
    return LookupPlan(label, Ring(64), BATCHES)


@pytest.mark.parametrize(
    ("change", "error"),
    [(longer, MalformedMessageError), (of_another_query, UnexpectedMessageError)],
)
@pytest.mark.parametrize(
    "place", [("dealer", 1), ("a", 4), *((site, depth) for site in "abc" for depth in (1, 2, 3))]
)
def test_a_message_that_does_not_fit_blames_its_sender(place, change, error):
    def changed(sent):
        return change(sent.message) if (sent.sender, sent.depth) == place else sent.message

    with pytest.raises(error) as caught:
        run_changing(programs_of(sites_of("abc", 40), small_plan(), COUNTS), changed)
    assert caught.value.party == place[0]


def test_parties_with_other_integers_refuse_each_others_messages():
    w, plan = sites_of("abc", 40), small_plan()
    other = replace(FUNCTION, right=FUNCTION.right + 1)
    pieces = (Batch(("a", "b"), ((other, 4),)), *BATCHES[1:])
    programs = programs_of(w, plan, COUNTS)
    programs["dealer"] = deal_lookups(w.dealer_keys, LookupPlan(b"q", Ring(64), pieces))
    with pytest.raises(UnexpectedMessageError, match="dealer: Dealt of another query"):
        run_all(programs)


def test_a_deal_is_not_used_twice():
    w = sites_of("abc", 40)
    run_all(programs_of(w, small_plan(), COUNTS))
    run_all(programs_of(w, small_plan(b"another"), COUNTS))
    with pytest.raises(DealReusedError, match="before"):
        run_all(programs_of(w, small_plan(), COUNTS))


def test_the_dealers_messages_do_not_depend_on_the_counts():
    sent = []
    for counts in (COUNTS, [np.zeros_like(c) for c in COUNTS]):
        transcript = run_all(programs_of(sites_of("abc", 40), small_plan(), counts))[1]
        dealt = [s for s in transcript if s.sender == "dealer"]
        sent.append({(s.receiver, s.message.values.tobytes()) for s in dealt})
    assert sent[0] == sent[1] and len(sent[0]) == 3


@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        ((Batch(("a",), ((FUNCTION, 1),)),), "two or more, sorted"),
        ((Batch(("b", "a"), ((FUNCTION, 1),)),), "two or more, sorted"),
        ((Batch(("a", "a"), ((FUNCTION, 1),)),), "two or more, sorted"),
        ((Batch(("a", "b"), ((FUNCTION, -1),)),), "at least 0"),
        ((Batch(("a", "b"), ((FUNCTION, 1), (cut(3, 4000), 1))),), "same high, low and terms"),
    ],
)
def test_impossible_plans(batches, reason):
    with pytest.raises(ValueError, match=reason):
        LookupPlan(b"q", Ring(64), batches)


def test_counts_that_do_not_fit_the_plan_are_refused():
    w = sites_of("abc", 40)
    with pytest.raises(ValueError, match="counts must have the shapes"):
        next(look_up(w.holders["a"], small_plan(), {0: np.zeros(4, np.uint16)}))
    large = Batch(("a", "b"), ((cut(3, 70_000), 1),))
    plan = LookupPlan(b"q", Ring(64), (large,))
    with pytest.raises(ValueError, match=r"must divide 2\*\*16, got 2\*\*17"):
        next(look_up(w.holders["a"], plan, {0: np.zeros(1, np.uint16)}))
