from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import committed, count, data_of, packets, sealed, seeded, study_of
from tests.randomness import SeededRandomness
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.queries import Commit, Describe
from vertibayes_protocols.queries.opening.commit import Committed, Joining
from vertibayes_protocols.queries.opening.comparing import Received
from vertibayes_protocols.session import Answer, Go
from vertibayes_protocols.transports.local import LocalTransport
from vertibayes_protocols.wire import ENVELOPE, name_digest

DATA = data_of(a="xy", b="z", c="w")


def whole_run(seed=b"test"):
    federation = federate(DATA, randomness=SeededRandomness(seed))
    federation.session.ask(Describe(federation.sites))
    study = federation.session.ask(Commit.of(study_of(DATA))).study
    tables = count(federation, study, "xz", "xyzw", "w")
    return federation.traffic, tables


def test_every_byte_is_counted_on_its_link(monkeypatch):
    with packets(monkeypatch) as seen:
        traffic, _ = whole_run()
    links = Counter()
    for sent, (header, body) in seen:
        links[sent.sender, sent.receiver] += len(header) + len(body)
    assert traffic.bytes_sent == links and traffic.bytes == sum(links.values())
    assert traffic.messages == len(seen)
    assert traffic.rounds == max(sent.depth for sent, _ in seen)
    assert not [link for link in links if link[1] == DEALER and link[0] not in (ANALYST, *DATA)]


def test_a_description_takes_four_rounds_and_four_messages_a_site():
    federation = seeded(DATA)
    federation.session.ask(Describe(("a", "b")))
    traffic = federation.traffic
    assert (traffic.messages, traffic.rounds) == (8, 4)
    assert set(traffic.bytes_sent) == {
        ("analyst", "a"),
        ("a", "analyst"),
        ("analyst", "b"),
        ("b", "analyst"),
    }
    federation.session.ask(Describe(("a",)))
    assert (traffic.messages, traffic.rounds) == (12, 8)


def test_the_messages_of_a_commitment(monkeypatch):
    with packets(monkeypatch) as seen:
        committed(DATA)
    sent = Counter(type(s.message) for s, _ in seen)
    # 3 sites to each other and the dealer, the dealer to the sites; 40 records in blocks of 16;
    # digests of the first messages, also from the dealer, and of the columns
    received = {Joining: 12, Received: 6 + 3 + 6, Columns: 18}
    assert sent == {Commit: 4, Answer: 4, Go: 4, **received, Committed: 3}


def test_a_run_is_the_same_under_the_same_randomness_and_no_other(monkeypatch):
    runs = []
    for seed in (b"test", b"test", b"another"):
        with packets(monkeypatch) as seen:
            traffic, tables = whole_run(seed)
        runs.append((traffic, [packet for _, packet in seen], [t.tolist() for t in tables]))
    assert runs[0] == runs[1]
    assert runs[0][0] == runs[2][0] and runs[0][2] == runs[2][2]
    assert not set(runs[0][1]) & set(runs[2][1])


# ---- packets changed on their way ----------------------------------------------------------------


def values(change):
    """Change a message's array, and seal it anew."""
    return lambda sent, packet: sealed(
        packet, replace(sent.message, values=change(sent.message.values))
    )


def envelope(**changes):
    return lambda _, packet: sealed(packet, **changes)


def relabelled(sent, packet):
    return sealed(packet, replace(sent.message, label=bytes(len(sent.message.label))))


def flip_magic(_, packet):
    return bytes([packet[0][0] ^ 1]) + packet[0][1:], packet[1]


