"""Packets over NVFlare's CellNet: parties with one outbound connection each, and a relay.

    party -> relay -> party    a piece of a packet, at most 1 MiB: epoch, number, first, last
    party <- relay <- party    its receipt

A party is an ordinary process that connects to the relay; nothing connects to it. CellNet is an
internal interface of NVFlare: all of it is here, and it is asked for nothing but to deliver bytes.
A piece is sent again until its receipt has come or patience is over, and numbered, so that what
comes twice is taken once and in order. A party that has heard nothing for a while asks the relay
for a receipt, and connects anew if none comes.

Security: what CellNet would decode (its own serialization, bulk messages, exchange of keys) is
refused before it is read: only plain bytes are taken in. With certificates all connections are
mutual TLS, the name of each party is the common name of its certificate, the relay's is "relay",
and the relay forwards nothing in another's name. Without, names are only said; either way nothing
is believed that `protocols.seal` does not open.

Leakage: to the relay, who talks to whom, when, how much. Cost: a receipt a piece.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from secrets import token_bytes
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

from mpc.rounds import Party
from protocols.errors import PeerGoneError, TransportError
from protocols.transports.mailbox import RELAY
from protocols.transports.pieces import Pieces

CHANNEL, TOPIC = "vertibayes", "packet"
SERVER = "server"  # CellNet's name of the relay
PIECE = 1 << 20
ANSWER_SECONDS = 5.0  # for a receipt, and more for the bytes of its piece:
BYTES_A_SECOND = 250_000
AGAIN_SECONDS = 0.2
QUIET_SECONDS = 10.0  # before the relay is asked for a receipt
WAKE_SECONDS = 0.5  # a signal may reach another thread: Python acts when the main one next runs
STOP_SECONDS = 1.5  # for CellNet to stop: it waits for a connection that is being tried
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Certificates(NamedTuple):
    """Files in PEM of one party's mutual TLS.

    Parameters
    ----------
    root : Path
        The certificate of the authority that signed all parties' certificates.
    certificate, key : Path
        The party's own; its common name is the party's, or "relay".
    """

    root: Path
    certificate: Path
    key: Path


class Relay:
    """A relay that listens; use it as a context manager.

    Attributes
    ----------
    address : str
    """

    def __init__(self, address: str, cell: Any) -> None:
        self.address = address
        self._cell = cell

    def close(self) -> None:
        """Stop listening, and close all connections."""
        _stop(self._cell)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CellLink:
    """A party's link to its peers, by way of the relay; see `protocols.transports.mailbox.Link`."""

    def __init__(self, party: Party, address: str, cell: Any) -> None:
        self.party = party
        self.address = address
        self._cell = cell
        self._pieces = Pieces()
        self._epoch = token_bytes(16)
        self._numbers: dict[Party, int] = {}
        cell.register_request_cb(CHANNEL, TOPIC, self._take)

    def deliver(
        self, packets: Mapping[Party, bytes], patience: float
    ) -> Mapping[Party, PeerGoneError]:
        """Deliver packets, side by side; return the errors of those that were not reached."""
        at = dict.fromkeys(packets, 0)
        since: dict[Party, float] = {}  # when a receiver's receipts began to lack
        failed: dict[Party, PeerGoneError] = {}
        while at:
            receipts = self._send({p: self._piece(p, packets[p], at[p]) for p in at})
            now = monotonic()
            for peer, received in receipts.items():
                if received:
                    self._numbers[peer] = self._numbers.get(peer, 0) + 1
                    at[peer] += PIECE
                    since.pop(peer, None)
                    if at[peer] >= len(packets[peer]):
                        del at[peer]
                elif now - since.setdefault(peer, now) >= patience:
                    failed[peer] = self._lost(peer)
                    self._numbers[peer] = self._numbers.get(peer, 0) + 1  # it may have come
                    del at[peer]
            if since.keys() & at.keys():
                sleep(AGAIN_SECONDS)
        return failed

    def _piece(self, peer: Party, packet: bytes, at: int) -> tuple[dict[str, Any], bytes]:
        end = at + PIECE
        number = self._numbers.get(peer, 0)
        first, last = at == 0, end >= len(packet)
        headers = {"epoch": self._epoch, "number": number, "first": first, "last": last}
        return headers, packet[at:end]

    def _send(self, pieces: Mapping[Party, tuple[dict[str, Any], bytes]]) -> dict[Party, bool]:
        """Send a piece to each receiver, and wait for the receipts."""
        nv = _nvflare()
        targets = {
            peer: nv.TargetMessage(peer, CHANNEL, TOPIC, nv.Message(headers, piece))
            for peer, (headers, piece) in pieces.items()
        }
        size = sum(len(piece) for _, piece in pieces.values())
        seconds = ANSWER_SECONDS + size / BYTES_A_SECOND
        replies = self._cell.broadcast_multi_requests(targets, seconds, optional=True)
        codes = {p: r.get_header(nv.MessageHeaderKey.RETURN_CODE) for p, r in replies.items()}
        if nv.ReturnCode.TIMEOUT in codes.values():
            self._check_relay()
        return {peer: code == nv.ReturnCode.OK for peer, code in codes.items()}

    def _lost(self, peer: Party) -> PeerGoneError:
        if self._cell.is_backbone_ready():
            return PeerGoneError(peer, "cannot be reached")
        return PeerGoneError(RELAY, f"cannot be reached at {self.address}")

    def is_connected(self) -> bool:
        """Whether the relay gives receipts: it lets a party in before it has read its name."""
        nv = _nvflare()
        if not self._cell.is_backbone_ready():
            return False
        ask = nv.Message({}, b"")
        reply = self._cell.send_request(CHANNEL, TOPIC, SERVER, ask, ANSWER_SECONDS, optional=True)
        return bool(reply.get_header(nv.MessageHeaderKey.RETURN_CODE) == nv.ReturnCode.OK)

    def _check_relay(self) -> None:
        """Connect anew if the relay gives no receipt: a network that was cut tells nobody."""
        if self._cell.is_backbone_ready() and not self.is_connected():
            self._cell.communicator.remove_endpoint(SERVER)

    def _take(self, request: Any) -> Any:
        """Take a piece in and return its receipt: CellNet's callback."""
        nv = _nvflare()
        get = request.get_header
        sender, epoch, number = get(nv.MessageHeaderKey.ORIGIN), get("epoch"), get("number")
        if type(sender) is not str or type(epoch) is not bytes or type(number) is not int:
            return nv.make_reply(nv.ReturnCode.INVALID_REQUEST)
        piece, first, last = bytes(request.payload or b""), bool(get("first")), bool(get("last"))
        if not self._pieces.add(sender, epoch, number, piece, first, last):
            return nv.make_reply(nv.ReturnCode.SERVICE_UNAVAILABLE)
        return nv.make_reply(nv.ReturnCode.OK)

    def receive(self, timeout: float | None) -> tuple[Party, bytes] | None:
        """Return the next packet and who is said to have sent it; None after `timeout` seconds."""
        end = None if timeout is None else monotonic() + timeout
        quiet = monotonic() + QUIET_SECONDS
        while True:
            rest = WAKE_SECONDS if end is None else min(WAKE_SECONDS, end - monotonic())
            found = self._pieces.next(max(0.0, rest))
            if found is not None or (end is not None and monotonic() >= end):
                return found
            if monotonic() >= quiet:
                self._check_relay()
                quiet = monotonic() + QUIET_SECONDS

    def close(self) -> None:
        """Leave the network."""
        _stop(self._cell)

    def __enter__(self) -> CellLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_relay(address: str, *, certificates: Certificates | None) -> Relay:
    """Start the relay in this process.

    Parameters
    ----------
    address : str
        Host and port to listen on, "0.0.0.0:8102".
    certificates : Certificates or None
        None listens without TLS.

    Raises
    ------
    TransportError
        If it cannot listen there, a file cannot be used, or NVFlare is not installed.
    """
    host, port = _host_and_port(address)
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise TransportError(f"no relay can listen on {address}: {error.strerror}") from None
    cell = _cell(SERVER, address, certificates)
    nv = _nvflare()
    cell.register_request_cb(CHANNEL, TOPIC, lambda _: nv.make_reply(nv.ReturnCode.OK))
    cell.start()
    return Relay(address, cell)


