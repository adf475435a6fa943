"""Sessions: an analyst asks queries, sites and the dealer agree or refuse, then all run it.

analyst -> parties    Query              what is asked, in names and never in code
parties -> analyst    Answer             agreed, or refused with a reason
analyst -> parties    Go                 true if all agreed
all                   the query's conversation, one program each
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from mpc.rounds import Expect, Message, Party, Program, Round
from protocols.errors import QueryRefusedError, TransportError, printable

R = TypeVar("R")

QUERY_CELLS = 6_000_000
REASON_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Query(Message):
    """What the analyst asks of `parties`: sites, and the dealer if it is concerned."""

    parties: tuple[str, ...]


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


@dataclass(frozen=True)
class Side:
    """What one role does in a conversation.

    Parameters
    ----------
    consider : callable
        (role, query) -> None. Agrees and notes the query durably, before the first byte leaves, or
        raises QueryRefusedError.
    program : callable
        (role, query) -> program.
    """

    consider: Callable[[Any, Any], None]
    program: Callable[[Any, Any], Program[None]]


@dataclass(frozen=True)
class Conversation(Generic[R]):
    """One kind of query.

    Parameters
    ----------
    sides : mapping of role class to Side
        What sites and dealer do.
    analyst : callable
        (analyst's role, query) -> program; its return value is the query's result.
    """

    sides: Mapping[type[Any], Side]
    analyst: Callable[[Any, Any], Program[R]]


Conversations: TypeAlias = Mapping[type[Query], Conversation[Any]]


def ask(role: Any, query: Query, conversation: Conversation[R]) -> Program[R]:
    """Put a query to its parties and run it: the analyst's side.

    Raises
    ------
    QueryRefusedError
        If a party refuses; the others drop the query, and the session goes on.
    """
    expect = {party: Expect(Answer, REASON_BYTES) for party in query.parties}
    answers = yield Round(dict.fromkeys(query.parties, query), expect)
    refusals = [(p, a) for p, a in answers.items() if isinstance(a, Answer) and not a.agreed]
    yield Round(dict.fromkeys(query.parties, Go(not refusals)), {})
    if refusals:
        party, answer = refusals[0]
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
    role : object
        The analyst's state.
    transport : Transport
    conversations : mapping of query class to Conversation
    """

    def __init__(self, role: Any, transport: Transport, conversations: Conversations) -> None:
        self.role = role
        self.transport = transport
        self.conversations = conversations
        self._over = False

    def ask(self, query: Query) -> Any:
        """Ask a query and return its result.

        Raises
        ------
        QueryRefusedError
            If a party refuses; the session goes on.
        ProtocolError
            If a party does not follow the protocol; the session is over.
        TransportError
            If the session is over.
        ValueError
            If the kind of query is not known.
        """
        if self._over:
            raise TransportError("the session is over")
        conversation = self.conversations.get(type(query))
        if conversation is None:
            raise ValueError(f"queries of the kind {query.kind!r} are not known here")
        try:
            return self.transport.run(ask(self.role, query, conversation))
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
