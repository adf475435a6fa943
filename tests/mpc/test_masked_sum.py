"""Masked sums: exact for all who stayed, or an error that names; never a wrong sum."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.e2e.test_examples import load
from tests.randomness import SeededRandomness
from tests.sums import MESSAGES, Dropping, World, run_dropping
from vertibayes_mpc.errors import DealReusedError, PartyGoneError
from vertibayes_mpc.masked_sum import (
    Member,
    Neighbourhood,
    SumPlan,
    collect,
    contribute,
    smallest_neighbourhood,
)
from vertibayes_mpc.masked_sum.aggregator import Collection
from vertibayes_mpc.masked_sum.messages import (
    Advertisement,
    Confirmation,
    Confirmations,
    Delivered,
    Keys,
    MaskedVector,
    Revealed,
    Shared,
    Survivors,
)
from vertibayes_mpc.masked_sum.roster import Circle
from vertibayes_mpc.masked_sum.seeds import own_mask, pair_masks
from vertibayes_mpc.randomness import KeyPair, StreamKey
from vertibayes_mpc.scheduler import Scheduler, run_all
from vertibayes_mpc.signing import SigningKey
from vertibayes_protocols.transports.local import EnvelopedPackets, Traffic

FROM_AGGREGATOR = [Keys, Delivered, Survivors, Confirmations]
VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "masked_sum.json").read_text())


@st.composite
def complete_graphs(draw):
    count = draw(st.integers(2, 7))
    neighbourhood = Neighbourhood(count - 1, draw(st.integers(count // 2 + 1, count)))
    return count, neighbourhood


@st.composite
def circles(draw):
    count, half = draw(st.integers(6, 12)), draw(st.integers(1, 2))
    return count, Neighbourhood(2 * half, draw(st.integers(half + 1, 2 * half + 1)))


@settings(max_examples=120, deadline=None)
@given(
    st.one_of(complete_graphs(), circles()),
    st.dictionaries(st.integers(0, 11), st.integers(0, MESSAGES), max_size=6),
    st.integers(0, 4),
    st.integers(0, 2**32),
)
def test_the_sum_of_those_who_stayed_or_an_error_that_names_the_gone(graph, drops, length, seed):
    """Whoever drops out after whichever message."""
    count, neighbourhood = graph
    w = World(count, length, neighbourhood=neighbourhood, seed=seed)
    aggregator = Collection(w.plan)
    last = {p: drops.get(i, MESSAGES) for i, p in enumerate(w.members)}
    survivors = [p for p in w.members if last[p] >= 3]
    left = [p for p in w.members if last[p] == MESSAGES]
    try:
        found, told = run_dropping(w.programs(aggregator.converse()), last)
    except PartyGoneError as error:
        gone = error.parties
        assert gone and all(last[p] < MESSAGES for p in gone)
        assert len(left) < w.plan.quorum or is_short(w, aggregator, last)
        return
    assert len(left) >= w.plan.quorum
    assert list(found.parties) == survivors
    assert found.values.dtype == np.int64 and np.array_equal(found.values, w.sum_of(survivors))
    assert told == dict.fromkeys(left, tuple(survivors))


def is_short(w, aggregator, last):
    """Whether too few are left in some neighbourhood, counted by hand."""
    left = {w.plan.place(p) for p in w.members if last[p] == MESSAGES}
    sharers = [w.plan.place(p) for p in w.members if last[p] >= 2]
    windows = [set(aggregator.roster.circle.around(place).tolist()) for place in sharers]
    return any(len(window & left) < w.plan.neighbourhood.threshold for window in windows)


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        ({"p00": 0}, 4),
        ({"p00": 1}, 4),
        ({"p00": 2}, 4),
        ({"p00": 3}, 5),
        ({"p00": 4}, 5),
        ({"p00": 2, "p04": 3}, 4),
    ],
)
def test_a_party_counts_from_its_vector_on(last, wanted):
    w = World(5)
    found, _ = run_dropping(w.programs(), last)
    assert len(found.parties) == wanted
    assert np.array_equal(found.values, w.sum_of(found.parties))


@pytest.mark.parametrize("message", range(MESSAGES))
def test_too_few_left_after_any_round_is_an_error_that_names_them(message):
    w = World(5)
    with pytest.raises(PartyGoneError, match=r"aggregator needs 3 of [345]") as caught:
        run_dropping(w.programs(), dict.fromkeys(["p00", "p02", "p03"], message))
    assert caught.value.parties == ("p00", "p02", "p03")


@pytest.mark.parametrize("message", range(1, MESSAGES))
def test_a_neighbourhood_that_is_short_is_named(message):
    """In a circle with 2 neighbours each, both of one party drop out: nothing more is sent."""
    w = World(12, neighbourhood=Neighbourhood(2, 2))
    aggregator = Collection(w.plan)
    run_dropping(w.programs(aggregator.converse()), {})
    again = World(12, neighbourhood=Neighbourhood(2, 2))
    left, middle, right = (again.plan.parties[p] for p in aggregator.roster.circle._order[:3])
    last = {left: message, right: message}
    carrier = Dropping(last)
    with pytest.raises(PartyGoneError, match=f"{middle}.* has fewer") as caught:
        run_dropping(again.programs(), last, carrier)
    assert sorted(caught.value.parties) == sorted(last)
    told = {type(s.message) for s in carrier.transcript if s.sender == "aggregator"}
    assert told == set(FROM_AGGREGATOR[:message])


@pytest.mark.parametrize(
    ("count", "bound", "bits"),
    [(3, 10_922, 16), (3, 10_923, 32), (3, 2**63 // 3 // 2, 64), (2, 2**30 - 1, 32), (2, 0, 16)],
)
def test_no_sum_wraps_up_to_the_bound(count, bound, bits):
    w = World(count, 2, bound)
    assert w.plan.ring.bits == bits
    w.vectors = {p: np.array([bound, -bound]) for p in w.members}
    outputs, _ = run_all(w.programs())
    assert outputs["aggregator"].values.tolist() == [count * bound, -count * bound]


def test_vectors_of_any_integers():
    w = World(3, 2)
    w.vectors = dict(zip(w.members, ([1, 2], [3, 4], [5, 6]), strict=True))
    for party, dtype in zip(w.members, (np.uint8, np.int16, np.uint64), strict=True):
        w.vectors[party] = np.array(w.vectors[party], dtype)
    assert run_all(w.programs())[0]["aggregator"].values.tolist() == [9, 12]


def test_the_messages_of_a_sum():
    w = World(9, neighbourhood=Neighbourhood(4, 3))
    _, transcript = run_all(w.programs())
    to_aggregator = [Advertisement, Shared, MaskedVector, Confirmation, Revealed]
    assert Counter((s.sender, s.receiver, type(s.message)) for s in transcript) == {
        **{(party, "aggregator", kind): 1 for party in w.members for kind in to_aggregator},
        **{("aggregator", party, kind): 1 for party in w.members for kind in FROM_AGGREGATOR},
    }
    assert max(s.depth for s in transcript) == 9
    sizes = {s.message.sealed.shape for s in transcript if type(s.message) is Shared}
    assert sizes == {(5, 82)}


def test_all_messages_can_be_sent_and_are_within_what_is_expected():
    """Encoded and decoded, in a sum where the arrays are as long as may be, and empty."""
    for w in (World(4, 50), World(9, 0, neighbourhood=Neighbourhood(4, 3))):
        scheduler = Scheduler(EnvelopedPackets(bytes(16), Traffic()))
        for party, program in w.programs().items():
            scheduler.start(party, program)
        assert np.array_equal(scheduler.finish("aggregator").values, w.sum_of(w.members))


class DropsTheUnread(EnvelopedPackets):
    """Drops p00 once, when the aggregator has written to it and p00 has not read that."""

    scheduler: Scheduler
    to_drop = ("p00",)

    def pack(self, sent):
        if self.to_drop and type(sent.message) is Survivors and sent.receiver == "p04":
            self.scheduler.drop(*self.to_drop)
            self.to_drop = ()
        return super().pack(sent)


def test_who_dropped_out_takes_part_in_the_next_sum_over_sealed_packets():
    """What it had not read is of the past: the counters of its link go on behind it."""
    w = World(5)
    carrier = DropsTheUnread(bytes(16), Traffic())
    found, told = run_dropping(w.programs(), {"p00": 3}, carrier)
    assert len(found.parties) == 5 and "p00" not in told
    w.plan = SumPlan(b"next", w.plan.signing_keys, 3, 100, w.plan.neighbourhood)
    scheduler = carrier.scheduler
    for party, program in w.programs().items():
        if party != "aggregator":
            scheduler.start(party, program)
    assert np.array_equal(scheduler.run("aggregator", collect(w.plan)).values, w.sum_of(w.members))


def test_many_parties_with_the_smallest_neighbourhood():
    neighbourhood = smallest_neighbourhood(80, 1, 6, failure=1e-3)
    assert neighbourhood.degree < 40
    w = World(80, neighbourhood=neighbourhood)
    last = {f"p{i:02}": i % 5 for i in range(0, 60, 12)}
    found, _ = run_dropping(w.programs(), last)
    assert list(found.parties) == [p for p in w.members if last.get(p, 5) >= 3]
    assert np.array_equal(found.values, w.sum_of(found.parties))


def test_known_masked_vectors():
    """Each as computed apart; and all masks of pairs cancel, by plain arithmetic."""
    known = VECTORS["parties"]
    keys = {each["party"]: bytes.fromhex(each["signing_key"]) for each in known}
    neighbourhood = Neighbourhood(*VECTORS["neighbourhood"])
    plan = SumPlan(b"a sum", keys, VECTORS["length"], VECTORS["bound"], neighbourhood)
    assert plan.label.hex() == VECTORS["context"]
    for each in known:
        pair = KeyPair(bytes.fromhex(each["private"]))
        assert pair.public.hex() == each["public"]
        others = {other["party"]: other for other in known if other is not each}
        peers = {p: pair.agree(bytes.fromhex(o["public"]), "masking") for p, o in others.items()}
        masked = plan.encode(np.array(each["vector"])) + pair_masks(plan, each["party"], peers)
        masked += own_mask(plan, StreamKey(bytes.fromhex(each["self_mask"])))
        assert masked.tolist() == each["masked"]
    own = [own_mask(plan, StreamKey(bytes.fromhex(each["self_mask"]))).tolist() for each in known]
    for column in range(plan.length):
        masked, masks, vectors = (
            sum(row[column] for row in rows)
            for rows in ([e["masked"] for e in known], own, [e["vector"] for e in known])
        )
        assert (masked - masks - vectors) % 2**16 == 0


def test_a_known_circle():
    seed, order = bytes.fromhex(VECTORS["circle"]["seed"]), VECTORS["circle"]["order"]
    circle = Circle(np.arange(7, dtype=np.uint32), Neighbourhood(2, 2), seed)
    for at, place in enumerate(order):
        assert circle.around(place).tolist() == sorted({order[at - 1], place, order[(at + 1) % 7]})


def test_keys_are_fresh_in_every_sum():
    keys = set()
    w = World(3)
    for name in (b"one", b"two"):
        w.plan = SumPlan(name, w.plan.signing_keys, 3, 100, w.plan.neighbourhood)
        _, transcript = run_all(w.programs())
        for sent in transcript:
            if type(sent.message) is Advertisement:
                keys |= {sent.message.mask_key, sent.message.seal_key}
    assert len(keys) == 2 * 2 * 3


def test_a_name_is_used_once():
    w = World(3)
    run_all(w.programs())
    with pytest.raises(DealReusedError, match="p00 already took part in a sum of this name"):
        run_all(w.programs())


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros(2, int), r"shape \(2,\)"),
        (np.zeros((3, 1), int), "shape"),
        (np.zeros(3), "float64"),
        (np.array([0, 101, 0]), "from -100 to 100"),
        (np.array([-101, 0, 0]), "the bound"),
        (np.array([0, 0, 2**64 - 1], np.uint64), "the bound"),
    ],
)
def test_vectors_that_cannot_be_summed(values, reason):
    w = World(3)
    w.vectors["p01"] = values
    with pytest.raises(ValueError, match=reason):
        run_all(w.programs())
    assert not w.members["p01"].names, "nothing was sent: the name is not used up"


def test_a_member_that_is_not_in_the_plan():
    w = World(3)
    for party in ("p00", "stranger"):
        other = Member(party, SigningKey(bytes(32)))
        with pytest.raises(ValueError, match=f"does not have the public key of {party}"):
            next(contribute(other, w.plan, w.vectors["p00"], "aggregator", SeededRandomness()))


@pytest.mark.parametrize(
    ("count", "length", "bound", "neighbourhood", "reason"),
    [
        (1, 1, 1, (0, 1), "at least two parties, got 1"),
        (5, 1, 1, (3, 3), "degree must be 4 .* got 3"),
        (5, 1, 1, (5, 4), "degree must be 4 .* got 5"),
        (5, 1, 1, (0, 1), "degree must be 4 .* got 0"),
        (6, 1, 1, (5, 3), "more than half of the 6"),
        (6, 1, 1, (5, 7), "threshold must be .* got 7"),
        (3, -1, 1, (2, 2), "length -1"),
        (3, 1, -1, (2, 2), "bound -1"),
        (4, 1, 2**61, (3, 3), "no ring holds"),
    ],
)
def test_impossible_plans(count, length, bound, neighbourhood, reason):
    keys = {f"p{i}": bytes([i] * 32) for i in range(count)}
    with pytest.raises(ValueError, match=reason):
        SumPlan(b"s", keys, length, bound, Neighbourhood(*neighbourhood))


def test_two_parties_with_one_signing_key_are_no_plan():
    keys = {"p": b"1" * 32, "q": b"2" * 32, "r": b"1" * 32}
    with pytest.raises(ValueError, match="p and r have the same signing key"):
        SumPlan(b"s", keys, 1, 1, Neighbourhood(2, 2))


def test_all_of_a_plan_is_in_its_context():
    keys = {"p": bytes(32), "q": b"0" * 32}
    base = (b"s", keys, 3, 9, Neighbourhood(1, 2))
    others = [(b"t",), (b"s", keys | {"q": b"1" * 32}), (b"s", keys, 4), (b"s", keys, 3, 8)]
    plans = [SumPlan(*(*other, *base[len(other) :])) for other in [base, *others]]
    assert len({plan.label for plan in plans}) == len(plans)


def test_no_secret_in_a_repr():
    w = World(3)
    _, transcript = run_all(w.programs())
    for sent in transcript:
        if isinstance(sent.message, MaskedVector | Revealed):
            assert "array" not in repr(sent.message)
    assert "\\x" not in repr(w.members["p00"].signing)


def test_a_run_is_repeatable():
    runs = [run_all(World(4).programs())[1] for _ in range(2)]
    assert repr(runs[0]) == repr(runs[1])
    for one, other in zip(*runs, strict=True):
        if type(one.message) is MaskedVector:
            assert np.array_equal(one.message.values, other.message.values)


def test_collect_without_parties_that_answer():
    w = World(3)
    with pytest.raises(PartyGoneError, match="p00, p01, p02: gone"):
        run_dropping({"aggregator": collect(w.plan)} | w.programs(), dict.fromkeys(w.members, 0))


def test_the_example(capsys):
    example = load("masked_sum")
    found = example.add_up()
    assert "11 of 12 hospitals" in capsys.readouterr().out
    assert "hospital-3" not in found.parties and "hospital-7" in found.parties
    assert np.array_equal(found.values, np.delete(example.CASES, 3, axis=0).sum(axis=0))
