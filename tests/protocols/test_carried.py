"""A party's link by way of the process that started it."""

import os
import socket
from contextlib import closing
from multiprocessing import Pipe

import pytest

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import carried
from vertibayes_protocols.transports.carried import CarriedLink, End, TakenNumbers


@pytest.fixture
def ends():
    """A carrier that knows no party but the dealer, what it was given, and the party's link."""
    given, (ours, theirs) = [], Pipe()

    def take(*packet):
        given.append(packet)
        return packet[0] == "dealer"

    with closing(End(ours, take)) as carrier, CarriedLink(theirs) as link:
        yield carrier, given, link


def test_packets_go_both_ways_with_receipts(ends):
    carrier, given, link = ends
    packet = bytes(range(256)) * 5000  # with ends of lines
    assert link.deliver({"dealer": packet}, 2.5) == {}
    assert given == [("dealer", packet, 2.5)]
    assert carrier.pass_on("analyst", packet, None).result(5) is True
    assert link.receive(5.0) == ("analyst", packet)
    assert link.receive(0.0) is None


def test_a_receiver_that_the_carrier_does_not_reach_is_named(ends):
    link = ends[2]
    failed = link.deliver({"dealer": b"one", "clinic": b"two"}, 0.0)
    assert [(peer, error.party) for peer, error in failed.items()] == [("clinic", "clinic")]


def test_more_than_can_wait_is_refused_until_it_is_read(ends, monkeypatch):
    carrier, _, link = ends
    monkeypatch.setattr(carried, "MOST_WAITING", 4)
    received = [carrier.pass_on("analyst", b"12345", None).result(5) for _ in range(2)]
    assert received == [True, False]
    assert link.receive(5.0) == ("analyst", b"12345")
    assert carrier.pass_on("analyst", b"6", None).result(5) is True


def test_a_party_whose_carrier_has_ended_waits_for_nothing(ends):
    carrier, _, link = ends
    link.wake()
    assert link.receive(5.0) is None
    with socket.socket(fileno=os.dup(carrier._connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)  # as the system does when the process ends
    assert carrier.pass_on("analyst", b"lost", None).result(5) is False
    with pytest.raises(TransportError, match="carries this party's packets has ended"):
        link.receive(5.0)
    assert link.deliver({"dealer": b"lost"}, 60.0).keys() == {"dealer"}


def test_a_receipt_that_never_comes_is_waited_for_no_longer_than_the_patience(monkeypatch):
    monkeypatch.setattr(carried, "GRACE_SECONDS", 0.0)
    ours, theirs = Pipe()
    with closing(ours), CarriedLink(theirs) as link:
        assert link.deliver({"dealer": b"lost"}, 0.05).keys() == {"dealer"}


@pytest.mark.parametrize("frame", [b"not json\nxx", b"{}\n", b"[1]\n", b"\xff\n", b'"address"\n'])
def test_what_is_no_frame_ends_the_link(frame):
    ours, theirs = Pipe()
    with closing(ours), CarriedLink(theirs) as link:
        ours.send_bytes(frame)
        with pytest.raises(TransportError, match="or has sent what is not a packet"):
            link.receive(5.0)
        assert link.deliver({"dealer": b"lost"}, 60.0).keys() == {"dealer"}


def test_a_packet_that_a_later_one_has_overtaken_is_not_taken_for_one_that_came(monkeypatch):
    monkeypatch.setattr(carried, "MOST_NUMBERS", 2)
    taken = TakenNumbers()
    taken.add("north", b"epoch", 6)
    assert taken.has("north", b"epoch", 6) and not taken.has("north", b"epoch", 5)
    assert not taken.has("south", b"epoch", 6) and not taken.has("north", b"later", 6)
    taken.add("north", b"epoch", 5)
    taken.add("north", b"epoch", 7)
    assert [taken.has("north", b"epoch", number) for number in (5, 6, 7)] == [True, False, True]
    taken.add("north", b"later", 1)
    assert not taken.has("north", b"epoch", 7)
