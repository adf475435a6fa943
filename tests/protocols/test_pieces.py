"""Pieces of packets, names of parties, addresses of relays."""

from __future__ import annotations

from time import monotonic
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import pieces as module
from vertibayes_protocols.transports.pieces import Pieces, count_of, piece_of
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import connect


def queued(pieces):
    return sum(room.queued for room in (*pieces._rooms.values(), pieces._strange))


def taken(pieces):
    found = []
    while (packet := pieces.next(0.0)) is not None:
        found.append(packet)
    return found


@given(st.lists(st.lists(st.binary(max_size=3), min_size=1, max_size=4), max_size=5), st.data())
def test_packets_are_put_together_once_in_whatever_order_their_pieces_come(packets, data):
    pieces, before = Pieces("ab"), []
    for number, packet in enumerate(packets):
        sent = [(number, i, len(packet), piece) for i, piece in enumerate(packet)]
        for piece in data.draw(st.permutations(sent)):
            pieces.add("a", b"epoch", *piece)
            before.append(piece)
            pieces.add("a", b"epoch", *data.draw(st.sampled_from(before)))  # its receipt was lost
    assert taken(pieces) == [("a", b"".join(packet)) for packet in packets]
    assert queued(pieces) == 0


@given(st.binary(max_size=20))
def test_a_packet_is_the_pieces_that_it_is_cut_into(packet):
    with mock.patch.object(module, "PIECE", 3):
        cut = [piece_of(packet, i) for i in range(count_of(packet))]
    assert b"".join(cut) == packet and max(map(len, cut)) <= 3 and (cut == [b""] or all(cut))


def test_a_packet_that_was_given_up_is_dropped():
    pieces = Pieces("ab")
    pieces.add("a", b"1", 0, 0, 2, b"given up")
    pieces.add("a", b"1", 2, 0, 1, b"whole")
    pieces.add("a", b"1", 0, 1, 2, b"came late")
    assert taken(pieces) == [("a", b"whole")] and queued(pieces) == 0


def test_pieces_that_disagree_on_their_count_are_no_error():
    pieces = Pieces("ab")
    pieces.add("a", b"1", 0, 5, 6, b"x")
    pieces.add("a", b"1", 0, 0, 2, b"y")
    assert taken(pieces) == [("a", b"yx")] and queued(pieces) == 0


def test_a_sender_that_was_started_again_begins_anew():
    pieces = Pieces("ab")
    pieces.add("a", b"1", 5, 0, 2, b"old")
    pieces.add("a", b"2", 0, 0, 1, b"new")
    pieces.add("b", b"1", 0, 0, 1, b"b's")
    assert taken(pieces) == [("a", b"new"), ("b", b"b's")]


def test_more_than_may_wait_is_not_taken_until_some_was_read(monkeypatch):
    monkeypatch.setattr(module, "MOST_QUEUED", 10)
    monkeypatch.setattr(module, "PIECE", 11)
    pieces = Pieces("ab")
    assert pieces.add("a", b"1", 0, 0, 1, b"x" * 11)
    assert not pieces.add("a", b"1", 1, 0, 1, b"y")
    assert pieces.next(0.0) == ("a", b"x" * 11)
    assert pieces.add("a", b"1", 1, 0, 1, b"y")
    assert taken(pieces) == [("a", b"y")]


def test_processes_that_are_remembered_are_bounded():
    pieces = Pieces("ab")
    for sender in ("a", "stranger"):
        for i in range(10 * module.MOST_STREAMS):
            pieces.add(sender, i.to_bytes(4, "big"), 0, 0, 2, b"x")
    assert queued(pieces) == 2 * module.MOST_STREAMS * module.cost(b"x")


def test_what_was_receipted_is_kept_until_it_is_complete_or_given_up(monkeypatch):
    """More processes than are remembered are told to send again; none loses a piece."""
    monkeypatch.setattr(module, "MOST_STREAMS", 3)
    pieces = Pieces("a")

    def add(process, piece):
        return pieces.add("a", b"%d" % process, 0, piece, 2, b"%d" % piece)

    assert [add(process, 0) for process in range(4)] == [True, True, True, False]
    assert add(0, 1) and add(3, 0), "a complete one gives way"
    assert all(add(process, 1) for process in (1, 2, 3))
    assert taken(pieces) == [("a", b"01")] * 4 and queued(pieces) == 0
    assert [add(process, 0) for process in range(4, 8)] == [True, True, True, False]
    monkeypatch.setattr(module, "monotonic", lambda: monotonic() + 2 * module.GIVEN_UP)
    assert add(7, 0) and queued(pieces) == 3 * module.cost(b"0"), "one that was given up"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "MOST_QUEUED", 10_000)
    monkeypatch.setattr(module, "MOST_STRANGE", 10_000)
    monkeypatch.setattr(module, "PIECE", 1000)
    return Pieces("ab")


@pytest.mark.parametrize("sender", ["b", "stranger"])
@pytest.mark.parametrize("size", [0, 100])
def test_packets_that_never_end_or_are_empty_keep_nobody_else_out(small, sender, size):
    for index in range(10):
        small.add(sender, b"epoch", 0, index, 11, bytes(size))
    packets = 0
    while small.add(sender, b"another", packets, 0, 1, b"") and packets < 1000:
        packets += 1
    assert packets < 50
    assert small.add("a", b"epoch", 0, 0, 1, b"hello")
    assert taken(small)[-1] == ("a", b"hello")


def test_a_packet_that_is_too_large_is_not_begun_and_keeps_its_sender_not_out(small):
    assert not any(small.add("b", b"1", 0, i, 12, bytes(1000)) for i in range(12))
    for i in range(9):
        small.add("b", b"1", 1, i, 11, bytes(1000))  # given up
    assert small.add("b", b"1", 2, 0, 1, b"next") and taken(small) == [("b", b"next")]
    assert queued(small) == 0


@pytest.mark.parametrize("name", ["", "server", "relay", "a.b", "a b", "-a", "x" * 65, "a/b", "ä"])
def test_names_that_no_party_can_have_are_refused(name):
    with pytest.raises(ValueError, match="cannot be a party's name"):
        connect(name, "127.0.0.1:1", (), certificates=None)


@pytest.mark.parametrize("address", ["", "host", "host:", ":8102", "host:x", "host:70000", "::1:8"])
def test_what_is_no_address_is_named(address):
    for start in (start_relay, lambda *a, **o: connect("a", *a, (), **o)):
        with pytest.raises(TransportError, match="is not an address: host:port or wss:"):
            start(address, certificates=None)
