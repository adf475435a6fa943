from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.protocols.small import data_of, packets, seeded
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect, Message, Round
from vertibayes_protocols.effects import saying
from vertibayes_protocols.errors import QueryRefusedError, TransportError
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.parties import serve
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import AnalystRole, DealerRole
from vertibayes_protocols.session import REASON_BYTES, Answer, Go, Session
from vertibayes_protocols.transports.local import LocalTransport


@dataclass(frozen=True, slots=True)
class Reply(Message):
    kind: ClassVar[str] = "test: reply"
    text: str


@dataclass(frozen=True, slots=True)
class Greet(Query):
    kind: ClassVar[str] = "test: greet"
    word: str

    def plan(self, at):
        return None

    def effects(self, plan, at):
        return saying(self.parties, [Fact("a word", at.party, (at.analyst,))])

    def fits(self, role, plan):
        CONSIDERED.append((role.party, self.word))
        if (role.party, self.word) in REFUSES:
            raise ValueError(REFUSES[role.party, self.word])

    def run_site(self, site, plan, give):
        ANSWERED.append((site.party, self.word))
        yield Round({site.analyst: Reply(f"{self.word} from {site.party}")}, {})

    def run_analyst(self, analyst, plan):
        inbox = yield Round({}, dict.fromkeys(self.parties, Expect(Reply)))
        if self.word == "fail":
            raise RuntimeError("the analyst fails")
        return {party: message.text for party, message in inbox.items()}


@dataclass(frozen=True, slots=True)
class Unheard(Greet):
    kind: ClassVar[str] = "test: unheard of"


CONSIDERED, ANSWERED, REFUSES = [], [], {}  # by whom, which words, and for which reasons


@pytest.fixture(autouse=True)
def forgotten():
    for kept in (CONSIDERED, ANSWERED, REFUSES):
        kept.clear()


def three(**refuses):
    """Return three sites, of which some refuse words for a reason."""
    REFUSES.update({(site, word): why for site, w in refuses.items() for word, why in w.items()})
    return list(seeded(data_of(a="x", b="y", c="z")).roles.values())


def session_of(*roles):
    """Return a session with sites that answer `Greet` alone."""
    programs = {role.party: serve(role, "analyst", {Greet}) for role in roles}
    transport = LocalTransport("analyst", programs, SeededRandomness())
    return Session(AnalystRole("analyst"), transport)


def test_a_query_is_run_by_those_that_it_names():
    session = session_of(*three())
    assert session.ask(Greet(("a", "c"), "hi")) == {"a": "hi from a", "c": "hi from c"}
    assert session.ask(Greet(("b",), "ho")) == {"b": "ho from b"}
    assert sorted(ANSWERED) == [("a", "hi"), ("b", "ho"), ("c", "hi")]


def test_a_refusal_names_site_and_reason_and_the_session_survives_it():
    roles = three(b={"hi": "it is rude"})
    session = session_of(*roles)
    for _ in range(2):
        with pytest.raises(QueryRefusedError, match=r"^b refuses: it is rude$") as caught:
            session.ask(Greet(("a", "b", "c"), "hi"))
        assert (caught.value.site, caught.value.reason) == ("b", "it is rude")
    assert session.ask(Greet(("a", "b"), "ho")) == {"a": "ho from a", "b": "ho from b"}


def test_who_agreed_drops_a_query_that_another_refused(monkeypatch):
    roles = three(b={"hi": "no"})
    with packets(monkeypatch) as seen:
        session = session_of(*roles)
        with pytest.raises(QueryRefusedError):
            session.ask(Greet(("a", "b", "c"), "hi"))
        sent = [(s.sender, s.receiver, s.message) for s, _ in seen]
    assert sorted(CONSIDERED) == [(party, "hi") for party in "abc"] and not ANSWERED
    assert {(p, r, m) for p, r, m in sent if type(m) is Go} == {
        ("analyst", party, Go(False)) for party in "abc"
    }
    assert Counter(type(message) for *_, message in sent) == {Greet: 3, Answer: 3, Go: 3}


def test_of_several_refusals_the_first_party_asked_is_named():
    session = session_of(*three(b={"hi": "no"}, c={"hi": "never"}))
    for parties, site in ((("a", "b", "c"), "b"), (("c", "b", "a"), "c")):
        with pytest.raises(QueryRefusedError) as caught:
            session.ask(Greet(parties, "hi"))
        assert caught.value.site == site


def test_a_kind_that_is_not_registered_is_refused():
    session = session_of(*three())
    with pytest.raises(QueryRefusedError, match="a refuses: queries of the kind 'test: unh"):
        session.ask(Unheard(("a", "b"), "hi"))
    assert session.ask(Greet(("a",), "hi"))


def test_a_dealer_without_a_part_refuses():
    federation = seeded(data_of(a="x"))
    session = session_of(*federation.roles.values(), DealerRole("dealer", None, {}))
    with pytest.raises(QueryRefusedError, match="dealer refuses: queries of the kind 'test: gr"):
        session.ask(Greet(("a", "dealer"), "hi"))


def test_a_long_reason_is_cut():
    longest = "x" * (REASON_BYTES - 1)
    session = session_of(*three(a={"long": longest + "x", "longer": longest + "é"}))
    for query, reason in (("long", longest + "x"), ("longer", longest)):
        with pytest.raises(QueryRefusedError) as caught:
            session.ask(Greet(("a",), query))
        assert caught.value.reason == reason


def is_over(session):
    with pytest.raises(TransportError, match="the session is over"):
        session.ask(Greet(("a",), "hi"))
    return True


def test_any_other_error_ends_the_session():
    session = session_of(*three())
    with pytest.raises(RuntimeError, match="the analyst fails"):
        session.ask(Greet(("a",), "fail"))
    assert is_over(session)


def test_a_party_that_is_not_there_is_named():
    session = session_of(*three())
    with pytest.raises(ProtocolError, match="zoe: does not go on; analyst waits"):
        session.ask(Greet(("a", "zoe"), "hi"))
    assert is_over(session)


@pytest.mark.parametrize("wrong", [Go(True), Reply("agreed")])
def test_a_party_that_answers_with_another_kind_is_named(wrong):
    def serves_wrong():
        yield Round({}, {"analyst": Expect(Query, 100)}, idle=True)
        yield Round({"analyst": wrong}, {})

    transport = LocalTransport("analyst", {"a": serves_wrong()}, SeededRandomness())
    session = Session(AnalystRole("analyst"), transport)
    with pytest.raises(UnexpectedMessageError, match="where answer is expected") as caught:
        session.ask(Greet(("a",), "hi"))
    assert caught.value.party == "a" and is_over(session)


def test_a_site_that_refused_does_not_run_even_if_told_to():
    roles = three(a={"hi": "no"})

    def tell_to_run(_, query):
        answers = Round(dict.fromkeys(query.parties, query), {p: Expect(Answer) for p in "ab"})
        yield answers
        yield Round(dict.fromkeys(query.parties, Go(True)), {})

    session_of(*roles).transport.run(tell_to_run(None, Greet(("a", "b"), "hi")))
    assert ANSWERED == [("b", "hi")]


def test_a_closed_session_refuses_and_its_parties_have_left(monkeypatch):
    roles, left = three(), []
    for role in roles:
        monkeypatch.setattr(role, "leave", lambda party=role.party: left.append(party))
    with session_of(*roles) as session:
        assert session.ask(Greet(("a",), "hi"))
        assert not left
    assert sorted(left) == ["a", "b", "c"]
    assert is_over(session)
    session.close()
    assert is_over(session)