SECOND_COLUMNS = 3  # on the link from a to b, after joining, digests and the first columns


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (lambda _, p: (p[0], p[1][:-1]), MalformedMessageError, "announced"),
        (lambda _, p: (p[0], p[1] + b"\0"), MalformedMessageError, "announced"),
        (
            lambda _, p: (p[0][:-1], p[1]),
            MalformedMessageError,
            f"of {ENVELOPE.size - 1} bytes, cut short",
        ),
        (lambda _, p: sealed((p[0], p[1][:-64])), MalformedMessageError, "cannot be read"),
        (flip_magic, MalformedMessageError, "announced"),
        (values(lambda v: v[:-1]), MalformedMessageError, "shape"),
        (values(lambda v: v[None]), MalformedMessageError, "shape"),
        (values(lambda v: v.astype(np.uint32)), MalformedMessageError, "uint32|type|elements"),
        (
            values(lambda v: np.repeat(v, 4, 0)),
            MalformedMessageError,
            "cells more than are allowed",
        ),
        (relabelled, UnexpectedMessageError, "Columns of another query"),
        (
            lambda _, p: sealed(p, Committed(bytes(32))),
            UnexpectedMessageError,
            "columns is expected",
        ),
        (
            lambda _, p: sealed(p, Joining((), b"", b"", b"")),
            UnexpectedMessageError,
            "columns is expected",
        ),
        (envelope(session=bytes(16)), UnexpectedMessageError, "another session"),
        (envelope(sender=name_digest("c")), UnexpectedMessageError, "somebody else"),
        (envelope(receiver=name_digest("c")), UnexpectedMessageError, "somebody else"),
        (envelope(counter=0), ReplayedMessageError, "message 0, delivered before"),
        (envelope(counter=1), ReplayedMessageError, "message 1, delivered before"),
        (envelope(counter=4), UnexpectedMessageError, "message 4, where message 3 is expected"),
    ],
)
def test_a_changed_packet_is_an_error_that_names_its_sender(monkeypatch, change, error, reason):
    def second_from_a_to_b(sent, packet):
        link, counter = (sent.sender, sent.receiver), ENVELOPE.unpack(packet[0])[4]
        chosen = link == ("a", "b") and counter == SECOND_COLUMNS
        return change(sent, packet) if chosen else packet

    with packets(monkeypatch, second_from_a_to_b):
        federation = seeded(DATA)
    with pytest.raises(error, match=reason) as caught:
        federation.session.ask(Commit.of(study_of(DATA)))
    assert type(caught.value) is error and caught.value.party == "a"
    with pytest.raises(TransportError, match="the session is over"):
        federation.session.ask(Describe(("a",)))


def test_a_packet_delivered_twice_is_a_replay(monkeypatch):
    seen = []

    def deliver_the_first_again(sent, packet):
        if (sent.sender, sent.receiver) != ("a", "b"):
            return packet
        seen.append(packet)
        return seen[0]

    with packets(monkeypatch, deliver_the_first_again):
        federation = seeded(DATA)
    with pytest.raises(ReplayedMessageError) as caught:
        federation.session.ask(Commit.of(study_of(DATA)))
    assert caught.value.party == "a"


def test_a_packet_of_an_earlier_session_is_refused(monkeypatch):
    with packets(monkeypatch) as earlier:
        federate(DATA, randomness=SeededRandomness(b"1")).session.ask(Describe(("a",)))
    answers = [packet for sent, packet in earlier if type(sent.message) is Answer]
    with packets(monkeypatch, lambda s, p: answers[0] if type(s.message) is Answer else p):
        federation = federate(DATA, randomness=SeededRandomness(b"2"))
    with pytest.raises(UnexpectedMessageError, match="a: a message of another session"):
        federation.session.ask(Describe(("a",)))


# ---- the end -------------------------------------------------------------------------------------


def test_a_closed_federation_refuses():
    with seeded(DATA) as federation:
        assert set(federation.session.ask(Describe(("a", "b")))) == {"a", "b"}
    with pytest.raises(TransportError, match="over"):
        federation.session.ask(Describe(("a",)))


def test_closing_ends_the_programs_where_they_wait():
    ended = []

    def waits():
        try:
            yield Round({}, {"analyst": Expect(Go)}, idle=True)
        finally:
            ended.append("a")

    transport = LocalTransport("analyst", {"a": waits()}, SeededRandomness())
    assert not ended
    transport.close()
    assert ended == ["a"]


def test_a_party_that_has_ended_is_named():
    def ends():
        yield Round({"analyst": Go(True)}, {})

    def waits_for_two():
        yield Round({}, {"a": Expect(Go)})
        yield Round({}, {"a": Expect(Go)})

    transport = LocalTransport("analyst", {"a": ends()}, SeededRandomness())
    with pytest.raises(ProtocolError, match="does not go on; analyst waits") as caught:
        transport.run(waits_for_two())
    assert caught.value.parties == ("a",)


@pytest.mark.parametrize("names", [(), ("a", "dealer"), ("analyst",)])
def test_a_federation_of_no_sites_or_of_names_that_are_taken_is_refused(names):
    with pytest.raises(ValueError, match=r"at least one site|no site can have that name"):
        federate(dict.fromkeys(names, DATA["a"]))
