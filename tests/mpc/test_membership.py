"""Joins, leaves and drop-outs: groups that hold together, sums over who is there."""

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from tests.schemes import Meeting
from vertibayes_mpc.additive_scheme import NEVER
from vertibayes_mpc.aggregation import Ciphertexts
from vertibayes_mpc.errors import (
    DealReusedError,
    FaultyPartyError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.membership import (
    Groups,
    Member,
    Roll,
    answer_roll,
    pair_key,
)
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import run_all
from vertibayes_protocols.wire import decode, encode


def names(count):
    return [f"p{i}" for i in range(count)]


# ---- groups --------------------------------------------------------------------------------------


def edges_of(groups):
    return {p: groups.neighbours(p) for p in groups.parties}


def check(groups):
    """Check sizes, symmetry, and that nothing less than two blocks parts the parties."""
    sizes = [len(block) for block in groups.blocks]
    assert sum(sizes) == len(groups.parties)
    assert max(sizes) < 2 * groups.least
    assert len(sizes) == 1 or min(sizes) >= groups.least
    edges = edges_of(groups)
    assert all(p in edges[q] and p != q for p in edges for q in edges[p])
    if len(sizes) <= 3:
        assert all(len(neighbours) == len(edges) - 1 for neighbours in edges.values())
    else:
        graph = nx.Graph((p, q) for p in edges for q in edges[p])
        assert nx.node_connectivity(graph) >= 2 * groups.least


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.binary(max_size=4), st.lists(st.integers(-20, 40), max_size=25))
def test_groups_hold_together_and_change_little(start, seed, steps):
    groups = Groups(names(start), SeededRandomness(seed), least=3)
    check(groups)
    for i, step in enumerate(steps):
        before = edges_of(groups)
        if step < 0 or len(before) <= 2:
            changed = groups.join(f"new{i}")
        else:
            changed = groups.leave(sorted(before)[step % len(before)])
        after = edges_of(groups)
        assert changed == {p for p in after if before.get(p) != after[p]}
        assert len(changed) <= 4 * (2 * groups.least - 1)
        check(groups)


def test_many_leaves_and_joins_in_a_row():
    groups = Groups(names(60), SeededRandomness(), least=3)
    for i, party in enumerate(names(58)):
        groups.leave(party)
        if i % 5 == 0:
            check(groups)
    assert groups.parties == ("p58", "p59") and len(groups.blocks) == 1
    for party in names(40):
        groups.join(party)
    check(groups)
    assert len(groups.blocks) > 6


def test_a_join_concerns_a_few_of_a_thousand():
    groups = Groups(names(1000), SeededRandomness(), least=20)
    assert max(len(groups.join(f"new{i}")) for i in range(30)) <= 4 * 39


def test_where_a_party_comes_is_random():
    places = []
    for seed in range(60):
        groups = Groups(names(40), SeededRandomness(bytes([seed])), least=5)
        groups.join("new")
        places.append(next(p for p in sorted(groups.neighbourhood("new")[0])))
    assert len(set(places)) > 10


def test_a_block_is_cut_at_random():
    halves = set()
    for seed in range(20):
        groups = Groups(names(5), SeededRandomness(bytes([seed])), least=3)
        groups.join("new")
        halves.add(next(i for i, block in enumerate(groups.blocks) if "new" in block))
    assert halves == {0, 1}


def test_groups_refuse_what_makes_no_sense():
    groups = Groups("ab", SeededRandomness())
    for wrong, reason in (
        (lambda: groups.join("a"), "a member already"),
        (lambda: groups.leave("c"), "not a member"),
        (lambda: groups.leave("a"), "one of the last two"),
        (lambda: groups.neighbourhood("c"), "not a member"),
        (lambda: Groups("a", SeededRandomness()), "at least two parties"),
        (lambda: Groups("aab", SeededRandomness()), "each once"),
        (lambda: Groups("abc", SeededRandomness(), least=2), "least must be at least 3"),
    ):
        with pytest.raises(ValueError, match=reason):
            wrong()


# ---- sums over who is there ----------------------------------------------------------------------


