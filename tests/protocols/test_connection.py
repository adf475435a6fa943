"""Connections without a network: packets are handed over, and the time is a number."""

from __future__ import annotations

from time import time

import pytest

from tests.protocols.network import identities
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_protocols.errors import (
    PeerAbortedError,
    PeerGoneError,
    PeerTimeoutError,
    SessionOverError,
    TransportError,
)
from vertibayes_protocols.federation import ANALYST
from vertibayes_protocols.seal import OVERHEAD, Seal
from vertibayes_protocols.session import Answer, Go
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.mailbox import Patience

SESSION = bytes(range(16))
NOON = 1_790_000_000
PATIENCE = Patience(silent=100.0, gone=10.0, probe=2.0, hello=60.0)
FROM_A, FROM_B = {"a": Expect(Go)}, {"b": Expect(Go)}
FROM_ALL = dict.fromkeys("abc", Expect(Go))


class Ends:
    """The ends of one session, and who carries packets between them."""

    def __init__(self, *parties, star=False, absent=(), clocks=None):
        self.warnings = []
        self.known = identities(ANALYST, *parties)
        self.dead, self.now, self.carried = set(absent), 0.0, []
        self.ends = {}
        for party in (ANALYST, *parties):
            is_analyst = party == ANALYST
            roster = (ANALYST, *parties) if is_analyst or not star else (ANALYST, party)
            seal = Seal(self.known[party], SESSION, SeededRandomness(party.encode()))
            self.ends[party] = Connection(
                seal,
                roster,
                ANALYST,
                PATIENCE,
                time_of_day=lambda party=party: (clocks or {}).get(party, NOON),
                star=star and is_analyst,
                warn=lambda text, party=party: self.warnings.append((party, text)),
            )
        for party, end in self.ends.items():
            if party not in self.dead:
                end.greet(end.peers)
        self.carry()

    def __getitem__(self, party):
        return self.ends[party]

    def carry(self, *senders):
        """Deliver what is to be sent, and what is sent in answer; return the packets."""
        before = len(self.carried)
        going = True
        while going:
            going = False
            for sender in senders or self.ends:
                for packets, patience in self.ends[sender].to_send():
                    going = True
                    self.deliver(sender, packets, patience)
        return self.carried[before:]

    def deliver(self, sender, packets, patience):
        assert len(packets) > 0
        lost = {p: PeerGoneError(p, "cannot be reached") for p in packets if p in self.dead}
        self.ends[sender].delivered(lost, self.now)
        for receiver, packet in packets.items():
            self.carried.append((sender, receiver, packet, patience))
            if receiver not in self.dead:
                self.ends[receiver].receive(sender, packet)

    def tick(self, party, now):
        """Say what time it is, and deliver what is then to be sent."""
        self.now = now
        self.ends[party].tick(now)
        return [(receiver, len(packet)) for _, receiver, packet, _ in self.carry()]

    def hears(self, party, step, now=0.0):
        self.ends[party].wait_for(step, now)
        return not self.ends[party].is_waiting()


def step_of(expect, **options):
    return Round({}, expect, **options)


# ---- hellos and messages -------------------------------------------------------------------------


def test_a_message_is_awaited_until_it_has_come():
    ends = Ends("a", "b")
    assert not ends.hears("b", step_of(FROM_A))
    ends["a"].send({"b": Go(True)})
    ends.carry()
    assert not ends["b"].is_waiting()
    assert ends["b"].take(FROM_A) == {"a": Go(True)}
    assert ends["b"].traffic.rounds == 1 and ends["a"].traffic.messages == 1


def test_what_was_sent_is_counted_hellos_and_pings_included():
    ends = Ends("a")
    ends["a"].wait_for(step_of({ANALYST: Expect(Go)}), 0.0)
    ends.tick("a", 2.0)
    total = sum(len(packet) for sender, *_, packet, _ in ends.carried if sender == "a")
    assert ends["a"].traffic.bytes_sent == {("a", ANALYST): total}


