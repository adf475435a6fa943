"""The page of a run on this machine: http://127.0.0.1:PORT/TOKEN/, from its status file alone.

    browser -> server    GET /TOKEN/             the page
    browser -> server    GET /TOKEN/view.json    what it shows, every second

Security: the server listens at 127.0.0.1 alone. Other users of the machine can connect to it, and
other pages in the browser can send it requests; both lack the token, 256 random bits in the path,
which is compared in constant time and never logged. A request must name 127.0.0.1 or localhost as
its host: a page whose name an attacker resolves to 127.0.0.1 cannot read answers. There is no CORS
header, only GET and HEAD are answered, and nothing changes by a request. At most `MOST_CLIENTS`
connections are open: the oldest is closed for a new one, so that clients that send nothing block
nobody.

When the server has ended, the page goes on asking, and another user can listen at its port. Each
answer therefore has a second secret of the page, which no request has: the page shows nothing of an
answer without it.

Leakage: as of `vertibayes_protocols.deployment.run_status`, to whoever has the address with its
token; other users of the machine learn that the port is open.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from vertibayes.report.live.page import page_of, policy_of
from vertibayes.report.live.view import View

ADDRESS = "127.0.0.1"
HOST = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")  # a tunnel has another port
TOKEN_BYTES = 32
MOST_CLIENTS = 32
CLIENT_SECONDS = 5.0  # for a client that sends or reads nothing
# On Windows, SO_REUSEADDR would let another process listen at the same port.
ALONE = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RunServer(ThreadingHTTPServer):
    """Serves the page of a run."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, view: Callable[[], View], port: int = 0) -> None:
        self.view, self.token = view, secrets.token_urlsafe(TOKEN_BYTES)
        self.proof = secrets.token_urlsafe(TOKEN_BYTES)
        self.shown_end = Event()
        self._clients: deque[socket.socket] = deque()
        self._lock = Lock()
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def server_bind(self) -> None:
        """Bind without a look-up of the machine's name, which may ask the network."""
        self.socket.setsockopt(socket.SOL_SOCKET, ALONE, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client in a thread of its own; hang up on the oldest of too many."""
        with self._lock:
            self._clients.append(request)
            oldest = self._clients.popleft() if len(self._clients) > MOST_CLIENTS else None
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Hang up, and forget the client."""
        with self._lock, suppress(ValueError):
            self._clients.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: a client that hangs up is no error."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a client."""

    server: RunServer
    timeout = CLIENT_SECONDS
    server_version, sys_version = "vertibayes", ""

    def parse_request(self) -> bool:
        """Refuse a request before its method is looked at."""
        if not super().parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
            return False
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return False
        return True

    def do_GET(self) -> None:
        """Answer with the page or with what it shows."""
        parts = self.path.split("/")
        known = len(parts) == 3 and parts[0] == ""
        given = parts[1].encode("utf-8", "replace") if known else b""
        if not hmac.compare_digest(given, self.server.token.encode()):
            return self.send_error(HTTPStatus.NOT_FOUND)
        if parts[2] == "view.json":
            return self._send_view()
        if parts[2]:
            return self.send_error(HTTPStatus.NOT_FOUND)
        nonce = secrets.token_urlsafe(16)
        page = page_of(self.server.view(), nonce, self.server.proof)
        return self._send(page, "text/html", {"Content-Security-Policy": policy_of(nonce)})

    def do_HEAD(self) -> None:
        """Answer as `do_GET`, without the body."""
        self.do_GET()

    def _send_view(self) -> None:
        view = self.server.view()
        self._send(json.dumps({**view, "proof": self.server.proof}), "application/json")
        if view["over"] and self.command == "GET":
            self.server.shown_end.set()

    def _send(
        self, text: str, kind: str, headers: dict[str, str] | None = None, status: int = 200
    ) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response_only(status)
        for name, value in {**HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with the status alone: nothing of the request is repeated."""
        del message, explain
        self.close_connection = True
        self.command = self.command or "GET"  # of a request that cannot be read
        allow = {"Allow": "GET, HEAD"} if code == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self._send(f"{HTTPStatus(code).phrase}\n", "text/plain", allow, code)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name)
        """Log nothing: paths have the token."""


@contextmanager
def serving(view: Callable[[], View], port: int = 0) -> Iterator[RunServer]:
    """Serve the page of a run, in a thread, until the block ends; as `RunServer`."""
    with RunServer(view, port) as server:
        thread = Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
