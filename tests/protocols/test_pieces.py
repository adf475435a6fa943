"""What needs no NVFlare of the transport over it: pieces of packets, names, addresses."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import TransportError
from protocols.transports import pieces as module
from protocols.transports.nvflare import connect, start_relay
from protocols.transports.pieces import Pieces


def taken(pieces):
    found = []
    while (packet := pieces.next(0.0)) is not None:
        found.append(packet)
    return found


@given(st.lists(st.lists(st.binary(max_size=3), min_size=1, max_size=4), max_size=5), st.data())
def test_packets_are_put_together_once_however_often_pieces_come(packets, data):
    pieces, sent, number = Pieces(), [], 0
    for packet in packets:
        for place, piece in enumerate(packet):
            sent.append((number, piece, place == 0, place == len(packet) - 1))
            number += 1
    for place, piece in enumerate(sent):
        pieces.add("a", b"epoch", *piece)
        again = data.draw(st.integers(0, place))
        pieces.add("a", b"epoch", *sent[again])
    assert taken(pieces) == [("a", b"".join(packet)) for packet in packets]
    assert pieces._queued == 0


def test_a_packet_whose_beginning_was_missed_is_dropped():
    pieces = Pieces()
    pieces.add("a", b"1", 7, b"end", False, True)
    pieces.add("a", b"1", 8, b"whole", True, True)
    assert taken(pieces) == [("a", b"whole")]


def test_a_packet_that_was_given_up_is_dropped():
    pieces = Pieces()
    pieces.add("a", b"1", 0, b"given up", True, False)
    pieces.add("a", b"1", 2, b"whole", True, True)
    assert taken(pieces) == [("a", b"whole")] and pieces._queued == 0


def test_a_sender_that_was_started_again_begins_anew():
    pieces = Pieces()
    pieces.add("a", b"1", 5, b"old", True, False)
    pieces.add("a", b"2", 0, b"new", True, True)
    pieces.add("b", b"1", 0, b"b's", True, True)
    assert taken(pieces) == [("a", b"new"), ("b", b"b's")]


def test_more_than_may_wait_is_not_taken_until_some_was_read(monkeypatch):
    monkeypatch.setattr(module, "MOST_QUEUED", 10)
    pieces = Pieces()
    assert pieces.add("a", b"1", 0, b"x" * 11, True, True)
    assert not pieces.add("a", b"1", 1, b"y", True, True)
    assert pieces.next(0.0) == ("a", b"x" * 11)
    assert pieces.add("a", b"1", 1, b"y", True, True)
    assert taken(pieces) == [("a", b"y")]


def test_senders_that_are_remembered_are_bounded():
    pieces = Pieces()
    for i in range(10 * module.MOST_STREAMS):
        pieces.add("a", i.to_bytes(4, "big"), 0, b"x", True, False)
    assert len(pieces._streams) <= module.MOST_STREAMS


@pytest.mark.parametrize("name", ["", "server", "relay", "a.b", "a b", "-a", "x" * 65, "a/b", "ä"])
def test_names_that_cellnet_would_take_for_something_else_are_refused(name):
    with pytest.raises(ValueError, match="cannot be a party's name"):
        connect(name, "127.0.0.1:1", certificates=None)


@pytest.mark.parametrize("address", ["", "host", "host:", ":8102", "host:x", "host:70000", "::1:8"])
def test_what_is_no_address_is_named(address):
    for start in (start_relay, lambda *a, **o: connect("a", *a, **o)):
        with pytest.raises(TransportError, match="is no address: host:port is wanted"):
            start(address, certificates=None)


def test_without_nvflare_one_error_tells_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvflare.fuel.f3.cellnet", None)
    with pytest.raises(TransportError, match=r"pip install 'vertibayes\[nvflare\]'"):
        connect("a", "127.0.0.1:1", certificates=None)
