"""Sessions: an analyst asks queries, sites and the dealer agree or refuse, then all run it.

analyst -> parties    Query              what is asked, in names and never in code
parties -> analyst    Answer             agreed, or refused with a reason
analyst -> parties    Go                 true if all agreed
all                   the query's conversation, one program each
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar, cast

from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.approval import Asked
from vertibayes_protocols.errors import QueryRefusedError, TransportError, printable
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch

QUERY_CELLS = 6_000_000
REASON_BYTES = 2_000

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Query(Asked, Generic[R_co]):
    """What the analyst asks of `parties`, whose result is of the type `R_co`."""


AnyQuery: TypeAlias = Query[object]
Q = TypeVar("Q", bound=AnyQuery)


@dataclass(frozen=True, slots=True)
class Answer(Message):
    """Whether a party agrees to a query; the reason if not."""

    kind: ClassVar[str] = "answer"
    agreed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Go(Message):
    """Whether the query is run, or dropped because a party refused."""

    kind: ClassVar[str] = "go"
    run: bool


class Role(Protocol):
    """A party's life-long state: keys, commitments, policy, ledger. Programs read and extend it."""

    party: Party

    def leave(self) -> None:
        """Let go of what it holds for a study: a session is over."""
        ...


P = TypeVar("P", bound=Role)


@dataclass(frozen=True)
class Side(Generic[P, Q]):
    """What one role does in a conversation.

    Parameters
    ----------
    consider : callable
        (role, query) -> None. Agrees and notes the query durably, before the first byte leaves, or
        raises QueryRefusedError.
    program : callable
        (role, query) -> program.
    """

    consider: Callable[[P, Q], Any]
    program: Callable[[P, Q, Any], Program[None]]


class Conversation(Generic[Q, R]):
    """One kind of query: what the analyst does, and what each role does that answers it.

    Parameters
    ----------
    query : type of Query
    analyst : callable
        (analyst's role, query) -> program; its return value is the query's result.
    need : callable, optional
        (query) -> how many of its parties must answer; None for all of them.
    """

    def __init__(
        self,
        query: type[Q],
        analyst: Callable[[AnalystRole, Q], Program[R]],
        need: Callable[[Q], int | None] | None = None,
    ) -> None:
        self.query, self.analyst, self.need = query, analyst, need
        self._sides: dict[type[Role], Side[Any, Q]] = {}  # of a class, a side for that class

    def side(
        self,
        role: type[P],
        consider: Callable[[P, Q], None],
        program: Callable[[P, Q], Program[None]],
    ) -> Self:
        """Add what a role does; see `Side`."""
        self._sides[role] = Side(consider, lambda party, query, _: program(party, query))
        return self

    def side_of(self, role: type[P]) -> Side[P, Q] | None:
        """Return what a role does, if it answers this kind of query."""
        return self._sides.get(role)


class Conversations:
    """The kinds of queries that a party knows.

    Parameters
    ----------
    *conversations : Conversation
    """

    def __init__(self, *conversations: Conversation[Any, Any]) -> None:
        self._of = {conversation.query: conversation for conversation in conversations}

    def __iter__(self) -> Iterator[type[AnyQuery]]:
        return iter(self._of)

    def of(self, query: Query[R]) -> Conversation[Query[R], R] | None:
        """Return the conversation of a query's kind."""
        return cast("Conversation[Query[R], R] | None", self._of.get(type(query)))

    def side_of(self, role: P, query: AnyQuery) -> Side[P, AnyQuery] | None:
        """Return what a role does with a query of this kind, if it answers it."""
        conversation = self.of(query)
        return None if conversation is None else conversation.side_of(type(role))


def ask(role: AnalystRole, query: Query[R], conversation: Conversation[Query[R], R]) -> Program[R]:
    """Put a query to its parties and run it: the analyst's side.

    Parameters
    ----------
    role : AnalystRole
    query : Query
    conversation : Conversation
        Of the query's kind.

    Raises
    ------
    QueryRefusedError
        If a party refuses; the others drop the query, and the session continues.
    """
    need = conversation.need(query) if conversation.need else None
    expect = dict.fromkeys(query.parties, Expect(Answer, REASON_BYTES))
    answers = yield from exchange(dict.fromkeys(query.parties, query), expect, need=need)
    refusals = {party: answer for party, answer in answers.items() if not answer.agreed}
    yield from send(dict.fromkeys(answers, Go(not refusals)))
    for party, answer in refusals.items():
        raise QueryRefusedError(party, printable(answer.reason))
    return (yield from conversation.analyst(role, query))


@dataclass
class Traffic:
    """What travelled.

    Attributes
    ----------
    bytes_sent : dict of (Party, Party) to int
        By sender and receiver, envelopes included.
    messages : int
    rounds : int
        The longest chain of messages, each an answer to the one before.
    """

    bytes_sent: dict[tuple[Party, Party], int] = field(default_factory=dict)
    messages: int = 0
    rounds: int = 0

    @property
    def bytes(self) -> int:
        """All bytes."""
        return sum(self.bytes_sent.values())

    def include(self, earlier: Traffic) -> None:
        """Add what travelled in an earlier session."""
        for link, sent in earlier.bytes_sent.items():
            self.bytes_sent[link] = self.bytes_sent.get(link, 0) + sent
        self.messages += earlier.messages
        self.rounds += earlier.rounds


class Transport(Protocol):
    """Where the analyst's programs run."""

    @property
    def traffic(self) -> Traffic:
        """What has travelled, as far as it can be seen from here."""
        ...

    def run(self, program: Program[R]) -> R:
        """Run a program to its end, moving its messages."""
        ...

    def close(self) -> None:
        """End the session: let go of what it holds."""
        ...


class Session:
    """The analyst's end, synchronous.

    Parameters
    ----------
    role : AnalystRole
        The analyst's state.
    transport : Transport
        Where its programs run.
    conversations : Conversations
        The kinds of queries that can be asked.
    watch : RunWatch, optional
        Notes which queries are asked.
    """

    def __init__(
        self,
        role: AnalystRole,
        transport: Transport,
        conversations: Conversations,
        watch: RunWatch = UNWATCHED,
    ) -> None:
        self.role = role
        self.transport = transport
        self.conversations = conversations
        self._watch = watch
        self._over = False

    def ask(self, query: Query[R]) -> R:
        """Ask a query and return its result.

        Raises
        ------
        QueryRefusedError
            If a party refuses; the session continues.
        ProtocolError
            If a party does not follow the protocol; the session is over.
        TransportError
            If the session is over.
        ValueError
            If the kind of query is not known.
        """
        if self._over:
            raise TransportError("the session is over")
        conversation = self.conversations.of(query)
        if conversation is None:
            raise ValueError(f"queries of the kind {query.kind!r} are not known here")
        self._watch.asked(query.kind)
        try:
            result = self.transport.run(ask(self.role, query, conversation))
            self._watch.answered()
            return result
        except QueryRefusedError:
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the session."""
        self._over = True
        self.transport.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
