"""Several analysts at the same parties at the same time, over a network in memory."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from tests.protocols.network import QUICK, MemoryLink, Network, Parties, counter_of, same_tables
from tests.protocols.small import data_of
from vertibayes.counting.secure import SecureCounter
from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_protocols import parties as life
from vertibayes_protocols.effects import saying
from vertibayes_protocols.engine import Considered
from vertibayes_protocols.errors import PeerAbortedError, PeerGoneError, QueryRefusedError
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.session import Go
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.mailbox import LatePacketsError
from vertibayes_protocols.variables import Family

DATA = data_of(a="xy", b="z", c="w")
ASKED = {
    "alice": [Family("x", ("z",)), Family("w", ("x", "y", "z")), Family("y")],
    "bob": [Family("y", ("w",)), Family("z", ("w", "x"))],
}
ALICE, ALICE_AGAIN, BOB = "alice~00000000000000a1", "alice~00000000000000a2", "bob~00000000000000b1"
STUDY = bytes(range(16))


def start(network=None, **options):
    return Parties(DATA, network, analysts=("alice", "bob"), **options)


def counter_at(parties, address, link=None, **options):
    mailbox = parties.mailboxes.get(address) or parties.mailbox_at(address, link=link)
    return counter_of(parties, mailbox, **options)


def pooled(asked):
    with federate(DATA) as federation:
        return SecureCounter.of(federation, block_rows=16).tables(asked)


class Turns:
    """Lets two analysts send one message each, by turns, for as long as both have some to send."""

    def __init__(self, *names):
        self.names, self.order, self.changed = list(names), [], threading.Condition()

    def wait(self, name):
        with self.changed:
            in_time = self.changed.wait_for(lambda: self.names[0] == name, timeout=5.0)
            assert in_time, f"{self.names[0]} waits for {name}"
            self.order.append(name)
            self.names.append(self.names.pop(0))
            self.changed.notify_all()

    def leave(self, name):
        with self.changed:
            self.names.remove(name)
            self.changed.notify_all()


class TurnLink(MemoryLink):
    def __init__(self, network, address, turns):
        super().__init__(network, address)
        self.turns = turns

    def deliver(self, packets, patience):
        self.turns.wait(self.party)
        return super().deliver(packets, patience)


def learn_by_turns(parties, **options):
    """Have alice and bob learn at the same time; return what each has, and who sent when."""
    turns, tables, failed = Turns(ALICE, BOB), {}, []

    def learn(address, asked):
        try:
            parties.network.link(address)
            link = TurnLink(parties.network, address, turns)
            session, counter = counter_at(parties, address, link=link, **options)
            tables[address] = counter.tables(asked)
            session.close()
        except BaseException as error:
            failed.append(error)
        turns.leave(address)

    asked = {ALICE: ASKED["alice"], BOB: ASKED["bob"]}
    threads = [threading.Thread(target=learn, args=item, daemon=True) for item in asked.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failed, failed
    return tables, turns.order


# ---- results -------------------------------------------------------------------------------------


def test_two_studies_whose_messages_alternate_have_the_tables_of_pooled_data():
    with start() as parties:
        tables, order = learn_by_turns(parties)
        for _ in range(2):
            assert set(parties.errors(*DATA, DEALER).values()) == {None}
    assert same_tables(tables[ALICE], pooled(ASKED["alice"]))
    assert same_tables(tables[BOB], pooled(ASKED["bob"]))
    both = order[: 2 * min(order.count(ALICE), order.count(BOB))]
    assert len(both) > 14 and both == [ALICE, BOB] * (len(both) // 2)


def test_two_processes_of_one_analyst_do_not_disturb_each_other():
    """Over addresses of their own: the second hello once ended the session of the first."""
    with start() as parties:
        first, counter = counter_at(parties, ALICE)
        second, other = counter_at(parties, ALICE_AGAIN)
        for asked in ASKED.values():
            assert same_tables(counter.tables(asked), other.tables(asked))
        first.close()
        second.close()
        for _ in range(2):
            assert set(parties.errors(*DATA, DEALER).values()) == {None}


def test_a_session_that_fails_ends_no_other(monkeypatch):
    def fails(memory, study, codes):
        if study == STUDY and "x" in codes:
            raise RuntimeError("of site a")
        return commit(memory, study, codes)

    with start() as parties:
        commit = type(parties.roles["a"].memory).commit
        monkeypatch.setattr(type(parties.roles["a"].memory), "commit", fails)
        session, counter = counter_at(parties, BOB)
        # All others pass on what a said: their messages may arrive before that of a.
        said = r"^a: failed \(RuntimeError\)( \((dealer|b|c) says so\))?$"
        with pytest.raises(PeerAbortedError, match=said):
            counter_at(parties, ALICE, study=STUDY)
        assert {getattr(e, "party", "a") for e in parties.errors(*DATA, DEALER).values()} == {"a"}
        assert same_tables(counter.tables(ASKED["bob"]), pooled(ASKED["bob"]))
        session.close()
        assert set(parties.errors(*DATA, DEALER).values()) == {None}


def test_a_link_that_fails_in_one_session_ends_no_other(monkeypatch):
    def deliver(link, packets, patience):
        if ALICE in packets and link.party == "a":
            raise RuntimeError("the engine")
        return delivered(link, packets, patience)

    delivered = MemoryLink.deliver
    with start(patience=QUICK._replace(hello=1.0)) as parties:
        session, counter = counter_at(parties, BOB)
        monkeypatch.setattr(MemoryLink, "deliver", deliver)
        with pytest.raises(PeerGoneError):
            counter_at(parties, ALICE)
        assert same_tables(counter.tables(ASKED["bob"]), pooled(ASKED["bob"]))
        session.close()


def test_an_analyst_that_takes_no_packets_holds_up_no_other():
    """A delivery waits for its receipt as long as the patience is: beside the other sessions."""
    with start(patience=QUICK._replace(gone=5.0)) as parties:
        counter_at(parties, ALICE)
        session, counter = counter_at(parties, BOB)
        parties.network.paused.add(ALICE)
        time.sleep(3 * QUICK.probe)  # each party now waits for a receipt of a ping
        begun = time.monotonic()
        counter.tables(ASKED["bob"])
        assert time.monotonic() - begun < 2.5
        session.close()


# ---- the same study ------------------------------------------------------------------------------


def test_the_same_study_is_refused_while_a_session_runs_it_and_answered_afterwards():
    with start() as parties:
        session, counter = counter_at(parties, ALICE, study=STUDY)
        for address in (ALICE_AGAIN, BOB):
            begun = time.monotonic()
            with pytest.raises(QueryRefusedError, match=r"alice runs this study since \d+-.* UTC"):
                counter_at(parties, address, study=STUDY)
            assert time.monotonic() - begun < 2.0
        assert same_tables(counter.tables(ASKED["alice"]), pooled(ASKED["alice"]))
        session.close()
        for mailbox in (ALICE_AGAIN, BOB):
            parties.network.kill(mailbox)
        session, _ = counter_at(parties, "alice~00000000000000a3", study=STUDY)
        session.close()


def test_an_analyst_that_was_killed_is_let_in_at_once():
    """Without the question for its other process, its study would be taken for some 12 s."""
    patience = QUICK._replace(gone=10.0, probe=2.0)
    with start(patience=patience) as parties:
        counter_at(parties, ALICE, study=STUDY)
        parties.network.kill(ALICE)
        begun = time.monotonic()
        session, counter = counter_at(parties, ALICE_AGAIN, study=STUDY)
        assert time.monotonic() - begun < 3.0
        ended = parties.errors(*DATA, DEALER)
        assert all(str(e).startswith("alice: cannot be reached") for e in ended.values()), ended
        assert counter.tables([Family("x")])[0].sum() == 40
        session.close()


def test_an_analyst_whose_other_process_lives_does_not_end_its_session():
    with start() as parties:
        _, counter = counter_at(parties, ALICE, study=STUDY)
        second, _ = counter_at(parties, ALICE_AGAIN)
        second.close()
        assert set(parties.errors(*DATA, DEALER).values()) == {None}
        assert counter.tables([Family("x")])[0].sum() == 40


# ---- what a party considers and notes ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spend(Query):
    """Spend what is left: a budget in small."""

    kind: ClassVar[str] = "spend"
    is_dealt: ClassVar[bool] = True
    left: ClassVar[list[int]] = [1]

    def plan(self, at):
        return None

    def effects(self, plan, at):
        return saying(self.parties, ())

    def fits_dealer(self, dealer, plan):
        if not self.left[0]:
            raise ValueError("nothing is left")

    def run_dealer(self, dealer, plan):
        self.left[0] -= 1
        yield Round({}, {dealer.analyst: Expect(Go)})

    run_site = run_analyst = None


@dataclass(frozen=True, slots=True)
class Claims(Spend):
    """Ask to run one contract."""

    kind: ClassVar[str] = "claims"
    phase: ClassVar[str] = "begin"

    @property
    def claims(self):
        return b"d" * 32


def answered(program, analyst, query, *, is_first=True):
    """Ask a query of a party's life; return its answer."""
    if is_first:
        next(program)
    else:
        program.send({analyst: Go(False)})
    return program.send({analyst: query}).outbox[analyst]


