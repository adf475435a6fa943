from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from tests.protocols.small import packets
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect, Message, Round
from vertibayes_protocols.errors import QueryRefusedError, TransportError
from vertibayes_protocols.parties import serve
from vertibayes_protocols.session import (
    REASON_BYTES,
    Answer,
    Conversation,
    Conversations,
    Go,
    Query,
    Session,
)
from vertibayes_protocols.shared_state import SharedState
from vertibayes_protocols.transports.local import LocalTransport


@dataclass(frozen=True, slots=True)
class Greet(Query):
    kind: ClassVar[str] = "test: greet"
    word: str


@dataclass(frozen=True, slots=True)
class Unheard(Query):
    kind: ClassVar[str] = "test: unheard of"


@dataclass(frozen=True, slots=True)
class Reply(Message):
    kind: ClassVar[str] = "test: reply"
    text: str


@dataclass
class Greeter:
    party: str
    refuses: dict = field(default_factory=dict)  # word -> reason
    considered: list = field(default_factory=list)
    answered: list = field(default_factory=list)
    left: bool = False
    shared: SharedState = field(default_factory=SharedState)

    def leave(self):
        self.left = True


class Silent(Greeter):
    """A role that no conversation has a part for."""


def consider(role, query):
    role.considered.append(query.word)
    if query.word in role.refuses:
        raise QueryRefusedError(role.party, role.refuses[query.word])


def reply(role, query):
    role.answered.append(query.word)
    yield Round({"analyst": Reply(f"{query.word} from {role.party}")}, {})


def collect(_, query):
    inbox = yield Round({}, dict.fromkeys(query.parties, Expect(Reply)))
    if query.word == "fail":
        raise RuntimeError("the analyst fails")
    return {party: message.text for party, message in inbox.items()}


GREET = Conversation(Greet, collect).side(Greeter, consider, reply)

UNHEARD = Conversation(Unheard, collect)


def session_of(*roles):
    """Return a session with sites that answer `Greet` alone; the analyst knows one kind more."""
    programs = {role.party: serve(role, "analyst", Conversations(GREET)) for role in roles}
    transport = LocalTransport("analyst", programs, SeededRandomness())
    return Session(Greeter("analyst"), transport, Conversations(GREET, UNHEARD))


def three(**refuses):
    return [Greeter(party, refuses.get(party, {})) for party in "abc"]


def test_a_query_is_run_by_those_that_it_names():
    a, b, c = roles = three()
    session = session_of(*roles)
    assert session.ask(Greet(("a", "c"), "hi")) == {"a": "hi from a", "c": "hi from c"}
    assert session.ask(Greet(("b",), "ho")) == {"b": "ho from b"}
    assert [role.answered for role in (a, b, c)] == [["hi"], ["ho"], ["hi"]]


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
    assert [role.considered for role in roles] == [["hi"]] * 3
    assert [role.answered for role in roles] == [[]] * 3
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
        session.ask(Unheard(("a", "b")))
    assert session.ask(Greet(("a",), "hi"))


def test_a_role_without_a_part_refuses():
    session = session_of(Greeter("a"), Silent("b"))
    with pytest.raises(QueryRefusedError, match="b refuses: queries of the kind 'test: greet'"):
        session.ask(Greet(("a", "b"), "hi"))


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
    session = Session(Greeter("analyst"), transport, Conversations(GREET))
    with pytest.raises(UnexpectedMessageError, match="where answer is expected") as caught:
        session.ask(Greet(("a",), "hi"))
    assert caught.value.party == "a" and is_over(session)


def test_a_site_that_refused_does_not_run_even_if_told_to():
    a, b, _ = roles = three(a={"hi": "no"})

    def tell_to_run(_, query):
        answers = Round(dict.fromkeys(query.parties, query), {p: Expect(Answer) for p in "ab"})
        yield answers
        yield Round(dict.fromkeys(query.parties, Go(True)), {})

    session_of(*roles).transport.run(tell_to_run(None, Greet(("a", "b"), "hi")))
    assert (a.answered, b.answered) == ([], ["hi"])


def test_a_closed_session_refuses_and_its_parties_have_left():
    roles = three()
    with session_of(*roles) as session:
        assert session.ask(Greet(("a",), "hi"))
        assert not any(role.left for role in roles)
    assert all(role.left for role in roles)
    assert is_over(session)
    session.close()
    assert is_over(session)
