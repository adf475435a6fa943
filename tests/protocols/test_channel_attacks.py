"""Channels: packets changed, lost, repeated on their way; parties that lie; strangers."""

from __future__ import annotations

from time import monotonic, sleep

import pytest

from tests.protocols.network import QUICK, Network, Parties, counter_of, identities
from tests.protocols.small import data_of
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_protocols.errors import PeerAbortedError, PeerGoneError, QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.seal import HELLO, UNKNOWN, Identity
from vertibayes_protocols.session import Go
from vertibayes_protocols.transports.mailbox import LatePacketsError
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.variables import Family

DATA = data_of(a="xy", b="z", c="w")
FAMILIES = [Family("x", ("z",)), Family("w", ("x", "y", "z")), Family("y")]


# ---- somebody lies, or the network does ----------------------------------------------------------


def after(count, sender, receiver, change):
    """Change what a link carries from its nth packet on; packet 0 is the hello."""
    seen = []

    def changed(s, r, packet):
        if (s, r) != (sender, receiver):
            return packet
        seen.append(packet)
        return change(packet, seen) if len(seen) > count else packet

    return changed


def flipped(place):
    def change(packet, _):
        turned = bytearray(packet)
        turned[place] ^= 1
        return bytes(turned)

    return change


ATTACKS = {
    "a changed text": (flipped(-20), MalformedMessageError),
    "a changed counter": (flipped(60), MalformedMessageError),
    "a changed sender": (flipped(25), UnexpectedMessageError),
    "a truncated text": (lambda p, _: p[:-1], MalformedMessageError),
    "a replay": (lambda p, seen: [p, p], ReplayedMessageError),
    "an old packet": (lambda p, seen: [p, seen[1]], ReplayedMessageError),
    "an older hello": (lambda p, seen: [another_hello(seen[0]), p], MalformedMessageError),
    "a packet lost": (lambda p, seen: None if len(seen) == 4 else p, PeerGoneError),
}


def another_hello(packet):
    """Return a hello of the same session that its sender has not said."""
    return packet[:-1] + bytes([packet[-1] ^ 1])


FROM_DEALER = "a changed text", "a changed counter", "a changed sender", "a truncated text"
LINKS = [(attack, link) for attack in ATTACKS for link in (("a", "b"), ("a", ANALYST), ("c", "a"))]


@pytest.mark.parametrize(
    ("attack", "link"), [*LINKS, *((attack, (DEALER, "b")) for attack in FROM_DEALER)]
)
def test_packets_changed_on_their_way_end_the_session_with_their_sender_named(attack, link):
    change, wanted = ATTACKS[attack]
    network = Network(after(3 if link[0] != DEALER else 1, *link, change))
    with Parties(DATA, network) as parties:
        with pytest.raises(ProtocolError) as caught:
            counter_of(parties)[1].tables(FAMILIES)
        errors = {ANALYST: caught.value, **parties.errors(*DATA, DEALER)}
        assert {e.party for e in errors.values()} == {link[0]}, errors
        assert type(errors[link[1]]) is wanted


@pytest.mark.parametrize(
    "packet",
    [b"", b"x" * 50, b"VBS1" + bytes(300), b"VBS1\2" + bytes(107), b"VBS1\1" + bytes(200)],
    ids=lambda packet: f"{len(packet)} bytes",
)
def test_bytes_from_nowhere_are_noted_and_change_nothing(packet):
    with Parties(DATA) as parties:
        session, counter = counter_of(parties)
        for party in (*DATA, DEALER, ANALYST):
            for sender in ("zoe", "a", ANALYST):
                if sender != party:
                    parties.network.boxes[party].put((sender, packet))
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40
        session.close()
        assert set(parties.errors(*DATA, DEALER).values()) == {None}
        assert {e.party for e in parties.mailboxes["b"].refused} >= {"zoe"}


def test_packets_of_an_earlier_session_are_turned_away_by_name():
    network = Network()
    with Parties(DATA, network) as parties:
        session, _ = counter_of(parties)
        session.close()
        parties.errors(*DATA, DEALER)
        old = [packet for s, r, packet in network.seen if (s, r) == (ANALYST, "a")]
        session, counter = counter_of(parties)
        for packet in old:
            network.boxes["a"].put((ANALYST, packet))
        assert counter.tables([Family("x")])[0].sum() == 40
        session.close()
        assert parties.errors("a") == {"a": None}
        reasons = [(type(e), e.party, e.reason) for e in parties.mailboxes["a"].refused]
    hello = ReplayedMessageError, ANALYST, "a hello of a session that has begun before"
    assert reasons.count(hello) == 1
    late = LatePacketsError, ANALYST, "late packets of a session of analyst that is over here"
    assert reasons.count(late) == 1 and len(old) > 3