def test_a_contract_that_a_session_runs_is_refused_in_another():
    """Also before columns are committed: the runs of a contract are counted."""
    role = SiteRole("a", DATA["a"], None, {}, policy=replace(FREE))
    begins = Claims(("a",))
    lives = [life.serve(role.for_session(who, b""), who, {Claims}) for who in ("alice", "bob")]
    assert answered(lives[0], "alice", begins).agreed
    refusal = answered(lives[1], "bob", begins)
    assert not refusal.agreed and "alice runs this study since" in refusal.reason
    lives[0].close()
    assert answered(lives[1], "bob", begins, is_first=False).agreed
    lives[1].close()
    assert not role.shared.running


def spenders():
    """Return the lives of a dealer in two sessions, and what it has left."""
    Spend.left[0] = 1
    role = DealerRole("dealer", None, {})
    lives = [life.serve(role.for_session(who, b""), who, {Spend}) for who in ("alice", "bob")]
    return lives, Spend.left


def test_a_query_is_considered_again_when_another_session_has_noted_something():
    (alice, bob), left = spenders()
    assert answered(alice, "alice", Spend(("dealer",))).agreed
    assert answered(bob, "bob", Spend(("dealer",))).agreed
    alice.send({"alice": Go(True)})
    with pytest.raises(ProtocolError, match="dealer: agreed to a query, and now refuses it: noth"):
        bob.send({"bob": Go(True)})
    assert left == [0]
    alice.close()


