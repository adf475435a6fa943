"""The relay's door: its certificates, which are revoked, and what is logged of who comes and goes.

    connected       peer, address, serial number of the certificate, the day on which it expires
    disconnected    peer, address, seconds
    refused         address, reason: unknown authority, expired, revoked, no certificate, timeout
    packet refused  peer, reason: not a frame of a party

Security: the log is limited, so that nobody fills the disk: of one event and party, at most 20
lines at once, and one more in each minute. All strangers together count as one party. The next line
says how many were left out.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.events import CONNECTED, Tell, silent
from vertibayes_protocols.transports.proof import Credentials, read_credentials
from vertibayes_protocols.transports.tls import (
    Certificates,
    HandshakeError,
    PeerCertificate,
    read_revoked,
    relay_context,
)

MOST_LINES, LINE_SECONDS = 20, 60.0  # of one event and party: at once, and between further lines
MOST_SHOWN = 80  # characters of a name that a stranger has chosen


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


class Entrance:
    """The relay's certificates, its list of revoked ones, and its log of who comes and goes."""

    def __init__(
        self,
        certificates: Certificates | None,
        revoked: Path | None = None,
        tell: Tell = silent,
        *,
        tls: bool = True,
    ) -> None:
        self.certificates, self._tls = certificates, tls
        self._revoked = revoked
        self._log = LimitedLog(tell)
        self._files: tuple[object, ...] = ()
        self._list: object = None
        self._known: frozenset[int] = frozenset()
        self._own: tuple[Credentials, ssl.SSLContext] | None = None
        if certificates is not None:
            self._files, self._own = state_of(certificates), _read(certificates)

    @property
    def credentials(self) -> Credentials | None:
        """What the relay proves itself with; None without certificates."""
        return None if self._own is None else self._current()[0]

    @property
    def context(self) -> ssl.SSLContext | None:
        """The relay's TLS; None without certificates, or where a reverse proxy ends TLS."""
        return None if self._own is None or not self._tls else self._current()[1]

    def _current(self) -> tuple[Credentials, ssl.SSLContext]:
        """Return what the files give: the new ones after the certificate was renewed."""
        assert self.certificates is not None and self._own is not None  # both are set
        if (state := state_of(self.certificates)) != self._files:
            self._files = state
            try:
                self._own = _read(self.certificates)
            except TransportError as error:  # half a copy: the next connection reads it again
                self._files = ()
                self._log("certificates not read", reason=str(error))
        return self._own

    def check(self, shown: PeerCertificate) -> None:
        """Refuse a certificate that was revoked, and all if the list cannot be read."""
        try:
            if shown.serial in self._serials():
                raise HandshakeError(_revoked("revoked", shown))
        except ValueError as error:
            raise HandshakeError(_revoked(str(error), shown)) from None

    def entered(self, party: Party, address: str, shown: PeerCertificate | None) -> None:
        """Log that a party has entered."""
        until = (
            {} if shown is None else {"certificate": shown.number, "until": f"{shown.end:%Y-%m-%d}"}
        )
        self._log(CONNECTED, self._certified(party), address=address, **until)

    def handed_out(self, address: str) -> None:
        """Log that somebody has got the bundle."""
        self._log("bundle handed out", address=address)

    def left(self, party: Party, address: str, seconds: float) -> None:
        """Log that a connection has ended."""
        self._log("disconnected", self._certified(party), address=address, seconds=int(seconds))

    def refused(self, address: str, reason: str, party: Party = "") -> None:
        """Log that a connection is refused; `party` is a certified name."""
        self._log("refused", party, address=address, reason=reason)

    def packet_refused(self, party: Party, reason: str) -> None:
        """Log that a party's packet is refused; without certificates its name is a claim."""
        self._log("packet refused", self._certified(party), reason=reason)

    def _certified(self, party: Party) -> Party:
        """Return a name if certificates prove it: a stranger could fill the log with others."""
        return party if self.certificates is not None else ""

    def _serials(self) -> frozenset[int]:
        return frozenset() if self._revoked is None else read_revoked(self._revoked)

    def revoked(self) -> frozenset[int]:
        """Return the revoked serial numbers, read when the list has changed: the relay asks often.

        A list that cannot be read leaves those of the list before it.
        """
        if self._revoked is not None and (state := state_of([self._revoked])) != self._list:
            self._list = state
            try:
                self._known = self._serials()
            except ValueError as error:
                self._log("list of revoked certificates not read", reason=str(error))
        return self._known


def _read(certificates: Certificates) -> tuple[Credentials, ssl.SSLContext]:
    return read_credentials(certificates), relay_context(certificates)


def _revoked(reason: str, shown: PeerCertificate) -> str:
    return f"{reason}: {shown.name}, certificate {shown.number}"


def state_of(paths: Iterable[Path]) -> tuple[object, ...]:
    """Return what changes when a file is written."""
    found: list[object] = []
    for path in paths:
        state = None
        with suppress(OSError):
            state = path.stat()
        found.append(state and (state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)
