"""Packets over NVFlare's CellNet: parties with one outbound connection each, and a relay.

    party -> relay -> party    a piece of a packet, at most 256 KiB: epoch, number, index, count
    party <- relay <- party    its receipt

A party is an ordinary process that connects to the relay; nothing connects to it. CellNet is an
internal interface of NVFlare (`protocols.transports.cells`), and is asked for nothing but to
deliver bytes. A piece is sent again until its receipt has come or patience is over. Packets are
numbered, their pieces counted: what comes twice is taken once, and pieces come in any order,
several on their way at a time, so that a long line is filled. A packet leaves when the one before
has come, or was given up. A party that has heard nothing for a while asks the relay for a receipt,
and connects anew if none comes.

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
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from secrets import token_bytes
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Self

from mpc.rounds import Party
from protocols.errors import PeerGoneError, TransportError
from protocols.transports.cells import (
    ANSWER_SECONDS,
    CHANNEL,
    SERVER,
    TOPIC,
    Certificates,
    make_cell,
    nvflare,
    stop_cell,
)
from protocols.transports.mailbox import RELAY
from protocols.transports.pieces import PIECE, Pieces, count_of, piece_of

if TYPE_CHECKING:
    from protocols.transports.cellnet import CoreCell, Message, TargetMessage

EPOCH_BYTES = 16
UNDER_WAY = 8  # pieces to each receiver that wait for their receipts at a time
BYTES_A_SECOND = 250_000
AGAIN_SECONDS = 0.2
MOST_PROCESSES, MOST_NAMES = 4, 1000  # that a relay remembers: of one name, names
QUIET_SECONDS = 10.0  # before the relay is asked for a receipt
WAKE_SECONDS = 0.5  # a signal may reach another thread: Python acts when the main one next runs
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")  # fits a certificate's DNS name too
RESERVED = (RELAY, SERVER)


class Relay:
    """A relay that listens; use it as a context manager.

    Attributes
    ----------
    address : str
    """

    def __init__(self, address: str, cell: CoreCell) -> None:
        self.address = address
        self._cell = cell

    def close(self) -> None:
        """Leave the network, and close all connections."""
        stop_cell(self._cell)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CellLink(Relay):
    """A party's link to its peers, by way of the relay; see `protocols.transports.mailbox.Link`."""

    def __init__(
        self, party: Party, address: str, peers: Collection[Party], cell: CoreCell
    ) -> None:
        super().__init__(address, cell)
        self.party = party
        self._pieces = Pieces(peers)
        self._epoch = token_bytes(EPOCH_BYTES)
        self._numbers: dict[Party, int] = {}
        self._checking = Lock()
        self._doubled = False
        cell.register_request_cb(CHANNEL, TOPIC, self._take)

    def deliver(
        self, packets: Mapping[Party, bytes], patience: float | None
    ) -> Mapping[Party, PeerGoneError]:
        """Deliver packets, side by side; return the errors of those that were not reached."""
        failed: dict[Party, PeerGoneError] = {}
        for peer in packets:
            self._numbers[peer] = self._numbers.get(peer, -1) + 1
        if patience is None:
            for peer, packet in packets.items():
                self._post(peer, packet)
            return failed
        sending = partial(self._send_pieces, packets, patience, failed)
        most = max((count_of(packet) for packet in packets.values()), default=0)
        if most <= 1:  # no thread is worth its while
            sending(0)
            return failed
        with ThreadPoolExecutor(min(UNDER_WAY, most)) as pool:
            list(pool.map(sending, range(most)))
        return failed

    def _post(self, peer: Party, packet: bytes) -> None:
        """Send a packet, and wait for no receipt."""
        for index in range(count_of(packet)):
            message = self._piece(peer, packet, index).message
            self._cell.fire_and_forget(CHANNEL, TOPIC, peer, message, optional=True)

    def _send_pieces(
        self,
        packets: Mapping[Party, bytes],
        patience: float,
        failed: dict[Party, PeerGoneError],
        index: int,
    ) -> None:
        """Send one piece of each packet until the receipts are there, or a receiver has failed."""
        waiting = {p for p, packet in packets.items() if index < count_of(packet)}
        lacking = None  # since when
        while waiting := {peer for peer in waiting if peer not in failed}:
            waiting -= self._send({p: self._piece(p, packets[p], index) for p in waiting})
            lacking = lacking or monotonic()
            if waiting and monotonic() - lacking >= patience:
                failed.update({peer: self._lost(peer) for peer in waiting})
            elif waiting:
                sleep(AGAIN_SECONDS)

    def _piece(self, peer: Party, packet: bytes, index: int) -> TargetMessage:
        nv = nvflare()
        headers = {"epoch": self._epoch, "number": self._numbers[peer]}
        headers |= {"index": index, "count": count_of(packet)}
        message = nv.Message(headers, piece_of(packet, index))
        return nv.TargetMessage(peer, CHANNEL, TOPIC, message)

    def _send(self, pieces: Mapping[Party, TargetMessage]) -> set[Party]:
        """Send a piece to each receiver, wait for the receipts, and return whose have come."""
        nv = nvflare()
        size = UNDER_WAY * sum(len(piece.message.payload) for piece in pieces.values())
        seconds = ANSWER_SECONDS + size / BYTES_A_SECOND
        replies = self._cell.broadcast_multi_requests(dict(pieces), seconds, optional=True)
        codes = {p: r.get_header(nv.MessageHeaderKey.RETURN_CODE) for p, r in replies.items()}
        if nv.ReturnCode.TIMEOUT in codes.values():
            self._check_relay()
        return {peer for peer, code in codes.items() if code == nv.ReturnCode.OK}

    def _lost(self, peer: Party) -> PeerGoneError:
        if self._cell.is_backbone_ready():
            return PeerGoneError(peer, "cannot be reached")
        return PeerGoneError(RELAY, f"cannot be reached at {self.address}")

    def is_connected(self) -> bool:
        """Whether the relay gives receipts: it lets a party in before it has read its name."""
        nv = nvflare()
        if not self._cell.is_backbone_ready():
            return False
        ask = nv.Message({"epoch": self._epoch}, b"")
        reply = self._cell.send_request(CHANNEL, TOPIC, SERVER, ask, ANSWER_SECONDS, optional=True)
        code = reply.get_header(nv.MessageHeaderKey.RETURN_CODE)
        self._doubled = self._doubled or code == nv.ReturnCode.INVALID_SESSION
        return bool(code in (nv.ReturnCode.OK, nv.ReturnCode.INVALID_SESSION))

    def _check_relay(self) -> None:
        """Connect anew if the relay gives no receipt: a network that was cut tells nobody."""
        if not self._checking.acquire(blocking=False):
            return  # another thread does, which would cut what this one has connected anew
        try:
            if self._cell.is_backbone_ready() and not self.is_connected():
                self._cell.communicator.remove_endpoint(SERVER)
        finally:
            self._checking.release()

    def _take(self, request: Message) -> Message:
        """Take a piece in and return its receipt: CellNet's callback."""
        nv = nvflare()
        get = request.get_header
        sender, epoch = get(nv.MessageHeaderKey.ORIGIN), get("epoch")
        numbers = number, index, count = get("number"), get("index"), get("count")
        named = type(sender) is str and type(epoch) is bytes
        if not named or {*map(type, numbers)} != {int} or not 0 <= index < count or number < 0:
            return nv.make_reply(nv.ReturnCode.INVALID_REQUEST)
        piece = bytes(request.payload or b"")
        if len(piece) > PIECE or len(epoch) != EPOCH_BYTES:
            return nv.make_reply(nv.ReturnCode.INVALID_REQUEST)
        if not self._pieces.add(sender, epoch, number, index, count, piece):
            return nv.make_reply(nv.ReturnCode.SERVICE_UNAVAILABLE)
        return nv.make_reply(nv.ReturnCode.OK)

    def receive(self, timeout: float | None) -> tuple[Party, bytes] | None:
        """Return the next packet and who is said to have sent it; None after `timeout` seconds.

        Raises
        ------
        TransportError
            If another process is connected under this party's name: each has a part of the packets.
        """
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
            if self._doubled:
                raise TransportError(
                    f"another process is connected to the relay as {self.party}: stop one of them"
                )


