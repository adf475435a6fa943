"""The relay's end of connections: who enters and leaves, who is refused, and what is logged of it.

    connected       peer, address, serial number of the certificate, the day on which it expires
    disconnected    peer, address, seconds
    refused         address, reason: unknown authority, expired, revoked, no certificate, timeout
    packet refused  peer, reason: in the name of another party, or not plain bytes

Security: the log is limited, so that nobody fills the disk: of one event and party, at most 20
lines at once, and one more in each minute. All strangers together count as one party. The next line
says how many were left out.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import NamedTuple, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.tls import (
    Certificates,
    HandshakeError,
    PeerCertificate,
    hang_up,
    read_revoked,
    relay_context,
    secure_relay,
)

Tell: TypeAlias = Callable[..., None]  # tell("event", name=value, ...)

HANDSHAKE_SECONDS = 10.0
MOST_LINES, LINE_SECONDS = 20, 60.0  # of one event and party: at once, and between further lines
MOST_SHOWN = 80  # characters of a name that a stranger has chosen


def silent(*_: object, **__: object) -> None:
    """Log nothing."""


class LimitedLog:
    """Logs events of parties, a limited number of lines of each."""

    def __init__(self, tell: Tell, clock: Callable[[], float] = monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._lock = Lock()
        self._room: dict[tuple[str, Party], tuple[float, float, int]] = {}  # lines, when, left out

    def __call__(self, event: str, party: Party = "", **facts: str | int) -> None:
        """Log an event, with the number of those that were left out before it; or leave it out."""
        with self._lock:
            now = self._clock()
            room, since, left_out = self._room.get((event, party), (float(MOST_LINES), now, 0))
            room = min(MOST_LINES, room + (now - since) / LINE_SECONDS)
            logged = room >= 1
            after = (room - 1, now, 0) if logged else (room, now, left_out + 1)
            self._room[event, party] = after
        if logged:
            named = {"peer": party} if party else {}
            more = {"left_out": left_out} if left_out else {}
            self._tell(event, **named, **facts, **more)


class Entered(NamedTuple):
    """A connection that the relay has let in."""

    connection: socket.socket  # over TLS if the relay has certificates
    shown: PeerCertificate | None  # what the party's certificate says; None without certificates
    address: str  # the party's host and port
    since: float  # when it was let in, by `time.monotonic`

    @property
    def party(self) -> Party:
        """The certified name; empty without certificates."""
        return self.shown.name if self.shown else ""


class Entrance:
    """The relay's certificates, its list of revoked ones, and the connections that are open."""

    def __init__(
        self, certificates: Certificates | None, revoked: Path | None = None, tell: Tell = silent
    ) -> None:
        self.certificates = certificates
        self._revoked = revoked
        self.listening = Event()
        self._log = LimitedLog(tell)
        self._lock = Lock()
        self._inside: set[Entered] = set()
        self._files: tuple[object, ...] = ()
        self._context: ssl.SSLContext | None = None
        self._list: object = None
        if certificates is not None:
            self._files, self._context = _state_of(certificates), relay_context(certificates)

    def enter(self, plain: socket.socket, address: tuple[str, int]) -> Entered | None:
        """Shake hands, and return the connection; None, and a line in the log, if it is refused."""
        where = f"{address[0]}:{address[1]}"
        try:
            connection, shown = self._shake_hands(plain)
        except HandshakeError as error:
            self.refused(where, error.reason)
            return None
        entered = Entered(connection, shown, where, monotonic())
        with self._lock:
            self._inside.add(entered)
        until = (
            {} if shown is None else {"certificate": shown.number, "until": f"{shown.end:%Y-%m-%d}"}
        )
        self._log("connected", entered.party, address=where, **until)
        return entered

    def _shake_hands(self, plain: socket.socket) -> tuple[socket.socket, PeerCertificate | None]:
        if self.certificates is None:
            return plain, None
        plain.settimeout(HANDSHAKE_SECONDS)
        connection, shown = secure_relay(plain, self._current())
        try:
            reason = "revoked" if shown.serial in self._serials() else ""
        except ValueError as error:  # the list cannot be read
            reason = str(error)
        if reason:
            hang_up(connection)
            raise HandshakeError(_revoked(reason, shown))
        connection.settimeout(None)
        return connection, shown

    def leave(self, entered: Entered) -> None:
        """Note that a connection has ended."""
        with self._lock:
            self._inside.discard(entered)
        entered.connection.close()
        seconds = int(monotonic() - entered.since)
        self._log("disconnected", entered.party, address=entered.address, seconds=seconds)

    def refused(self, address: str, reason: str, party: Party = "") -> None:
        """Log that a connection is refused; `party` is a certified name."""
        self._log("refused", party, address=address, reason=reason)

    def name_refused(self, party: Party, name: str) -> None:
        """Log that a certified party has connected under the name of another party."""
        self._log("refused", party, reason=f"connected in the name of {name[:MOST_SHOWN]}")

    def packet_refused(self, party: Party, reason: str) -> None:
        """Log that a party's packet is refused; without certificates its name is a claim."""
        self._log("packet refused", party if self.certificates else "", reason=reason)

    def _serials(self) -> frozenset[int]:
        return frozenset() if self._revoked is None else read_revoked(self._revoked)

    def _current(self) -> ssl.SSLContext:
        """Return the context; with the new files after the relay's certificate was renewed."""
        assert self.certificates is not None and self._context is not None  # both are set
        with self._lock:
            if (state := _state_of(self.certificates)) != self._files:
                self._files = state
                try:
                    self._context = relay_context(self.certificates)
                except TransportError as error:  # half a copy: the next handshake reads it again
                    self._files = ()
                    self._log("certificates not read", reason=str(error))
            return self._context

    def send_away(self) -> None:
        """Close connections whose certificates were revoked since: the relay calls it often."""
        if self._revoked is None or (state := _state_of([self._revoked])) == self._list:
            return
        try:
            serials = self._serials()
        except ValueError as error:
            self._log("list of revoked certificates not read", reason=str(error))
            return
        finally:
            self._list = state
        with self._lock:
            inside = [(one, one.shown) for one in self._inside if one.shown is not None]
        for one, shown in inside:
            if shown.serial in serials:
                self.refused(one.address, _revoked("revoked", shown))
                with suppress(OSError):  # another thread reads it, and then closes it
                    one.connection.shutdown(socket.SHUT_RDWR)


def _revoked(reason: str, shown: PeerCertificate) -> str:
    return f"{reason}: {shown.name}, certificate {shown.number}"


def _state_of(paths: Iterable[Path]) -> tuple[object, ...]:
    """Return what changes when a file is written."""
    found: list[object] = []
    for path in paths:
        state = None
        with suppress(OSError):
            state = path.stat()
        found.append(state and (state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)
