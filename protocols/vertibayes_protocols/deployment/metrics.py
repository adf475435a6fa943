"""What a monitor asks a running party: `http://127.0.0.1:9464/metrics`, in Prometheus' text format.

`[metrics]` in a party's file starts it; `address` is another place to listen at. The numbers are of
the party itself: events of its log, sessions, bytes, the end of its certificate, the sizes of what
it keeps, and of a site what is used and left of its limits. They name no analyst, no study, no
variable and no other party.

Security: whoever can reach the address can read these numbers, and nothing else; there is neither a
password nor TLS, so the default is this machine alone. One request is answered at a time: a visitor
who does not finish holds up other visitors, and never the party.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from threading import Thread
from typing import TypeAlias

from vertibayes_protocols.deployment.certificates import end_of
from vertibayes_protocols.deployment.files import PartyFile, RelayFile, SiteFile
from vertibayes_protocols.deployment.status import Status
from vertibayes_protocols.events import Fact, Tell
from vertibayes_protocols.transports.counted import Moved

Labels: TypeAlias = Mapping[str, str]
Sample: TypeAlias = tuple[str, Labels, float]  # the name of a metric without its prefix
Used: TypeAlias = tuple[str, float, float]  # the name of a limit, what is used of it, its value

SILENT_SECONDS = 5.0  # in which a visitor must go on
LAST_SECONDS = 1.0  # for the last visitor, when the party is stopped
HELP = {
    "info": "The release and the version of the protocols.",
    "connected": "Whether the party is connected to the relay.",
    "sessions": "Sessions that are open.",
    "started_seconds": "When the party was started, Unix time.",
    "events_total": "Events of the log since the party was started.",
    "event_seconds": "When an event was logged last, Unix time.",
    "sent_bytes_total": "Bytes that the party has given to the relay.",
    "received_bytes_total": "Bytes that the relay has given to the party.",
    "certificate_end_seconds": "When the party's certificate expires, Unix time.",
    "file_bytes": "The size of a file in the folder of the site's memory.",
    "limit": "A limit of the site, over all studies.",
    "limit_used": "What is used of a limit.",
    "limit_left": "What is left of a limit.",
}


class Metrics:
    """The numbers of one running party."""

    def __init__(
        self, file: PartyFile | RelayFile, status: Status, limits: Callable[[], list[Used]] = list
    ) -> None:
        self.moved = Moved()
        self._file, self._status, self._limits = file, status, limits
        self._latest: dict[str, float] = {}
        self._known: tuple[object, list[Used]] = None, []

    def watch(self, tell: Tell) -> Tell:
        """Return what logs events by `tell`, and notes when each came last."""

        def note(event: str, **facts: Fact) -> None:
            self._latest[event] = time.time()
            tell(event, **facts)

        return note

    def text(self) -> str:
        """Return all numbers in Prometheus' text format."""
        who = {"party": self._status.party, "role": self._status.role}
        lines, name = list[str](), ""
        for metric, labels, value in sorted(self._samples(), key=lambda s: (s[0], *s[1].values())):
            if metric != name:
                name, kind = metric, "counter" if metric.endswith("_total") else "gauge"
                lines += [f"# HELP vertibayes_{name} {HELP[name]}"]
                lines += [f"# TYPE vertibayes_{name} {kind}"]
            shown = ",".join(f'{k}="{_escaped(v)}"' for k, v in {**who, **labels}.items())
            lines.append(f"vertibayes_{name}{{{shown}}} {value:.17g}")
        return "\n".join(lines) + "\n"

    def _samples(self) -> Iterator[Sample]:
        status, moved = self._status, self.moved
        yield "info", {"release": status.release, "protocol": str(status.protocol)}, 1
        yield "connected", {}, status.connected
        yield "sessions", {}, len(status.sessions)
        yield "started_seconds", {}, datetime.fromisoformat(status.started).timestamp()
        for event, count in list(status.events.items()):
            yield "events_total", {"event": event}, count
        for event, at in list(self._latest.items()):
            yield "event_seconds", {"event": event}, at
        if not isinstance(self._file, RelayFile):
            yield "sent_bytes_total", {}, moved.sent
            yield "received_bytes_total", {}, moved.received
        if self._file.certificates is not None:
            with suppress(ValueError):  # the log has the reason
                end = end_of(self._file.certificates.certificate)
                yield "certificate_end_seconds", {}, end.timestamp()
        if isinstance(self._file, SiteFile):
            yield from self._kept(self._file.folder)

    def _kept(self, folder: Path) -> Iterator[Sample]:
        """Yield the sizes of a site's files, and what is used of its limits."""
        with suppress(OSError, ValueError):  # files that change now: the next visit reads them
            files = {p.name: p.stat() for p in folder.iterdir() if p.is_file()}
            for name, stat in files.items():
                yield "file_bytes", {"file": name}, stat.st_size
            now = {name: (stat.st_size, stat.st_mtime_ns) for name, stat in files.items()}
            if now != self._known[0]:  # a large memory is read only if it has changed
                self._known = now, self._limits()
            for limit, used, most in self._known[1]:
                yield "limit", {"limit": limit}, most
                yield "limit_used", {"limit": limit}, used
                yield "limit_left", {"limit": limit}, max(most - used, 0)


@contextmanager
def metrics_served(metrics: Metrics, address: str | None) -> Iterator[None]:
    """Answer a monitor at an address while the block runs; at none if the address is None."""
    if address is None:
        yield
        return
    host, _, port = address.rpartition(":")
    try:
        server = _Server((host, int(port)), partial(_Visit, metrics.text))
    except OSError as error:
        raise ValueError(
            f"[metrics] address: cannot listen at {address}: {error.strerror}; set another one"
        ) from None
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            stop = Thread(target=server.shutdown, daemon=True)
            stop.start()
            stop.join(LAST_SECONDS)


class _Server(TCPServer):
    """Listens; unlike `HTTPServer` it asks no name server who it is."""

    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """Log nothing of a visitor who hangs up."""


class _Visit(BaseHTTPRequestHandler):
    """Answers GET /metrics."""

    timeout = SILENT_SECONDS

    def __init__(self, text: Callable[[], str], *arguments: object) -> None:
        self._text = text
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Send the numbers."""
        if self.path != "/metrics":
            self.send_error(404)
            return
        body = self._text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Return the name of the server, without the version of Python."""
        return "vertibayes"

    def log_message(self, *_: object) -> None:
        """Log nothing: a monitor comes every few seconds."""


def _escaped(text: str) -> str:
    """Return a text as the value of a label."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
