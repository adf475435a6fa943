"""What connections send each other beside messages of programs; versions and clocks that differ.

    a -> b    hello: the header has a's version                         (vertibayes_protocols.seal)
    b -> a    hello, with the text of a's own; abort, whose reason names both versions

Each party compares the version of a hello with its own after the hello has opened and before it
reads its text. A hello that begins a session is answered as above, and the session does not begin;
in a session that has begun, the party aborts it. A party of release 0.1.0 or older reads hello and
abort, and ends with this reason; so do later ones, which find the version in the hello first.

A hello that answers the analyst's has the time of its sender: a party of this version sends it, and
no party of another version reads it. The analyst warns of a difference above five minutes; nothing
else depends on it.

Security: the version is authenticated as the rest of the header: who carries packets can neither
make two parties differ nor hide that they do. A hello that begins a session opens only if it comes
from a pinned peer, and is answered once. Leakage: the versions, to who carries packets; the clock
of a party, in whole seconds, to its analyst.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.randomness import Randomness
from vertibayes_mpc.rounds import Expect, Message, Party
from vertibayes_protocols import RELEASE, wire
from vertibayes_protocols.errors import PeerAbortedError, printable
from vertibayes_protocols.seal import Identity, Seal, read_header

CONTROL = b"control\0"  # the beginning of what is sealed, before a control
REASON = 300  # characters
UNNAMED = 0  # the version in headers of releases that do not name theirs
MOST_NAMES = 65_536  # characters and names of a session's parties
CLOCKS = 300.0  # seconds by which clocks may differ


@dataclass(frozen=True, slots=True)
class Control(Message):
    """Travels as messages do; connections read it, and programs do not."""


@dataclass(frozen=True, slots=True)
class Ping(Control):
    """Is not answered: its sender learns whether it arrives."""

    kind: ClassVar[str] = "ping"


@dataclass(frozen=True, slots=True)
class Asked(Control):
    """Asks for a `Taken` as soon as all messages before it are read."""

    kind: ClassVar[str] = "asked"


@dataclass(frozen=True, slots=True)
class Taken(Control):
    """All messages before an `Asked` are read."""

    kind: ClassVar[str] = "taken"


@dataclass(frozen=True, slots=True)
class Abort(Control):
    """The sender has left the session; the party at fault, and why."""

    kind: ClassVar[str] = "abort"
    party: str
    reason: str

    @classmethod
    def of(cls, error: BaseException, party: Party) -> Abort:
        """Return what a party says of its error: the class alone, unless it names a party."""
        if isinstance(error, ProtocolError):
            return cls(error.names[:REASON], error.reason[:REASON])
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return cls(party, "was stopped")
        known = isinstance(error, OSError) and error.strerror  # such as a full disk, without a path
        return cls(party, f"failed ({known or type(error).__name__})"[:REASON])

    def error(self, sender: Party, known: Collection[Party]) -> PeerAbortedError:
        """Return the error of a receiver: it blames a party that it knows, or else the sender."""
        reason = printable(self.reason[:REASON])
        if self.party == sender or self.party not in known:
            return PeerAbortedError(sender, reason)
        return PeerAbortedError(self.party, f"{reason} ({sender} says so)")


@dataclass(frozen=True, slots=True)
class Bye(Control):
    """The session is over."""

    kind: ClassVar[str] = "bye"


@dataclass(frozen=True, slots=True)
class Roster(Message):
    """The parties of a session, sorted: the text of a hello."""

    kind: ClassVar[str] = "roster"
    parties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Joined(Roster):
    """The text of a hello that answers the analyst's: also the sender's clock."""

    kind: ClassVar[str] = "joined"
    clock: int  # Unix time, seconds


R = TypeVar("R", bound=Roster)


def decode_control(body: bytes, sender: Party) -> Control:
    """Decode a control; an error names its sender."""
    return wire.decode(body, sender, Expect(Control, 2 * REASON * 4))


def decode_roster(body: bytes, sender: Party, kind: type[R]) -> R:
    """Decode the parties of a session; an error names the sender of the hello."""
    roster = wire.decode(body, sender, Expect(kind, MOST_NAMES))
    if list(roster.parties) != sorted(set(roster.parties)):
        raise UnexpectedMessageError(sender, "a session whose parties are not in order")
    return roster


def clocks_differ(party: Party, clock: int, asked: float, now: float) -> str:
    """Return a warning if a clock, read after `asked` and before now, is not near."""
    ahead = max(clock - now, 0.0) or min(clock - asked, 0.0)
    if abs(ahead) <= CLOCKS:
        return ""
    minutes = round(abs(ahead) / 60)
    return (
        f"the clock of {party} is {minutes // 60} h {minutes % 60} min "
        f"{'ahead of' if ahead > 0 else 'behind'} this one: compare both with a time server"
    )


# ---- versions ------------------------------------------------------------------------------------


class VersionsDifferError(ProtocolError):
    """A peer speaks another version of the protocols; the reason names both versions."""

    @property
    def party(self) -> Party:
        """The peer."""
        return self.parties[0]


def compare_versions(identity: Identity, sender: Party, packet: bytes) -> None:
    """Compare the version of a packet that has opened with a party's own."""
    version = read_header(packet, sender).version
    if version != identity.version:
        own = f"version {identity.version} of the protocols (vertibayes {RELEASE})"
        other = "an older one (vertibayes 0.1.0 or older)"
        other = other if version == UNNAMED else f"version {version}"
        raise VersionsDifferError(
            sender,
            f"{identity.party} speaks {own}, {sender} {other}: install the same release at all "
            "parties",
        )


def farewell(
    identity: Identity, error: VersionsDifferError, hello: bytes, randomness: Randomness
) -> tuple[bytes, bytes]:
    """Return the answer to a hello of another version: a hello of its session and an abort."""
    seal = Seal(identity, read_header(hello, error.party).session, randomness)
    text = seal.welcome(error.party, hello)
    abort = CONTROL + wire.encode(Abort.of(error, identity.party))
    return seal.greet(error.party, text), seal.seal(error.party, abort)