class Roll:
    """What the relay knows of parties: their processes, which ask it for receipts.

    A process that asks, and asks again after another of its name has, is not alone under that name:
    CellNet lets one of them in and the other out, by turns.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: dict[Party, list[bytes]] = {}  # the last of each name, ascending

    def answer(self, request: Message) -> Message:
        """Return a receipt, or that there are two: the relay's callback."""
        nv = nvflare()
        name = request.get_header(nv.MessageHeaderKey.ORIGIN)
        epoch = request.get_header("epoch")
        if type(name) is not str or type(epoch) is not bytes or len(epoch) != EPOCH_BYTES:
            return nv.make_reply(nv.ReturnCode.INVALID_REQUEST)
        with self._lock:  # CellNet asks from many threads
            known = self._processes.pop(name, [])
            doubled = epoch in known[:-1]
            self._processes[name] = [*(e for e in known if e != epoch), epoch][-MOST_PROCESSES:]
            if len(self._processes) > MOST_NAMES:
                del self._processes[next(iter(self._processes))]
        return nv.make_reply(nv.ReturnCode.INVALID_SESSION if doubled else nv.ReturnCode.OK)


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
    cell = make_cell(SERVER, address, certificates)
    cell.register_request_cb(CHANNEL, TOPIC, Roll().answer)
    relay = Relay(address, cell)
    try:
        cell.start()
        _await_listening(address, host, port)
    except BaseException:
        relay.close()
        raise
    return relay


def _await_listening(address: str, host: str, port: int) -> None:
    """Wait until somebody listens: CellNet does so in a thread, and tells nobody."""
    end = monotonic() + ANSWER_SECONDS
    while True:
        try:
            socket.create_connection((host, port), ANSWER_SECONDS).close()
            return
        except OSError as error:
            if monotonic() >= end:
                reason = f"no relay listens on {address}: {error.strerror or error}"
                raise TransportError(reason) from None
            sleep(0.02)


def connect(
    party: Party,
    address: str,
    peers: Collection[Party],
    *,
    certificates: Certificates | None,
    timeout: float = 30.0,
) -> CellLink:
    """Connect a party to the relay.

    Parameters
    ----------
    party : Party
        Letters, digits, - and _, at most 63.
    address : str
        Host and port of the relay.
    peers : collection of Party
        Whose packets are expected: others have little room.
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
    if not NAME.fullmatch(party) or party in RESERVED:
        raise ValueError(f"{party!r} cannot be a party's name: letters, digits, - and _ are wanted")
    _host_and_port(address)
    cell = make_cell(party, address, certificates)
    link = CellLink(party, address, peers, cell)
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
