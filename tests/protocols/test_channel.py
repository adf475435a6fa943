"""Channels over a network in memory: results as in one process; what goes wrong is named."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tests.protocols.network import QUICK, Killed, Network, Parties, counter_of, same_tables
from tests.protocols.small import data_of, memories
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_mpc.errors import (
    PartyGoneError,
)
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_protocols.errors import (
    PeerAbortedError,
    PeerGoneError,
    PeerTimeoutError,
    QueryRefusedError,
)
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.queries import Describe
from vertibayes_protocols.run_watch import RunWatch
from vertibayes_protocols.session import Answer, Go
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.control import Asked, Taken
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.variables import Family, Rows

DATA = data_of(a="xy", b="z", c="w")
FAMILIES = [Family("x", ("z",)), Family("w", ("x", "y", "z")), Family("y")]


def test_tables_are_those_of_one_process():
    with federate(DATA) as federation:
        local = SecureCounter.of(federation, block_rows=16)
        wanted = local.tables(FAMILIES)
        rounds = federation.traffic.rounds
        links = federation.traffic.bytes_sent
    with Parties(DATA) as parties:
        session, counter = counter_of(parties)
        assert same_tables(counter.tables(FAMILIES), wanted)
        session.close()
        assert set(parties.errors("a", "b", "c", DEALER).values()) == {None}
        traffic = session.transport.traffic
    assert traffic.rounds == rounds
    sent = {p: traffic.bytes_sent[ANALYST, p] - links[ANALYST, p] for p in ("a", "b", "c")}
    assert all(0 < more < 5000 for more in sent.values())


@pytest.mark.parametrize("sites", [2, 4])
def test_k2_is_that_of_one_process(alarm_data, sites):
    data = alarm_data.take(list(alarm_data.variables)[:10])
    split = split_columns(data, sites)
    with federate(split) as federation:
        wanted = k2(SecureCounter.of(federation, order=list(data.variables)))
    with Parties(split) as parties:
        session, counter = counter_of(parties, order=list(data.variables))
        assert k2(counter) == wanted and wanted.edges
        session.close()


def test_a_refusal_ends_nothing_and_a_site_serves_one_session_after_another():
    with Parties(DATA) as parties:
        for _ in range(3):
            session, counter = counter_of(parties)
            with pytest.raises(QueryRefusedError, match="a refuses: tables over 3 records"):
                counter.tables([Family("x")], rows=Rows(0, 0, 3))
            assert counter.tables([Family("x")])[0].sum() == 40
            session.close()
            assert set(parties.errors(*DATA, DEALER).values()) == {None}


def test_nothing_that_travels_tells_a_name_a_state_or_a_masked_column():
    network = Network()
    with Parties(DATA, network) as parties:
        session, counter = counter_of(parties)
        counter.tables(FAMILIES)
        session.close()
        parties.errors(*DATA, DEALER)
    assert len(network.seen) > 60
    whole = b"".join(packet for *_, packet in network.seen)
    for marker in (b"maybe", b"tables", b"describe", b"columns", b"joining", DEALER.encode()):
        assert marker not in whole
    assert not any(np.frombuffer(p[96:], "u1").mean() < 60 for *_, p in network.seen)


# ---- somebody goes -------------------------------------------------------------------------------


class Killer:
    """Kills a party when the nth message of a kind leaves it, seen before it is sealed."""

    def __init__(self, monkeypatch, network, party, kind, place=0):
        self.count, self.done = 0, threading.Event()
        pack = Connection._pack

        def watched(connection, receiver, body):
            if connection.party == party and bytes(body[1 : 1 + body[0]]).decode() == kind:
                self.count += 1
                if self.count == place + 1:
                    network.kill(party)
                    self.done.set()
            return pack(connection, receiver, body)

        monkeypatch.setattr(Connection, "_pack", watched)


PHASES = {
    "meet": ("a", "answer", 0),
    "are the records the same": ("b", "point", 0),
    "they are": ("c", "confirmation", 1),
    "met": ("a", "met", 0),
    "describe": ("a", "answer", 1),
    "description": ("a", "description", 0),
    "agreed to commit": ("b", "answer", 2),
    "joining": ("b", "joining", 0),
    "masked columns": ("a", "columns", 1),
    "committed": ("c", "committed", 0),
    "tables": ("b", "answer", 3),
    "an extension's part": ("a", "part", 0),
    "the dealer's part": (DEALER, "part", 0),
    "the dealer's correction": (DEALER, "correction", 0),
    "the dealer meets": (DEALER, "answer", 0),
    "the dealer agrees": (DEALER, "answer", 1),
    "opening": ("c", "share", 0),
    "the analyst meets": (ANALYST, "meet", 0),
    "the analyst asks": (ANALYST, "describe", 0),
    "the analyst commits": (ANALYST, "commit", 0),
    "the analyst says go": (ANALYST, "go", 1),
    "the analyst asks for tables": (ANALYST, "tables", 0),
    "the analyst lets them commit": (ANALYST, "go", 8),  # go is told to one party after another
    "the analyst lets them count": (ANALYST, "go", 12),
}


@pytest.mark.parametrize("phase", PHASES)
def test_whoever_is_left_ends_with_the_name_of_the_killed(monkeypatch, phase):
    killed, kind, place = PHASES[phase]
    network, data = Network(), data_of(a="xy", b="z", c="w")
    start = time.monotonic()
    with Parties(data, network) as parties:
        killer = Killer(monkeypatch, network, killed, kind, place)
        wanted = Killed if killed == ANALYST else PartyGoneError
        with pytest.raises(wanted) as caught:
            counter_of(parties)[1].tables(FAMILIES)
        assert killer.done.is_set()
        left = {*data, DEALER} - {killed}
        errors = parties.errors(*left)
        if killed != ANALYST:
            errors[ANALYST] = caught.value
        assert {getattr(e, "party", repr(e)) for e in errors.values()} == {killed}, errors
        assert all(isinstance(e, PeerGoneError) for e in errors.values())
    assert time.monotonic() - start < 10


def test_a_study_goes_on_after_a_site_was_killed_and_started_again(monkeypatch):
    """Also under the same study: the site remembers what it committed, and no label is new."""
    with federate(DATA) as federation:
        wanted = SecureCounter.of(federation, block_rows=16).tables(FAMILIES)
    network, kept = Network(), memories("a", "b", "c")
    study = bytes(range(16))
    with Parties(DATA, network, memories=kept) as parties:
        with monkeypatch.context() as patch:
            killer = Killer(patch, network, "b", "columns", 1)
            with pytest.raises(PeerGoneError, match="b: "):
                counter_of(parties, study=study)
            assert killer.done.is_set()
            parties.errors("a", "c", DEALER)
        parties.start("b", DATA["b"])
        session, counter = counter_of(parties, study=study)
        assert same_tables(counter.tables(FAMILIES), wanted)
        session.close()
        assert set(parties.errors(*DATA, DEALER).values()) == {None}
    assert all(len(memory._committed) == 1 for memory in kept.values())


def test_a_party_that_comes_up_late_is_waited_for():
    with Parties(DATA, patience=QUICK._replace(gone=0.1)) as parties:
        parties.network.kill("b")
        parties.threads["b"].join(5)
        threading.Timer(0.6, parties.start, ("b", DATA["b"])).start()
        _, counter = counter_of(parties)
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40


def test_a_party_that_never_comes_is_named():
    with Parties(DATA, patience=QUICK._replace(hello=0.4)) as parties:
        parties.network.kill("b")
        parties.threads["b"].join(5)
        with pytest.raises(PeerGoneError, match=r"b: cannot be reached \(0.4 s; is it started"):
            parties.session()
        assert {e.party for e in parties.errors("a", "c", DEALER).values()} == {"b"}


def test_who_is_late_is_told_soon_and_may_come_then(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.transports.network.SOON", 0.1)
    with Parties(DATA) as parties:
        parties.network.kill("b")
        parties.threads["b"].join(5)

        class Starts(RunWatch):
            def late(self, parties_, seconds):
                told.append((parties_, seconds))
                threading.Timer(0.3, parties.start, ("b", DATA["b"])).start()

        told = []
        session = parties.session(Starts())
        counter = SecureCounter(open_study(session, parties.sites, DEALER))
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40
        assert told == [(["b"], QUICK.hello)]


def test_a_peer_that_is_there_and_silent_is_named():
    patience = QUICK._replace(silent=0.5)
    with Parties(DATA, patience=patience) as parties:
        transport = NetworkTransport(parties.mailbox, (*parties.sites, DEALER))

        def asks_nobody():
            yield Round({}, {"b": Expect(Answer)})

        with pytest.raises(PeerTimeoutError, match="b: can be reached, and is silent") as caught:
            transport.run(asks_nobody())
        assert caught.value.party == "b"
        errors = parties.errors(*DATA, DEALER)
        assert {e.party for e in errors.values()} == {"b"}
        assert "(analyst says so)" in str(errors["a"]) and type(errors["a"]) is PeerAbortedError


def test_a_program_that_fails_tells_its_class_and_no_more(monkeypatch):
    def fails(*_):
        raise RuntimeError("a record of Ms Smith")

    with Parties(DATA) as parties:
        monkeypatch.setattr(parties.roles["a"].memory, "commit", fails)
        with pytest.raises(PeerAbortedError) as caught:
            counter_of(parties)
        # The word of a party that passes it on may arrive before a's own.
        others = [party for party in (*DATA, DEALER) if party != "a"]
        said = "a: failed (RuntimeError)"
        assert str(caught.value) in [said, *(f"{said} ({party} says so)" for party in others)]
        assert "Smith" not in str(caught.value)
        errors = parties.errors(*DATA, DEALER)
        assert type(errors.pop("a")) is RuntimeError
        assert {e.party for e in errors.values()} == {"a"}


def test_an_analyst_that_begins_anew_without_a_word_ends_the_old_session():
    with Parties(DATA) as parties:
        counter_of(parties)  # neither closed nor aborted: it was killed
        session, counter = counter_of(parties)
        assert set(parties.errors(*DATA, DEALER).values()) == {None}
        assert counter.tables([Family("x")])[0].sum() == 40
        session.close()


def test_a_party_that_was_started_again_says_so():
    with Parties(DATA) as parties:
        _, counter = counter_of(parties)
        parties.network.kill("c")
        parties.threads["c"].join(5)
        parties.start("c", DATA["c"])
        with pytest.raises(PeerGoneError, match="c: was started again"):
            counter.tables([Family("w")])
        refused = parties.mailboxes["c"].refused
        assert any("another session" in error.reason for error in refused)


# ---- rounds that can do without some, and senders that nobody answers ----------------------------


def collects(parties, need):
    """Ask all to describe themselves; return who did, of those that were needed."""
    expect = dict.fromkeys(parties, Expect(Answer, 2000))
    inbox = yield Round(dict.fromkeys(parties, Describe(tuple(parties))), expect, need=need)
    yield Round(dict.fromkeys(parties, Go(False)), {})
    return sorted(inbox)


@pytest.mark.parametrize(("need", "heard"), [(1, ["b", "c"]), (2, ["b", "c"]), (3, None)])
def test_a_round_goes_on_without_the_gone_if_enough_are_left(need, heard):
    with Parties(DATA) as parties:
        transport = NetworkTransport(parties.mailbox, (*parties.sites, DEALER))
        parties.network.kill("a")
        if heard is None:
            with pytest.raises(PeerGoneError, match="a: cannot be reached"):
                transport.run(collects(parties.sites, need))
        else:
            assert transport.run(collects(parties.sites, need)) == heard
            transport.close()


def test_a_program_may_catch_that_a_peer_is_gone():
    def tolerant():
        try:
            yield from collects(("a", "b", "c"), None)
        except PartyGoneError as error:
            return error.party

    with Parties(DATA) as parties:
        transport = NetworkTransport(parties.mailbox, (*parties.sites, DEALER))
        parties.network.kill("a")
        assert transport.run(tolerant()) == "a"
        transport.close()


def test_who_is_not_answered_waits_until_what_it_sent_is_read(monkeypatch):
    """As much as the window is sent ahead, and not everything."""
    told = []
    tell = Connection._tell

    def noted(connection, controls, patience):
        told.extend((connection.party, type(control)) for control in controls.values())
        tell(connection, controls, patience)

    monkeypatch.setattr(Connection, "_tell", noted)
    with federate(DATA) as federation:
        wanted = SecureCounter.of(federation, block_rows=16).tables(FAMILIES)
    for window, asks in ((1 << 25, False), (100, True)):
        monkeypatch.setattr("vertibayes_protocols.transports.connection.WINDOW", window)
        told.clear()
        with Parties(DATA) as parties:
            session, counter = counter_of(parties)
            assert same_tables(counter.tables(FAMILIES), wanted)
            session.close()
            parties.errors(*DATA, DEALER)
        assert ((DEALER, Asked) in told) == asks
        assert (Taken in [kind for _, kind in told]) == asks
