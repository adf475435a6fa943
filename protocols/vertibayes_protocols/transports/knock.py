"""Whether a relay of this study listens at an address: something else may, or nothing.

    caller -> relay    TLS, if the caller has certificates; then the greeting of a cell
    caller <- relay    its greeting: a relay answers once it has taken the caller's certificate

The greeting claims the relay's own name, which no party has: the relay answers it, and takes
nobody in. Needs no NVFlare.

Leakage: the address and the certificate of the caller. Cost: 1 round.
"""

from __future__ import annotations

import socket
import ssl
from struct import Struct
from typing import Literal, NamedTuple, TypeAlias

from vertibayes_protocols.transports.tls import (
    Certificates,
    HandshakeError,
    reason_of,
    secure_party,
)

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
