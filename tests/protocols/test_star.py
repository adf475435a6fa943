"""Star sessions over a network in memory: parties that stay away, die and come back."""

from __future__ import annotations

import threading
import time

import pytest

from tests.protocols.network import QUICK, Network, Parties, identities
from tests.protocols.small import data_of
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_protocols.errors import PeerAbortedError, PeerGoneError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.queries import Describe
from vertibayes_protocols.run_watch import RunWatch
from vertibayes_protocols.seal import Identity
from vertibayes_protocols.session import Answer, Go
from vertibayes_protocols.transports.network import NetworkTransport

DATA = data_of(a="xy", b="z", c="w")
SITES = tuple(DATA)


def only_the_analyst_pinned():
    """Each site knows the analyst's key, and that of nobody else."""
    known = identities(*DATA, DEALER, ANALYST)
    pins = {ANALYST: known[ANALYST].keys.public}
    return {site: Identity(site, known[site].keys, pins) for site in DATA}


def star_of(parties, **options):
    return NetworkTransport(parties.mailbox, SITES, star=True, **options)


def start(network=None, patience=QUICK):
    return Parties(DATA, network, patience, pinned=only_the_analyst_pinned())


def stop(parties, site):
    parties.network.kill(site)
    parties.threads[site].join(5)


def collects(sites, need=None):
    """Ask sites to describe themselves, drop the query, and return who has agreed to it."""
    expect = dict.fromkeys(sites, Expect(Answer, 2000))
    inbox = yield Round(dict.fromkeys(sites, Describe(sites)), expect, need=need)
    yield Round(dict.fromkeys(sites, Go(False)), {})
    return sorted(inbox)


def test_a_star_needs_the_analysts_key_alone_and_no_packet_between_the_parties():
    network = Network()
    with start(network) as parties:
        transport = star_of(parties)
        assert transport.run(collects(SITES)) == [*SITES]
        assert transport.absent == frozenset()
        transport.close()
        assert set(parties.errors(*SITES).values()) == {None}
    assert {ANALYST in (sender, receiver) for sender, receiver, _ in network.seen} == {True}


def test_without_a_star_such_parties_refuse_the_session():
    with start() as parties, pytest.raises(PeerAbortedError, match="has not pinned the key of"):
        NetworkTransport(parties.mailbox, SITES).run(collects(SITES))


def test_a_party_killed_in_a_round_with_need_is_left_out_and_the_session_goes_on():
    sent = []

    def killed_as_it_answers(sender, receiver, packet):
        sent.extend([packet] if sender == "b" else [])
        if len(sent) == 2:  # the first is its hello
            network.kill("b")
        return packet

    network = Network(killed_as_it_answers)
    with start(network) as parties:
        transport = star_of(parties)
        assert transport.run(collects(SITES, need=2)) == ["a", "c"]
        assert transport.run(collects(SITES, need=2)) == ["a", "c"]
        assert transport.run(collects(("a", "c"))) == ["a", "c"]
        transport.close()
        assert set(parties.errors("a", "c").values()) == {None}
    assert len(sent) == 2


def test_too_few_left_is_an_error_that_names_the_killed_and_reveals_it_to_nobody():
    with start() as parties:
        transport = star_of(parties)
        parties.network.kill("b")
        with pytest.raises(PeerGoneError, match="b: cannot be reached"):
            transport.run(collects(SITES, need=3))
        for error in parties.errors("a", "c").values():
            assert str(error) == "analyst: failed (PeerGoneError)"


def test_a_killed_party_that_is_not_needed_ends_nothing():
    with start() as parties:
        transport = star_of(parties)
        parties.network.kill("b")
        assert transport.run(collects(("a",))) == ["a"]
        assert transport.run(collects(("c", "a"))) == ["a", "c"]
        with pytest.raises(PeerGoneError, match="b: cannot be reached"):
            transport.run(collects(("b",)))


