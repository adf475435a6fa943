"""A party's connection to the relay: through a proxy if there is one, TLS, WebSocket, proof.

    party -> proxy    CONNECT host:port, with a user and password, if it asks for them
    party -> relay    TLS (`tls`), then the request of HTTP that opens the WebSocket
    party <-> relay   who the two are (`proof`)

An address is `host:port`, or `wss://host[:port]/path` behind a reverse proxy. Nothing is compressed
and no redirection is followed. Without a `proxy` of its own a party takes that of the environment
(HTTPS_PROXY, except for what NO_PROXY names, and for this machine).

Security: `proof`. An error names the proxy by host and port: never a user or a password.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import closing
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from cryptography import x509
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidProxy,
    InvalidProxyStatus,
    ProxyError,
)
from websockets.proxy import get_proxy
from websockets.uri import parse_uri

from vertibayes_protocols.errors import TransportError, words
from vertibayes_protocols.transports.frames import MOST_BYTES, STREAM_BYTES
from vertibayes_protocols.transports.loop import (
    HANDSHAKE_SECONDS,
    SILENT,
    Loop,
    keep_little_unsent,
)
from vertibayes_protocols.transports.proof import (
    DOUBLED,
    KNOCK,
    Credentials,
    Entry,
    entry,
    hello,
    new_nonce,
    read_answer,
    read_challenge,
    read_credentials,
    read_party_credentials,
)
from vertibayes_protocols.transports.route import NO_PROXY, Route, host_and_port, is_this_machine
from vertibayes_protocols.transports.tls import (
    FOREIGN,
    OLDER,
    OTHER,
    HandshakeError,
    check_relay,
    common_name,
    party_context,
    reason_of,
)

NO_RELAY = "no relay of vertibayes"
NOBODY = "nobody"  # without certificates names are claims
QUEUED = 4  # messages that were received and wait to be read


class RefusedError(TransportError):
    """The relay, which has proved who it is, refuses this party."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"it does not take the certificate of this party ({reason})")
        self.reason = reason


class DoubledError(TransportError):
    """Another process of this party is connected."""


def proxy_of(route: Route) -> str | None:
    """Return the proxy by which a party reaches the relay; None if it needs none."""
    if route.proxy is not None:
        return None if route.proxy == NO_PROXY else route.proxy
    return None if is_this_machine(route.host_and_port[0]) else get_proxy(parse_uri(route.url))


def check_route(route: Route) -> None:
    """Refuse an address, or files, that cannot be used."""
    host_and_port(route.address)
    if route.certificates is not None:
        _context(route)
        read_party_credentials(route.certificates)


def _context(route: Route) -> ssl.SSLContext | None:
    if route.certificates is None or not route.is_secure:
        return None
    return party_context(route.certificates.root if route.trust == "root" else None)


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc  # a relay sends nobody elsewhere


async def open_line(route: Route, asked: Entry) -> ClientConnection:
    """Connect to the relay and prove who both are; the files are read again: they may be new.

    Raises
    ------
    OSError, TransportError
        If the relay is not reached, is another, or refuses this party.
    """
    files = route.certificates
    credentials = None if files is None else read_party_credentials(files)
    line = await _open_websocket(route)
    try:
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            if credentials is not None and route.is_secure and route.trust == "root":
                shown = line.transport.get_extra_info("ssl_object").getpeercert(True)
                check_relay(shown, credentials.revoked)
            await _enter(line, asked, credentials)
    except BaseException as error:
        line.transport.abort()
        raise _named(error) from None
    return line


async def _open_websocket(route: Route) -> ClientConnection:
    proxy = proxy_of(route)
    secure: dict[str, Any] = {"ssl": _context(route)} if route.is_secure else {}
    opened = _Connect(
        route.url, proxy=proxy, compression=None, open_timeout=HANDSHAKE_SECONDS,
        ping_interval=None, close_timeout=1.0, max_size=MOST_BYTES, max_queue=QUEUED,
        user_agent_header="vertibayes", logger=SILENT, **secure,
    )  # fmt: skip
    try:
        line = await opened
    except InvalidProxyStatus as error:
        status = error.response.status_code
        why = (
            "its user or password is wrong or missing" if status in (401, 407) else f"HTTP {status}"
        )
        raise TransportError(f"the proxy {_shown(proxy)} refuses the connection: {why}") from None
    except (InvalidProxy, ProxyError):
        raise TransportError(f"the proxy {_shown(proxy)} cannot be used") from None
    except (OSError, InvalidHandshake, EOFError) as error:
        raise _named(error, route, proxy) from None
    except (ValueError, ImportError):  # of the proxy: the address was checked before
        raise TransportError(f"the proxy {_shown(proxy)} cannot be used") from None
    keep_little_unsent(line.transport.get_extra_info("socket"))
    return line