def test_a_site_with_another_pinned_key_of_a_party_refuses_it():
    stranger = identities("a", DEALER, ANALYST, seed=b"stranger")
    for party in ("a", DEALER, ANALYST):
        known = identities(*DATA, DEALER, ANALYST)
        wrong = {**known["b"].peers, party: stranger[party].keys.public}
        pinned = {"b": Identity("b", known["b"].keys, wrong)}
        with Parties(DATA, patience=QUICK._replace(hello=1.0, silent=1.0), pinned=pinned) as ps:
            with pytest.raises((ProtocolError, QueryRefusedError)) as caught:
                counter_of(ps)[1].tables(FAMILIES)
            if isinstance(caught.value, QueryRefusedError):  # by `Meet`, before that hello came
                refused = (
                    f"b refuses: the study has another public key for {party!r} than is pinned"
                )
                assert str(caught.value).startswith(refused)
                continue
            assert caught.value.party in {party, "b"}
            if party != ANALYST:
                error = ps.errors("b")["b"]
                assert error.party in {party, "b"} and "not the one pinned" in str(error)
            else:
                assert "not the one pinned" in str(ps.mailboxes["b"].refused[0])


PINS = {  # whose identity is not what the others take it for, and how
    "another private key of b": ("b", True),
    "another private key of the dealer": (DEALER, True),
    "another key of the analyst pinned by b": ("b", False),
    "another key of the analyst pinned by the dealer": (DEALER, False),
}


@pytest.mark.parametrize("which", PINS)
def test_who_cannot_open_the_analysts_hello_is_named_at_once(which):
    """It cannot be told under keys that both have; it is told all the same, before a time-out."""
    (party, own), everybody = PINS[which], (*DATA, DEALER, ANALYST)
    known, other = identities(*everybody), identities(*everybody, seed=b"other")
    keys = other[party].keys if own else known[party].keys
    peers = dict(known[party].peers)
    peers |= {} if own else {ANALYST: other[ANALYST].keys.public}
    patience = QUICK._replace(hello=20.0)
    with Parties(DATA, patience=patience, pinned={party: Identity(party, keys, peers)}) as parties:
        start = monotonic()
        with pytest.raises(MalformedMessageError, match=r"that of analyst is not") as caught:
            counter_of(parties)
        assert caught.value.party == party and monotonic() - start < 5
        others = parties.errors(*({*DATA, DEALER} - {party}))
        assert {e.party for e in others.values()} == {party}
        assert "a hello that does not open" in str(parties.mailboxes[party].refused[0])


def test_a_hello_changed_on_its_way_is_told_to_its_sender():
    network = Network(after(0, ANALYST, "b", flipped(-20)))
    with Parties(DATA, network) as parties:
        with pytest.raises(PeerGoneError, match=r"b: cannot open a hello .* changed on its way"):
            counter_of(parties)


def test_only_a_hello_is_answered_and_an_answer_to_another_session_ends_nothing():
    other = identities(*DATA, DEALER, ANALYST, seed=b"other")
    with Parties(DATA) as parties:
        session, counter = counter_of(parties)
        for count, kind in enumerate((HELLO, UNKNOWN), 1):
            packet = other[ANALYST].seal_statically("b", kind, bytes(16), b"", SystemRandomness())
            before = len(parties.network.seen)
            parties.network.boxes["b"].put((ANALYST, packet))
            refused = parties.mailboxes["b"].refused
            wait_until(lambda: len(refused) == count)  # noqa: B023 (called at once)
            answers = [
                p for s, r, p in parties.network.seen[before:] if s == "b" and p[4] == UNKNOWN
            ]
            assert len(answers) == (kind == HELLO)
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40
        session.close()


def wait_until(condition, seconds=5.0):
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end
        sleep(0.01)


def test_a_site_that_does_not_know_a_party_refuses_the_session():
    known = identities(*DATA, DEALER, ANALYST)
    fewer = {p: key for p, key in known["b"].peers.items() if p != "c"}
    with Parties(DATA, pinned={"b": Identity("b", known["b"].keys, fewer)}) as parties:
        with pytest.raises(PeerAbortedError, match="b: has not pinned the key of c"):
            counter_of(parties)
        assert {e.party for e in parties.errors("a", "c", DEALER).values()} == {"b"}


def test_an_analyst_must_have_pinned_all_parties():
    with (
        Parties(DATA) as parties,
        pytest.raises(ValueError, match="the keys of zoe are not pinned"),
    ):
        NetworkTransport(parties.mailbox, ("a", "zoe"))


def test_a_party_outside_the_session_is_neither_sent_to_nor_heard():
    with Parties(DATA) as parties:
        for step in (Round({"c": Go(True)}, {}), Round({}, {"c": Expect(Go)})):
            transport = NetworkTransport(parties.mailbox, ("a", "b"))

            def program(step=step):
                yield step

            with pytest.raises(ProtocolError, match="c: takes no part in this session"):
                transport.run(program())
            assert {e.party for e in parties.errors("a", "b").values()} == {"c", "analyst"} - {"c"}