def test_a_program_may_catch_that_a_needed_party_is_gone():
    def tolerant():
        try:
            return (yield from collects(SITES))
        except PeerGoneError as error:
            left = tuple(site for site in SITES if site != error.party)
            yield Round(dict.fromkeys(left, Go(False)), {})
            return (yield from collects(left))

    with start() as parties:
        transport = star_of(parties)
        parties.network.kill("c")
        assert transport.run(tolerant()) == ["a", "b"]
        transport.close()
        assert set(parties.errors("a", "b").values()) == {None}


def test_a_star_begins_without_the_absent():
    with start(patience=QUICK._replace(hello=0.4)) as parties:
        stop(parties, "b")
        transport = star_of(parties, most_absent=1)
        assert transport.absent == {"b"}
        assert transport.run(collects(SITES, need=1)) == ["a", "c"]
        with pytest.raises(PeerGoneError, match=r"b: cannot be reached \(0.4 s; is it started"):
            transport.run(collects(SITES))


def test_a_party_that_takes_no_notice_of_a_hello_is_absent():
    """Its packets arrive, and it says nothing: the time for hellos ends the wait."""
    mute = Network(lambda sender, receiver, packet: None if sender == "b" else packet)
    with start(mute, QUICK._replace(hello=0.4)) as parties:
        begun = time.monotonic()
        transport = star_of(parties, most_absent=1)
        assert transport.absent == {"b"} and time.monotonic() - begun >= 0.4
        assert transport.run(collects(SITES, need=2)) == ["a", "c"]
        transport.close()


@pytest.mark.parametrize("most", [0, 1])
def test_more_absent_parties_than_may_be_are_named(most):
    with start(patience=QUICK._replace(hello=0.4)) as parties:
        gone = ("b", "c")[: most + 1]
        for site in gone:
            stop(parties, site)
        with pytest.raises(PeerGoneError, match=r"\(0.4 s; is it started\?\)") as caught:
            star_of(parties, most_absent=most)
        assert caught.value.parties == gone
        assert ("at most 1 may be absent" in str(caught.value)) == (most == 1)
        left = [site for site in SITES if site not in gone]
        for error in parties.errors(*left).values():
            assert str(error) == "analyst: failed (PeerGoneError)"


def test_an_absent_party_takes_part_in_the_next_session():
    with start(patience=QUICK._replace(hello=0.4)) as parties:
        stop(parties, "b")
        first = star_of(parties, most_absent=1)
        parties.start("b", DATA["b"])
        assert first.run(collects(SITES, need=1)) == ["a", "c"]
        first.close()
        second = star_of(parties)
        assert second.run(collects(SITES)) == [*SITES]
        second.close()


def test_a_party_that_comes_in_time_is_not_absent(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.transports.network.SOON", 0.1)
    with start() as parties:
        stop(parties, "b")

        class Starts(RunWatch):
            def late(self, parties_, seconds):
                threading.Timer(0.2, parties.start, ("b", DATA["b"])).start()

        transport = star_of(parties, watch=Starts(), most_absent=2)
        assert transport.absent == frozenset()
        assert transport.run(collects(SITES)) == [*SITES]
        transport.close()


def test_a_hello_that_does_not_open_is_an_error_and_not_an_absence():
    other, pinned = identities(*DATA, ANALYST, seed=b"other"), only_the_analyst_pinned()
    pinned["b"] = Identity("b", other["b"].keys, pinned["b"].peers)
    with Parties(DATA, pinned=pinned) as parties:
        with pytest.raises(MalformedMessageError, match="b: an answer to a hello") as caught:
            star_of(parties, most_absent=2)
        assert caught.value.party == "b"


@pytest.mark.parametrize(("star", "most"), [(True, 3), (True, -1), (False, 1)])
def test_how_many_may_be_absent_must_fit_the_session(star, most):
    with start() as parties, pytest.raises(ValueError, match="most_absent must be between 0 and"):
        NetworkTransport(parties.mailbox, SITES, star=star, most_absent=most)