def _shown(proxy: str | None) -> str:
    """Return a proxy's host and port, and never its user and password."""
    try:
        url = urlsplit(proxy or "")
        return f"{url.hostname}:{url.port}" if url.hostname else "of this party"
    except ValueError:
        return "of this party"


def advice(route: Route, reason: str) -> str:
    """Return what a party may change if TLS ends for a reason; empty if that is not known."""
    if route.trust == "root" and reason in (FOREIGN, OLDER, OTHER):
        return '; if a proxy or reverse proxy ends TLS: trust = "system" in [relay] of this party'
    if reason == FOREIGN:
        return '; trust = "system" in [relay] needs an authority that this machine trusts'
    return ""


def _named(
    error: BaseException, route: Route | None = None, proxy: str | None = None
) -> BaseException:
    """Return an error of a connection that says what is at the other end."""
    if isinstance(error, ConnectionClosed | InvalidHandshake | EOFError):
        return HandshakeError(NO_RELAY, f"what listens there is {NO_RELAY}")
    if isinstance(error, HandshakeError):
        sentence = f"it shows no certificate of this study's relay ({error.reason})"
        sentence += advice(route, error.reason) if route else ""
        return HandshakeError(error.reason, sentence)
    if isinstance(error, ssl.SSLError):
        return _named(HandshakeError(reason_of(error)), route)
    if not isinstance(error, OSError):
        return error
    is_away = isinstance(error, socket.gaierror)
    if "Connect call failed" in str(error.strerror):
        is_away, error = True, OSError(error.errno, os.strerror(error.errno or 0))  # no address
    if proxy is None:
        return error
    if is_away:
        return TransportError(f"the proxy {_shown(proxy)} cannot be reached ({words(error)})")
    return TransportError(f"{words(error)}, by way of the proxy {_shown(proxy)}")


async def _enter(line: ClientConnection, asked: Entry, credentials: Credentials | None) -> None:
    """Prove who both ends are, and enter."""
    party_nonce = new_nonce()
    await line.send(hello(party_nonce))
    relay_nonce = read_challenge(await _message(line), party_nonce, credentials)
    await line.send(entry(asked, party_nonce, relay_nonce, credentials))
    reason = read_answer(await _message(line), party_nonce, relay_nonce, credentials)
    if reason == DOUBLED:
        raise DoubledError(f"another process is connected to the relay as {asked.address}")
    if reason:
        raise RefusedError(reason)


async def _message(line: ClientConnection) -> bytes:
    message = await line.recv()
    if not isinstance(message, bytes):
        raise HandshakeError("not readable")
    return message


# ---- whether a relay listens ---------------------------------------------------------------------

Kind: TypeAlias = Literal["relay", "nothing", "proxy", "other", "refused"]


class Answer(NamedTuple):
    """What listens at an address."""

    kind: Kind
    reason: str = ""  # why, in a few words


def knock(route: Route, seconds: float) -> Answer:
    """Find out what listens at an address; a relay checks the party, and does not let it in.

    A TransportError says that the party's own files cannot be used.
    """
    check_route(route)
    name = NOBODY
    if route.certificates is not None:
        own = read_credentials(route.certificates).certificate
        name = common_name(x509.load_der_x509_certificate(own))
    with closing(Loop("knock")) as loop:  # the caller's thread may have a loop that runs
        return loop.run(_knock(route, Entry(name, bytes(STREAM_BYTES), KNOCK), seconds))


async def _knock(route: Route, asked: Entry, seconds: float) -> Answer:
    try:
        async with asyncio.timeout(seconds):
            line = await open_line(route, asked)
    except RefusedError as error:
        return Answer("refused", error.reason)
    except HandshakeError as error:
        return Answer("other", error.reason)
    except TransportError as error:
        return Answer("proxy", str(error))
    except TimeoutError:
        return Answer("other", "timeout")
    except socket.gaierror as error:
        raise ValueError(f"has an unknown host ({error.strerror})") from None
    except OSError as error:
        return Answer("nothing", words(error))
    line.transport.abort()
    return Answer("relay")