def test_without_that_two_sessions_spend_what_is_left_for_one(monkeypatch):
    """The control of the test above."""
    monkeypatch.setattr(
        life, "_consider_again", lambda role, query, _: Considered(query, None, query.effects(0, 0))
    )
    (alice, bob), left = spenders()
    for program, name in ((alice, "alice"), (bob, "bob")):
        assert answered(program, name, Spend(("dealer",))).agreed
    for program, name in ((alice, "alice"), (bob, "bob")):
        program.send({name: Go(True)})
        program.close()
    assert left == [-1]


# ---- limits --------------------------------------------------------------------------------------


def test_an_analyst_that_fills_its_share_is_refused_by_name_and_excludes_no_other():
    with start(policy=replace(FREE, most_sessions=4)) as parties:
        held = [counter_at(parties, f"alice~{i:016x}")[0] for i in range(2)]
        begun = time.monotonic()
        busy = r"is busy: 2 of at most 2 sessions of alice are open \(most_sessions in its policy\)"
        with pytest.raises(PeerAbortedError, match=busy):
            counter_at(parties, f"alice~{9:016x}")
        assert time.monotonic() - begun < 2.0
        session, counter = counter_at(parties, BOB)
        assert same_tables(counter.tables(ASKED["bob"]), pooled(ASKED["bob"]))
        session.close()
        held.pop().close()
        parties.errors(*DATA, DEALER)
        parties.errors(*DATA, DEALER)
        session, _ = counter_at(parties, f"alice~{10:016x}")
        session.close()


# ---- causes --------------------------------------------------------------------------------------


def paused_and_continued(monkeypatch):
    """Pause c before it sends its columns until the others have ended; return how c then ends."""
    network, pack = Network(), Connection._pack

    def watched(connection, receiver, body):
        if connection.party == "c" and bytes(body[1 : 1 + body[0]]) == b"columns":
            network.paused.add("c")
        return pack(connection, receiver, body)

    with monkeypatch.context() as patch, start(network) as parties:
        patch.setattr(Connection, "_pack", watched)
        with pytest.raises(PeerGoneError, match="c: cannot be reached"):
            counter_at(parties, ALICE)
        parties.errors("a", "b", DEALER)
        patch.setattr(Connection, "_pack", pack)
        network.paused.clear()
        return parties.errors("c")["c"]


def test_a_party_that_was_paused_learns_why_its_session_is_over(monkeypatch):
    """The others were never started again, as it once was said of them."""
    error = paused_and_continued(monkeypatch)
    assert "was started again" not in str(error)
    assert error.party == "c" and "cannot be reached" in str(error), error


def test_without_the_last_words_one_that_never_stopped_is_said_to_be_started_again(monkeypatch):
    """The control of the test above: the old answer."""
    monkeypatch.setattr("vertibayes_protocols.transports.mailbox.OVER", b"")
    monkeypatch.setattr("vertibayes_protocols.transports.mailbox.Mailbox.end", lambda *_: None)
    assert "was started again" in str(paused_and_continued(monkeypatch))


def test_packets_of_a_session_that_is_over_make_one_line_that_names_its_analyst():
    network = Network()
    with start(network) as parties:
        session, _ = counter_at(parties, ALICE)
        session.close()
        parties.errors(*DATA, DEALER)
        late = [packet for s, r, packet in network.seen if (s, r) == ("b", "a")]
        for packet in late:
            network.boxes["a"].put(("b", packet))
        session, _ = counter_at(parties, BOB)
        session.close()
        refused = list(parties.mailboxes["a"].refused)
    assert len(late) > 3 and [type(error) for error in refused] == [LatePacketsError]
    assert str(refused[0]) == "b: late packets of a session of alice that is over here"


@pytest.mark.parametrize("sender", ["zoe~00000000000000a1", "b~00000000000000b2", "alice~1"])
def test_nothing_is_sent_to_an_address_that_no_session_has(sender):
    """Of a party that is not pinned, of a site, and of none."""
    network = Network()
    with start(network) as parties:
        session, counter = counter_at(parties, ALICE)
        junk = [packet for s, _, packet in network.seen if s == ALICE]
        network.boxes["a"].put((sender, junk[-1]))
        network.boxes["a"].put((sender, junk[0]))
        assert counter.tables([Family("x")])[0].sum() == 40
        session.close()
        assert set(parties.errors(*DATA, DEALER).values()) == {None}
        assert parties.mailboxes["a"].refused
    assert not [receiver for _, receiver, _ in network.seen if receiver == sender]