def test_a_hello_is_awaited_for_its_time_and_its_party_named():
    ends = Ends("a", "b", absent=["b"])
    ends["a"].wait_for_hellos(["b"], 0.0)
    with pytest.raises(PeerGoneError, match="b: cannot be reached"):
        ends["a"].is_waiting()
    ends["a"].greet(["b"])  # b is given another chance
    ends["a"].wait_for_hellos(["b"], 5.0)
    ends["a"].tick(64.9)
    assert ends["a"].is_waiting()
    ends["a"].tick(65.0)
    with pytest.raises(PeerTimeoutError, match=r"b: did not say hello in time.* \(60 s\)"):
        ends["a"].is_waiting()


def test_the_same_hello_is_ignored_and_another_is_a_replay():
    ends = Ends("a", "b")
    hello = ends["a"].peers["b"].hello
    ends["b"].receive("a", hello)
    assert not ends["b"].to_send()
    another = Seal(ends.known["a"], SESSION).greet("b", b"")
    with pytest.raises(ReplayedMessageError, match="a: a hello, delivered before"):
        ends["b"].receive("a", another)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(7200, "2 h 0 min ahead of"), (-7200, "2 h 0 min behind"), (301, "0 h 5 min ahead of"),
     (300, None), (-300, None)],
)  # fmt: skip
def test_a_clock_that_differs_is_named_to_the_analyst_and_nothing_else_changes(seconds, said):
    """Before: certificates and approvals ended two hours off, and nothing said why."""
    ends = Ends("a", "b", clocks={"b": NOON + seconds})
    words = f"the clock of b is {said} this one: compare both with a time server"
    assert ends.warnings == ([] if said is None else [(ANALYST, words)])
    assert not ends["a"].strangers() and not ends[ANALYST].strangers()


def test_a_hello_that_names_other_parties_is_refused():
    known = identities(ANALYST, "a", "b")
    a = Connection(Seal(known["a"], SESSION), "ab", ANALYST, PATIENCE, time_of_day=time)
    everybody = "a", "b", ANALYST
    b = Connection(Seal(known["b"], SESSION), everybody, ANALYST, PATIENCE, time_of_day=time)
    a.greet("b")
    with pytest.raises(UnexpectedMessageError, match="a: a session of other parties"):
        b.receive("a", a.to_send()[0][0]["b"])


def test_a_peer_that_was_not_there_when_it_was_greeted_is_greeted_when_it_comes():
    ends = Ends("a", "b", absent=["b"])
    ends.dead.clear()
    ends["b"].greet(["a"])
    ends.carry()
    assert ends["a"]._seal.knows("b") and ends["b"]._seal.knows("a")
    assert ends["a"].peers["b"].gone is None


