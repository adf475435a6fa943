"""The relay: parties connect to it, and it passes on what it cannot read.

It says that two processes use one name (`Roll`), and logs who connects and who is refused
(`vertibayes_protocols.transports.entrance`). What it sees,
`vertibayes_protocols.transports.nvflare` says.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.cells import (
    ANSWER_SECONDS,
    CHANNEL,
    SERVER,
    TOPIC,
    CellMessage,
    make_cell,
    nvflare,
)
from vertibayes_protocols.transports.entrance import Entrance, Tell, silent
from vertibayes_protocols.transports.mailbox import party_of
from vertibayes_protocols.transports.nvflare import EPOCH_BYTES, Endpoint, host_and_port
from vertibayes_protocols.transports.tls import (
    Certificates,
    HandshakeError,
    reason_of,
    secure_party,
)
from vertibayes_protocols.wire import VERSION

MOST_PROCESSES, MOST_NAMES = 4, 1000  # that are remembered: processes of a name, names


class Roll:
    """The processes of the parties, as the relay knows them: they ask it for receipts.

    If a process asks, another process of the same name asks, and the first asks again, two use the
    name: CellNet lets one of them in and the other out, in turns.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: dict[Party, list[bytes]] = {}  # the latest of each name, in order

    def answer(self, request: CellMessage) -> CellMessage:
        """Return a receipt, or that two processes use the name: the callback of the relay."""
        nv = nvflare()
        name = request.get_header(nv.MessageHeaderKey.ORIGIN)
        epoch = request.get_header("epoch")
        if type(name) is not str or type(epoch) is not bytes or len(epoch) != EPOCH_BYTES:
            return nv.make_reply(nv.ReturnCode.INVALID_REQUEST)
        if name != party_of(name):  # each process of an analyst has an address of its own
            return self._receipt(nv.ReturnCode.OK)
        with self._lock:  # CellNet asks from many threads
            known = self._processes.pop(name, [])
            doubled = epoch in known[:-1]
            self._processes[name] = [*(e for e in known if e != epoch), epoch][-MOST_PROCESSES:]
            if len(self._processes) > MOST_NAMES:
                del self._processes[next(iter(self._processes))]
        return self._receipt(nv.ReturnCode.INVALID_SESSION if doubled else nv.ReturnCode.OK)

    def _receipt(self, code: str) -> CellMessage:
        """Return a receipt that has the version of the relay."""
        receipt = nvflare().make_reply(code)
        receipt.set_header("version", VERSION)
        return receipt


def start_relay(
    address: str,
    *,
    certificates: Certificates | None,
    revoked: Path | None = None,
    tell: Tell = silent,
) -> Endpoint:
    """Start the relay in this process."""
    host, port = host_and_port(address)
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise TransportError(f"the relay cannot listen on {address}: {error.strerror}") from None
    entrance = Entrance(certificates, revoked, tell)
    cell = make_cell(SERVER, address, entrance)
    cell.register_request_cb(CHANNEL, TOPIC, Roll().answer)
    relay = Endpoint(address, cell)
    try:
        cell.start()
        if not entrance.listening.wait(ANSWER_SECONDS):
            raise TransportError(f"the relay does not listen on {address}")
    except BaseException:
        relay.close()
        raise
    return relay


# ---- whether a relay listens ---------------------------------------------------------------------

# caller -> relay    TLS, if the caller has certificates; then the greeting of a cell
# caller <- relay    its greeting: a relay answers once it has taken the caller's certificate
#
# The greeting claims the relay's own name, which no party has: the relay answers it, and takes
# nobody in. It shows the caller's address and certificate, and needs no NVFlare.

Kind: TypeAlias = Literal["relay", "nothing", "other", "refused"]

_PREFIX = Struct(">IHBBHHHH")  # of CellNet: length, length of headers, kind, five more
_HELLO, _READY, _KIND = 4, b"\x05", 6  # kinds, and where in a frame the kind is
_SERVER = b"\xadendpoint_name\xa6server"  # in msgpack: "endpoint_name": "server"
GREETING = _PREFIX.pack(_PREFIX.size + 1 + len(_SERVER), 0, _HELLO, 0, 0, 0, 1, 1)
GREETING += b"\x81" + _SERVER  # a map of one item
_MOST_BYTES = 4096


class Answer(NamedTuple):
    """What listens at an address."""

    kind: Kind
    reason: str = ""  # why, in a few words


def knock(where: tuple[str, int], certificates: Certificates | None, seconds: float) -> Answer:
    """Find out what listens at an address."""
    try:
        connected = socket.create_connection(where, seconds)
    except socket.gaierror as error:
        raise ValueError(f"has an unknown host ({error.strerror})") from None
    except OSError as error:
        return Answer("nothing", error.strerror or str(error))
    try:
        if certificates is not None:
            connected = secure_party(connected, certificates)
    except HandshakeError as error:
        return Answer("other", error.reason)
    with connected:
        return _greet(connected)


def _greet(connected: socket.socket) -> Answer:
    """Exchange greetings; over TLS the other end has proved already that it is the relay."""
    why, heard = "its log has the reason", b""
    try:
        connected.sendall(GREETING)
        while _goes_on(heard) and (more := connected.recv(_MOST_BYTES)):
            heard += more
    except OSError as error:
        why = reason_of(error)
    if heard.startswith(_READY, _KIND) and _SERVER in heard:
        return Answer("relay")
    if isinstance(connected, ssl.SSLSocket):
        return Answer("refused", why)
    return Answer("other", "no relay of vertibayes")


def _goes_on(heard: bytes) -> bool:
    """Whether an answer may still become a greeting."""
    if len(heard) < _PREFIX.size:
        return heard.startswith(b"\0\0"[: len(heard)])
    length: int = _PREFIX.unpack_from(heard)[0]
    return len(heard) < length <= _MOST_BYTES
