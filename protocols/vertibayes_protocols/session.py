"""Sessions: an analyst asks queries, sites and the dealer agree or refuse, then all run it.

analyst -> parties    Query              what is asked, in names and never in code
parties -> analyst    Answer             agreed, or refused with a reason
analyst -> parties    Go                 true if all agreed
all                   the query's programs, one each
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.engine import open_answers, prepare
from vertibayes_protocols.errors import QueryRefusedError, TransportError, printable
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch

QUERY_CELLS = 6_000_000
REASON_BYTES = 2_000

R = TypeVar("R")


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


def ask(role: AnalystRole, query: Query[R, Any]) -> Program[R]:
    """Put a query to its parties and run it: the analyst's side."""
    expect = dict.fromkeys(query.parties, Expect(Answer, REASON_BYTES))
    answers = yield from exchange(dict.fromkeys(query.parties, query), expect, need=query.need)
    refused = {party: answer for party, answer in answers.items() if not answer.agreed}
    considered = None
    try:
        if not refused:
            considered = prepare(role, query)
    finally:
        yield from send(dict.fromkeys(answers, Go(considered is not None)))
    if considered is None:
        party, answer = next(iter(refused.items()))
        raise QueryRefusedError(party, printable(answer.reason))
    return (yield from open_answers(role, considered))


@dataclass
class Traffic:
    """What travelled."""

    bytes_sent: dict[tuple[Party, Party], int] = field(default_factory=dict)
    messages: int = 0
    rounds: int = 0  # the longest chain of messages, each an answer to the one before

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
    """The analyst's end, synchronous."""

    def __init__(
        self, role: AnalystRole, transport: Transport, watch: RunWatch = UNWATCHED
    ) -> None:
        self.role = role
        self.transport = transport
        self._watch = watch
        self._over = False

    def ask(self, query: Query[R, Any]) -> R:
        """Ask a query and return its result."""
        if self._over:
            raise TransportError("the session is over")
        self._watch.asked(query.kind)
        try:
            result = self.transport.run(ask(self.role, query))
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