def connect(
    party: Party, address: str, *, certificates: Certificates | None, timeout: float = 30.0
) -> CellLink:
    """Connect a party to the relay.

    Parameters
    ----------
    party : Party
        Letters, digits, - and _, at most 64.
    address : str
        Host and port of the relay.
    certificates : Certificates or None
        None connects without TLS.
    timeout : float, default=30
        Seconds to try for.

    Raises
    ------
    TransportError
        If the relay cannot be reached or does not take the certificate, a file cannot be used, or
        NVFlare is not installed.
    ValueError
        If the party's name cannot be one.
    """
    if not _NAME.fullmatch(party) or party in (SERVER, RELAY):
        raise ValueError(f"{party!r} cannot be a party's name: letters, digits, - and _ are wanted")
    _host_and_port(address)
    cell = _cell(party, address, certificates)
    link = CellLink(party, address, cell)
    try:
        cell.start()
        end = monotonic() + timeout
        while not link.is_connected():
            if monotonic() >= end:
                doubt = "" if certificates is None else f", or does not take {party}'s certificate"
                raise TransportError(f"the relay cannot be reached at {address}{doubt}")
            sleep(0.02)
    except BaseException:
        link.close()
        raise
    return link


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or ":" in host or not port.isdecimal() or int(port) > 65535:
        raise TransportError(f"{address!r} is no address: host:port is wanted")
    return host, int(port)


