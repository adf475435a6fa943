"""What channels tell each other beside the messages of programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mpc.errors import ProtocolError, UnexpectedMessageError
from mpc.rounds import Expect, Message, Party
from protocols import wire
from protocols.errors import printable

REASON = 300  # characters
MOST_NAMES = 65_536  # characters and names of a session's parties


@dataclass(frozen=True, slots=True)
class Control(Message):
    """Travels as messages do, and is read by channels."""


@dataclass(frozen=True, slots=True)
class Ping(Control):
    """Is not answered: it is sent to see whether it arrives."""

    kind: ClassVar[str] = "ping"


@dataclass(frozen=True, slots=True)
class Asked(Control):
    """Wants a `Taken` once all messages before it were read."""

    kind: ClassVar[str] = "asked"


@dataclass(frozen=True, slots=True)
class Taken(Control):
    """All messages before an `Asked` were read."""

    kind: ClassVar[str] = "taken"


@dataclass(frozen=True, slots=True)
class Abort(Control):
    """The sender has left the session; who is to blame, and why."""

    kind: ClassVar[str] = "abort"
    party: str
    reason: str

    @classmethod
    def of(cls, error: BaseException, party: Party) -> Abort:
        """Return what a party tells of its error: of errors without a name the class alone."""
        if isinstance(error, ProtocolError):
            return cls(error.names[:REASON], error.reason[:REASON])
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        return cls(party, "was stopped" if stopped else f"failed ({type(error).__name__})")

    def told(self) -> str:
        """Return the reason, fit for a terminal."""
        return printable(self.reason[:REASON])


@dataclass(frozen=True, slots=True)
class Bye(Control):
    """The session is over."""

    kind: ClassVar[str] = "bye"


@dataclass(frozen=True, slots=True)
class Roster(Message):
    """The parties of a session, sorted: the text of a hello."""

    kind: ClassVar[str] = "roster"
    parties: tuple[str, ...]


def decode_control(body: memoryview, sender: Party) -> Control:
    """Decode a control message, or blame its sender."""
    return wire.decode(body, sender, Expect(Control, 2 * REASON * 4))


def decode_roster(body: bytes, sender: Party) -> tuple[Party, ...]:
    """Decode a session's parties, or blame the sender of the hello."""
    found = wire.decode(body, sender, Expect(Roster, MOST_NAMES))
    if list(found.parties) != sorted(set(found.parties)):
        raise UnexpectedMessageError(sender, "a session whose parties are not in order")
    return found.parties