def counts_of(parties, value=7):
    return {party: [i, value] for i, party in enumerate(sorted(parties))}


def wanted(counts, absent=()):
    rows = [row for party, row in counts.items() if party not in absent]
    return [sum(column) for column in zip(*rows, strict=True)]


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 16), st.binary(max_size=4))
def test_the_aggregator_opens_the_exact_sum_over_everyone(count, seed):
    meeting = Meeting(names(count), seed=seed)
    counts = counts_of(meeting.groups.parties)
    found, transcript = meeting.sum(counts)
    assert found == wanted(counts)
    assert [type(s.message) for s in transcript] == [Roll] * count + [Ciphertexts] * count
    assert {s.depth for s in transcript} == {1, 2}


def test_sums_go_on_over_joins_leaves_and_drop_outs():
    meeting = Meeting(names(14))
    for change in ("join x", "join y", "leave p3", "leave x", "drop 1", "drop 2", "leave y"):
        what, who = change.split()
        absent = [min(b) for b in meeting.groups.blocks[: int(who)]] if what == "drop" else ()
        if what != "drop":
            getattr(meeting.groups, what)(who)
        counts = counts_of(meeting.groups.parties)
        assert meeting.sum(counts, absent)[0] == wanted(counts, absent)


def test_only_the_concerned_change_their_keys():
    meeting = Meeting(names(30))
    before = {party: meeting.member(party)._pairs for party in meeting.groups.parties}
    changed = meeting.groups.leave("p5")
    after = {party: meeting.member(party)._pairs for party in meeting.groups.parties}
    assert {p for p in after if after[p] != before[p]} == changed
    assert 0 < len(changed) < 29


def test_no_neighbours_are_asked_for_who_dropped_out():
    meeting = Meeting(names(14))
    _, transcript = meeting.sum(counts_of(meeting.groups.parties), absent=["p3"])
    assert {sent.receiver for sent in transcript if isinstance(sent.message, Roll)} == {
        p for p in meeting.groups.parties if p != "p3"
    }
    assert all(sent.receiver == "aggregator" for sent in transcript[13:])


def test_a_name_that_is_twice_among_the_absent_is_one_absent_party(monkeypatch):
    """The control: with another digest than the members' the sum does not open; all are named."""
    meeting = Meeting(names(6))
    counts = counts_of(meeting.groups.parties)
    assert meeting.sum(counts, absent=["p5", "p5"])[0] == wanted(counts, ["p5"])
    digest = lambda absent: label("absent", *sorted(absent))  # noqa: E731
    monkeypatch.setattr("vertibayes_mpc.membership.pair_keys.roll_digest", digest)
    with pytest.raises(ProtocolError) as caught:
        meeting.sum(counts, absent=["p5", "p5"])
    assert caught.value.parties == tuple(names(5))


def test_who_fails_after_the_roll_is_named_and_the_next_time_goes_on_without_it():
    meeting = Meeting(names(6))
    counts = counts_of(meeting.groups.parties)
    received = {p: meeting.member(p).encrypt(counts[p], 1) for p in names(5)}
    with pytest.raises(ProtocolError, match="sent no ciphertexts") as caught:
        meeting.aggregator.decrypt(received, 1, 2)
    assert caught.value.parties == ("p5",)
    meeting.time = 1
    assert meeting.sum(counts, absent=["p5"])[0] == wanted(counts, ["p5"])


# ---- wrong messages and mistakes -----------------------------------------------------------------


def answering(meeting, roll, time=4):
    def calling():
        yield Round({"p0": roll}, {})
        yield Round({}, {"p0": meeting.parameters.expected(time, 1).message})

    member = meeting.member("p0")
    run_all({"p0": answer_roll(member, [1], time), "aggregator": calling()})
    return member


def roll_of(meeting, **changes):
    return replace(Roll(meeting.parameters.label, 4, ()), **changes)