def _cell(name: str, address: str, certificates: Certificates | None) -> Any:
    """Make a cell that takes in plain bytes alone; the relay's, nothing in another's name."""
    nv = _nvflare()
    credentials = {} if certificates is None else _credentials(certificates)
    try:
        cell = nv.CoreCell(
            fqcn=name,
            root_url=f"tcp://{address}",
            secure=certificates is not None,
            credentials=credentials,
            max_timeout=ANSWER_SECONDS,
            auth_identity_map={SERVER: RELAY},
        )
    except Exception as error:
        raise TransportError(f"NVFlare does not start {name}: {error}") from None
    cell.add_incoming_filter("*", "*", _refuse, name == SERVER)
    return cell


def _refuse(message: Any, at_relay: bool) -> Any:
    """Return a refusal of what CellNet would decode, or None; CellNet's filter."""
    nv = _nvflare()
    keys = nv.MessageHeaderKey
    goodbye = message.get_header(keys.CHANNEL) == nv.CellChannel.CELLNET
    goodbye = goodbye and message.get_header(keys.TOPIC) == nv.CellChannelTopic.Bye
    ours = message.get_header(keys.CHANNEL) == CHANNEL or goodbye
    returned = message.get_header(keys.MSG_TYPE) != nv.MessageType.REQ
    plain = message.get_header(keys.PAYLOAD_ENCODING) in (None, nv.Encoding.BYTES, nv.Encoding.NONE)
    plain = plain and not message.get_header(keys.SECURE)
    endpoint = message.get_prop(nv.MessagePropKey.ENDPOINT)
    own = not at_relay or endpoint.name == message.get_header(keys.ORIGIN)
    if plain and own and (ours or returned):
        return None
    return nv.make_reply(nv.ReturnCode.AUTHENTICATION_ERROR)


def _credentials(certificates: Certificates) -> dict[str, str]:
    """Return CellNet's names of the files, once they were found to be usable."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certificates.root)
        context.load_cert_chain(certificates.certificate, certificates.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(path) for path in certificates)
        reason = error.strerror or type(error).__name__
        raise TransportError(f"the certificates {files} cannot be used: {reason}") from None
    names = _nvflare().DriverParams
    certificate, key = str(certificates.certificate), str(certificates.key)
    return {
        names.CA_CERT.value: str(certificates.root),
        names.CLIENT_CERT.value: certificate,
        names.CLIENT_KEY.value: key,
        names.SERVER_CERT.value: certificate,
        names.SERVER_KEY.value: key,
    }


def _stop(cell: Any) -> None:
    """Stop a cell, in a thread that is waited for; let another of its name start here."""
    nv = _nvflare()
    stopping = Thread(target=cell.stop, daemon=True)
    stopping.start()
    stopping.join(STOP_SECONDS)
    _stopping.append(stopping)
    nv.CoreCell.ALL_CELLS.pop(cell.get_fqcn(), None)
    nv.StatsPoolManager.pools.clear()


_stopping: list[Thread] = []  # of all cells of this process


def keeps_process() -> bool:
    """Whether CellNet has not stopped in time: its threads would keep this process from ending."""
    return any(thread.is_alive() for thread in _stopping)


class _Names(NamedTuple):
    """What is used of NVFlare."""

    CoreCell: Any
    TargetMessage: Any
    Message: Any
    make_reply: Any
    MessageHeaderKey: Any
    MessagePropKey: Any
    MessageType: Any
    ReturnCode: Any
    Encoding: Any
    CellChannel: Any
    CellChannelTopic: Any
    DriverParams: Any
    StatsPoolManager: Any


def _nvflare() -> _Names:
    """Import what is used of NVFlare, when it is."""
    try:
        from nvflare.fuel.f3.cellnet import core_cell, defs
        from nvflare.fuel.f3.cellnet.utils import make_reply
        from nvflare.fuel.f3.drivers.driver_params import DriverParams
        from nvflare.fuel.f3.message import Message
        from nvflare.fuel.f3.stats_pool import StatsPoolManager
    except ImportError as error:
        raise TransportError(
            f"between machines NVFlare is wanted: pip install 'vertibayes[nvflare]' ({error})"
        ) from None
    return _Names(
        core_cell.CoreCell,
        core_cell.TargetMessage,
        Message,
        make_reply,
        defs.MessageHeaderKey,
        defs.MessagePropKey,
        defs.MessageType,
        defs.ReturnCode,
        defs.Encoding,
        defs.CellChannel,
        defs.CellChannelTopic,
        DriverParams,
        StatsPoolManager,
    )
