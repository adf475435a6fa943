"""Party programs: protocols as generators that perform no input or output.

A program is deterministic in (private input, randomness, inbox). It yields a `Round`, sleeps until
the messages it expects have come, and returns the party's output. Programs compose with
``yield from``; a transport moves the messages and knows nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from vertibayes_mpc.errors import UnexpectedMessageError
from vertibayes_mpc.ring import Packed

Party: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Message:
    """What travels: a frozen dataclass of int, bool, str, bytes, ndarray and tuples of these.

    `kind`, a keyword of each subclass, is the class's name on the wire. Values that may be secret
    are declared with ``field(repr=False)`` by the subclasses.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str = "") -> None:
        super(Message, cls).__init_subclass__()  # slots: this class is not the one that was written
        if kind:
            cls.kind = kind


@dataclass(frozen=True, slots=True)
class ArrayMessage(Message):
    """Ring elements, packed (`Ring.pack`); the subclasses say what they are."""

    values: Packed = field(repr=False)


M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)


class Expect(NamedTuple, Generic[M_co]):
    """What may come from a peer: the kind, and at most `cells` array elements and characters."""

    kind: type[M_co]
    cells: int = 64


@dataclass(frozen=True, slots=True)
class Round:
    """Deliver `outbox` now; resume once every party in `expect` was heard."""

    outbox: Mapping[Party, Message]  # at most one message a receiver and round
    expect: Mapping[Party, Expect[Message]]  # who must be heard, and what may come
    need: int | None = None  # by default all of `expect`: a party that is gone is an error
    idle: bool = False  # no time-out: a site between two queries

    @property
    def needed(self) -> int:
        """How many must be heard."""
        return len(self.expect) if self.need is None else self.need


R = TypeVar("R")
Inbox: TypeAlias = Mapping[Party, Message]
Program: TypeAlias = Generator[Round, Inbox, R]


def exchange(
    outbox: Mapping[Party, Message],
    expect: Mapping[Party, Expect[M]],
    *,
    need: int | None = None,
    idle: bool = False,
) -> Program[dict[Party, M]]:
    """Send messages, and return those that come, by sender, in the order of `expect`.

    It is one `Round` whose inbox has a type; `need` and `idle` are as there. Those who are gone are
    left out. An UnexpectedMessageError names the sender of a message of another kind.
    """
    inbox = yield Round(outbox, expect, need, idle)
    return {
        peer: of_kind(inbox[peer], expected.kind, peer)
        for peer, expected in expect.items()
        if peer in inbox
    }


def send(outbox: Mapping[Party, Message]) -> Program[None]:
    """Send messages and expect none: one `Round`."""
    yield Round(outbox, {})


def of_kind(message: Message, kind: type[M], sender: Party) -> M:
    """Return a message that is of a kind; blame its sender for any other."""
    if isinstance(message, kind):
        return message
    sent, expected = type(message).__name__, kind.__name__
    raise UnexpectedMessageError(sender, f"sent {sent} where {expected} was expected")