WRONG = {
    "replayed": ({"time": 3}, ReplayedMessageError, "expected time 4"),
    "to come": ({"time": 5}, UnexpectedMessageError, "expected time 4"),
    "foreign": ({"label": b"other"}, UnexpectedMessageError, "other parameters"),
    "absent itself": ({"absent": ("p0",)}, FaultyPartyError, "calls p0 absent"),
    "without itself": ({"absent": ("aggregator",)}, FaultyPartyError, "calls itself absent"),
    "too many": ({"absent": ("p1", "p2", "p3")}, FaultyPartyError, "more than a third"),
}


@pytest.mark.parametrize(("changes", "error", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_roll_names_the_aggregator(changes, error, reason):
    meeting = Meeting(names(6), least=4)
    with pytest.raises(error, match=reason) as caught:
        answering(meeting, roll_of(meeting, **changes))
    assert caught.value.party == "aggregator" and type(caught.value) is error


def test_a_third_of_a_block_may_be_absent_and_strangers_do_not_matter():
    meeting = Meeting(names(6), least=4)
    member = answering(meeting, roll_of(meeting, absent=("p1", "p2", "nobody")))
    assert member.times.last == 4


def test_a_refused_roll_uses_no_time():
    member = Meeting(names(6)).member("p0")
    for absent in (["p0"], ["aggregator"], ["p1", "p2", "p3"]):
        with pytest.raises(ProtocolError):
            member.encrypt([1], 4, absent)
    with pytest.raises(ValueError, match="must be from -5 to 100"):
        member.encrypt([101], 4)
    member.encrypt([1], 4)
    with pytest.raises(DealReusedError):
        member.encrypt([1], 4)


def test_a_member_needs_its_neighbours_keys_and_a_place():
    meeting = Meeting(names(4))
    around = meeting.groups.neighbourhood("p0")
    streams = meeting.streams("p0", ["p1", "p2", "aggregator"])
    with pytest.raises(ValueError, match="not agreed on a key with p3"):
        Member(meeting.parameters, "p0", "aggregator", around, streams, last_time=NEVER)
    for party, aggregator in (("x", "aggregator"), ("p0", "p1")):
        with pytest.raises(ValueError, match="neighbourhood must contain"):
            Member(meeting.parameters, party, aggregator, around, streams, last_time=NEVER)


@pytest.mark.parametrize("present", [0, 1])
def test_the_aggregator_decrypts_sums_of_two_or_more(present):
    with pytest.raises(ValueError, match=f"at least two parties must be present, got {present}"):
        Meeting(names(4)).aggregator.decrypt({}, 1, 1, names(4)[present:])


def test_parties_that_were_told_different_rolls_have_no_sum():
    """Each accepts its own: an absent party is named to those alone who do not miss it."""
    meeting = Meeting(names(6))
    counts = counts_of(meeting.groups.parties)
    rolls = {p: ["p5"] for p in names(5)} | {"p0": ["p5", "somebody"]}
    received = {p: meeting.member(p).encrypt(counts[p], 1, rolls[p]) for p in names(5)}
    with pytest.raises(UnknownFaultyPartyError, match="not 1 modulo N"):
        meeting.aggregator.decrypt(received, 1, 2, ["p5"])


def test_pair_keys_are_of_one_study_and_wide():
    meeting, other = Meeting("ab"), Meeting("ab", study=b"other")
    (stream,) = meeting.streams("a", ["b"]).values()
    assert pair_key(stream, meeting.parameters) != pair_key(stream, other.parameters)
    bits = meeting.parameters.key_bound.bit_length()
    assert bits - 20 < pair_key(stream, meeting.parameters).bit_length() <= bits + 8


def test_nothing_secret_in_a_repr():
    meeting = Meeting("abc")
    secrets_ = [str(pair)[:12] for pair in meeting.aggregator._pairs.values()]
    shown = repr(meeting.member("a")) + repr(meeting.aggregator)
    assert not any(secret in shown for secret in secrets_)
    assert "Member('a', last_time=-1)" in shown and "3 parties" in shown


def test_a_roll_travels_as_bytes():
    roll = Roll(b"label", 4, ("a", "b"))
    member = Meeting("abc").member("a")
    (expect,) = next(answer_roll(member, [1], 4)).expect.values()
    assert decode(encode(roll), "aggregator", expect) == roll