def test_messages_that_wait_are_limited_for_each_sender(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.transports.connection.MOST_WAITING", 10_000)
    ends = Ends("a", "b")
    for _ in range(20):
        ends[ANALYST].send({"a": Go(False)})
        ends["b"].send({"a": Go(False)})
    ends.carry()
    for _ in range(60):
        ends["b"].send({"a": Go(False)})
    with pytest.raises(UnexpectedMessageError, match="b: sends more than is read"):
        ends.carry()


def test_what_is_read_makes_room(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.transports.connection.MOST_WAITING", 1_000)
    ends = Ends("a", "b")
    for _ in range(100):
        ends["b"].send({"a": Go(False)})
        ends.carry()
        ends["a"].take(FROM_B)
    assert ends["a"].peers["b"].waiting == 0


def test_a_message_to_who_takes_no_part_is_an_error():
    ends = Ends("a", "b")
    for act in (
        lambda: ends["a"].send({"zoe": Go(True)}),
        lambda: ends["a"].wait_for(step_of({"zoe": Expect(Go)}), 0.0),
    ):
        with pytest.raises(ProtocolError, match="zoe: takes no part in this session"):
            act()


# ---- time ----------------------------------------------------------------------------------------


def test_pings_are_due_while_somebody_is_awaited_and_counted_from_their_delivery():
    ends = Ends("a", "b")
    a = ends["a"]
    a.wait_for(step_of(FROM_B), 10.0)
    assert a.deadline == 12.0
    a.tick(11.9)
    assert not a.to_send()
    a.tick(12.0)
    ((packets, patience),) = a.to_send()
    assert list(packets) == ["b"] and patience == PATIENCE.gone
    assert a.deadline == 110.0  # nothing is due while the ping is on its way
    a.delivered({}, 15.0)
    assert a.deadline == 17.0
    ends["b"].receive("a", packets["b"])
    assert not ends["b"].to_send()  # a ping is not answered


def test_a_peer_that_is_silent_is_given_up_when_its_time_is_over():
    ends = Ends("a", "b")
    assert not ends.hears("a", step_of(FROM_B))
    for now in range(2, 100, 2):
        ends.tick("a", float(now))
        assert ends["a"].is_waiting()
    ends.tick("a", 100.0)
    with pytest.raises(PeerTimeoutError, match=r"^b: can be reached, and is silent \(100 s\)$"):
        ends["a"].is_waiting()


def test_an_idle_party_waits_without_an_end_and_looks_after_its_peer():
    ends = Ends("a")
    assert not ends.hears("a", step_of({ANALYST: Expect(Go)}, idle=True))
    assert len(ends.tick("a", 1e6)) == 1 and ends["a"].is_waiting()
    ends.dead.add(ANALYST)
    ends.tick("a", 2e6)
    with pytest.raises(PeerGoneError, match="analyst: cannot be reached"):
        ends["a"].is_waiting()


def test_who_is_not_answered_waits_until_what_it_sent_is_read(monkeypatch):
    ends, step = Ends("a", "b"), Round({"b": Go(True)}, {})
    ends["a"].send(step.outbox)
    monkeypatch.setattr(
        "vertibayes_protocols.transports.connection.WINDOW", ends["a"].peers["b"].unread
    )
    ends["a"].wait_for(step, 0.0)
    assert not ends["a"].is_waiting()  # one message is within the window
    ends["a"].send(step.outbox)
    ends["a"].wait_for(step, 0.0)
    ends.carry()
    for _ in range(2):
        assert ends["a"].is_waiting()
        ends["b"].take(FROM_A)
        ends.carry()
    assert not ends["a"].is_waiting()


def test_who_does_not_read_is_given_up_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.transports.connection.WINDOW", 0)
    ends, step = Ends("a", "b"), Round({"b": Go(True)}, {}, need=0)
    ends["a"].send(step.outbox)
    ends["a"].wait_for(step, 0.0)
    ends.tick("a", 100.0)
    assert not ends["a"].is_waiting()
    assert "can be reached, and does not read (100 s)" in str(ends["a"].peers["b"].gone)


# ---- somebody goes -------------------------------------------------------------------------------


def test_a_peer_that_a_ping_does_not_reach_is_gone():
    ends = Ends("a", "b")
    assert not ends.hears("a", step_of(FROM_B))
    ends.dead.add("b")
    ends.tick("a", 2.0)
    with pytest.raises(PeerGoneError, match="b: cannot be reached"):
        ends["a"].is_waiting()


@pytest.mark.parametrize(("need", "goes_on"), [(1, True), (2, True), (3, False), (None, False)])
def test_a_round_goes_on_without_the_gone_if_enough_are_left(need, goes_on):
    ends = Ends("a", "b", "c")
    for party in "bc":
        ends[party].send({ANALYST: Go(True)})
    ends.dead.add("a")
    ends.carry()
    assert not ends.hears(ANALYST, step_of(FROM_ALL, need=need))
    ends.tick(ANALYST, 2.0)
    if goes_on:
        assert not ends[ANALYST].is_waiting()
        assert set(ends[ANALYST].take(FROM_ALL)) == {"b", "c"}
    else:
        with pytest.raises(PeerGoneError, match="a: cannot be reached"):
            ends[ANALYST].is_waiting()


def test_an_abort_names_who_is_at_fault_on_its_senders_word():
    ends = Ends("a", "b", "c")
    ends["a"].leave(MalformedMessageError("c", "a lie"))
    with pytest.raises(PeerAbortedError, match=r"^c: a lie \(a says so\)$"):
        ends.carry()
    with pytest.raises(TransportError, match="the session is over"):
        ends["a"].is_waiting()


def test_a_bye_of_the_analyst_ends_the_session():
    ends = Ends("a")
    assert not ends.hears("a", step_of({ANALYST: Expect(Go)}, idle=True))
    ends[ANALYST].leave()
    ends.carry()
    with pytest.raises(SessionOverError, match="analyst has ended the session"):
        ends["a"].is_waiting()


def test_a_party_that_has_left_sends_nothing_more():
    ends = Ends("a", "b")
    ends["a"].leave(RuntimeError("secret"))
    last = [packets for packets, _ in ends["a"].to_send()]
    assert [set(packets) for packets in last] == [{ANALYST, "b"}]
    ends["a"].leave()
    assert not ends["a"].to_send()


# ---- a star --------------------------------------------------------------------------------------


def test_in_a_star_a_party_knows_of_the_analyst_alone():
    ends = Ends("a", "b", star=True)
    assert set(ends["a"].peers) == {ANALYST} and set(ends[ANALYST].peers) == {"a", "b"}
    assert ends[ANALYST].peers["a"].roster == {"a", ANALYST}
    assert {(s, r) for s, r, *_ in ends.carried} == {
        (s, r) for p in "ab" for s, r in ((p, ANALYST), (ANALYST, p))
    }


def test_in_a_star_each_pair_has_a_key_of_its_own():
    ends = Ends("a", "b", star=True)
    seals = {party: ends[party]._seal for party in (ANALYST, "a", "b")}
    assert seals[ANALYST]._keys == {p: seals[p]._keys[ANALYST] for p in "ab"}
    assert len(set(seals[ANALYST]._keys.values())) == 2
    ends[ANALYST].send({"a": Go(True), "b": Go(True)})
    ((packets, _),) = ends[ANALYST].to_send()
    start = OVERHEAD - 16
    assert packets["a"][start:] != packets["b"][start:]
    with pytest.raises(UnexpectedMessageError, match="somebody else"):
        ends["b"].receive(ANALYST, packets["a"])
    with pytest.raises(MalformedMessageError, match="does not open"):
        ends["b"].receive(ANALYST, packets["b"][:start] + packets["a"][start:])


@pytest.mark.parametrize("last", [None, RuntimeError(), "killed"])
def test_in_a_star_a_party_that_goes_ends_nothing_until_it_is_needed(last):
    ends = Ends("a", "b", star=True)
    assert not ends.hears(ANALYST, step_of(FROM_A))
    if last == "killed":
        ends.dead.add("b")
        ends[ANALYST].send({"b": Go(True)})
    else:
        ends["b"].leave(last)
    ends.carry()
    assert ends[ANALYST].is_waiting()
    ends["a"].send({ANALYST: Go(True)})
    ends.carry()
    assert not ends[ANALYST].is_waiting()
    assert ends[ANALYST].take(FROM_A) == {"a": Go(True)}
    with pytest.raises(PeerGoneError, match=r"^b: "):
        ends.hears(ANALYST, step_of(FROM_B))
    assert ends["a"].peers[ANALYST].gone is None


def test_in_a_star_messages_to_the_gone_are_passed_over_and_their_own_are_not_heard():
    ends = Ends("a", "b", star=True)
    ends.dead.add("b")
    ends[ANALYST].send({"b": Go(False)})
    ends.carry()
    ends[ANALYST].send({"a": Go(True), "b": Go(True)})
    assert [receiver for _, receiver, *_ in ends.carry()] == ["a"]
    assert ends.hears(ANALYST, step_of(FROM_B, need=0))
    ends.dead.clear()  # it comes back, and answers what was asked long ago
    ends["b"].send({ANALYST: Go(True)})
    with pytest.raises(ProtocolError, match="analyst"):
        ends.carry()  # a packet before the bye was lost
    assert ends.hears(ANALYST, step_of(FROM_B, need=0))
    assert ends[ANALYST].take(FROM_B) == {}


def test_in_a_star_the_silent_are_dismissed_when_they_speak_again():
    ends = Ends("a", "b", star=True)
    assert not ends.hears(ANALYST, step_of(FROM_A | FROM_B, need=1))
    ends["a"].send({ANALYST: Go(True)})
    ends.carry()
    ends.tick(ANALYST, 100.0)
    assert not ends[ANALYST].is_waiting()
    assert set(ends[ANALYST].take(FROM_A | FROM_B)) == {"a"}
    ends["b"].send({ANALYST: Go(True)})
    patience = [seconds for sender, *_, seconds in ends.carry() if sender == ANALYST]
    assert patience == [None]  # the analyst does not wait for a receipt
    with pytest.raises(SessionOverError, match="analyst has ended the session"):
        ends["b"].is_waiting()


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_star_begins_without_the_absent_if_they_are_not_too_many(most):
    ends = Ends("a", "b", "c", star=True, absent=["a", "c"])
    ends[ANALYST].wait_for_hellos("abc", 0.0, most)
    if most < 2:
        names = "^a, c: .*at most 1 may be absent" if most else "^a: cannot be reached$"
        with pytest.raises(PeerGoneError, match=names):
            ends[ANALYST].is_waiting()
        return
    assert not ends[ANALYST].is_waiting()
    ends[ANALYST].settle()
    assert ends[ANALYST].absent == {"a", "c"}
    ends[ANALYST].send(dict.fromkeys("abc", Go(True)))
    assert [receiver for _, receiver, *_ in ends.carry()] == ["b"]


def test_an_absent_party_that_says_hello_before_the_session_has_begun_takes_part():
    ends = Ends("a", "b", star=True, absent=["b"])
    ends.dead.clear()
    ends["b"].greet([ANALYST])
    ends.carry()
    ends[ANALYST].wait_for_hellos("ab", 0.0, 1)
    assert not ends[ANALYST].is_waiting()
    ends[ANALYST].settle()
    assert ends[ANALYST].absent == frozenset()


def test_an_absent_party_that_says_hello_endsr_is_dismissed():
    ends = Ends("a", "b", star=True, absent=["b"])
    ends[ANALYST].settle()
    assert ends[ANALYST].absent == {"b"}
    ends.dead.clear()
    ends["b"].receive(ANALYST, ends[ANALYST].peers["b"].hello)  # its receipt was lost
    ends["b"].greet([ANALYST])
    ends.carry()
    with pytest.raises(SessionOverError, match="analyst has ended the session"):
        ends["b"].is_waiting()
    ends[ANALYST].send({"b": Go(True)})
    assert not ends.carry()


def test_in_a_star_no_party_is_sent_the_name_of_another():
    ends = Ends("a", "b", star=True)
    ends[ANALYST].leave(MalformedMessageError("a", "a lie"))
    ((packets, _),) = ends[ANALYST].to_send()
    with pytest.raises(PeerAbortedError, match=r"^a: a lie \(analyst says so\)$"):
        ends["a"].receive(ANALYST, packets["a"])
    with pytest.raises(PeerAbortedError, match=r"^analyst: failed \(MalformedMessageError\)$"):
        ends["b"].receive(ANALYST, packets["b"])


def test_in_a_star_a_party_does_not_blame_another():
    ends = Ends("a", "b", star=True)
    ends["a"].leave(MalformedMessageError("b", "a lie"))
    ends.carry()
    with pytest.raises(PeerAbortedError, match=r"^a: a lie$"):
        ends.hears(ANALYST, step_of(FROM_A))


def test_in_a_star_a_message_of_another_kind_still_names_its_sender():
    ends = Ends("a", "b", star=True)
    ends["a"].send({ANALYST: Answer(True, "")})
    ends.carry()
    assert ends.hears(ANALYST, step_of(FROM_A))
    with pytest.raises(UnexpectedMessageError, match="a: "):
        ends[ANALYST].take(FROM_A)
