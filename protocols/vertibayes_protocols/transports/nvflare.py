"""Packets over NVFlare's CellNet: parties with one outbound connection each, and a relay.

    party -> relay -> party    a piece of a packet, at most 256 KiB: epoch, number, index, count
    party <- relay <- party    its receipt

A party is an ordinary process that connects to the relay; nothing connects to a party. CellNet, an
internal interface of NVFlare (`vertibayes_protocols.transports.cells`), delivers bytes and does
nothing else. A piece is sent again until its receipt comes or the patience is over. Packets are
numbered and their pieces are counted, so that a piece that comes twice is taken once. Pieces come
in any order, and several are on their way at a time, to fill a slow line. A packet leaves when the
one before it has arrived or was given up. A party that has heard nothing for a while asks the relay
for a receipt, and connects again if none comes.

Security: only plain bytes are taken in. What CellNet would decode (its own serialization, bulk
messages, exchange of keys) is refused before it is read. With certificates all connections are
mutual TLS, the common name of a party's certificate is the party's name, that of the relay's is
"relay", and the relay forwards nothing in another's name. Without certificates names are claims.
Either way nothing is believed that `vertibayes_protocols.seal` does not open.

Leakage: the relay sees who sends to whom, when and how much. Cost: one receipt per piece.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from secrets import token_bytes
from threading import Event, Lock
from time import monotonic, sleep
from typing import Self

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import PeerGoneError, TransportError
from vertibayes_protocols.transports.cells import (
    ANSWER_SECONDS,
    CHANNEL,
    SERVER,
    TOPIC,
    Cell,
    CellMessage,
    Outgoing,
    make_cell,
    nvflare,
    stop_cell,
)
from vertibayes_protocols.transports.mailbox import ADDRESS, RELAY, Address, party_of
from vertibayes_protocols.transports.pieces import PIECE, Pieces, count_of, piece_of
from vertibayes_protocols.transports.tls import Certificates

EPOCH_BYTES = 16
UNDER_WAY = 8  # pieces to each receiver that are on their way at a time
BYTES_A_SECOND = 250_000
AGAIN_SECONDS = 0.2
AWAY_SECONDS = 2.0  # for the answer to whether a process is away
NAME_SECONDS = 1.0  # before a relay may be one that knows no addresses of processes
QUIET_SECONDS = 10.0  # before the relay is asked for a receipt
WAKE_SECONDS = 0.5  # a signal may reach another thread: Python acts when the main one next runs
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")  # fits a certificate's DNS name too
RESERVED = (RELAY, SERVER)


class Endpoint:
    """A cell that is on the network, a party's or the relay's; use it as a context manager."""

    def __init__(self, address: str, cell: Cell) -> None:
        self.address = address
        self._cell = cell

    def close(self) -> None:
        """Leave the network, and close all connections."""
        stop_cell(self._cell)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CellLink(Endpoint):
    """A party's link to its peers, by way of the relay; see `transports.mailbox.Link`."""

    def __init__(
        self, name: Address, address: str, pieces: Pieces, certificates: Certificates | None
    ) -> None:
        self._outgoing = Outgoing(certificates)
        cell = make_cell(name, address, self._outgoing)
        super().__init__(address, cell)
        self.name = name
        self.relay_version: object = None  # of the protocols; None if the relay does not say it
        self.certificates = certificates
        self._by_name: CellLink | None = None  # for parties that know no addresses of processes
        self._heard: set[Party] = set()  # sites and dealer that have sent something to this address
        self._pieces = pieces
        self._epoch = token_bytes(EPOCH_BYTES)
        self._posts = token_bytes(EPOCH_BYTES)  # names what is sent without receipts: it may pass
        self._numbers = count()  # of packets, to all receivers
        self._checking = Lock()
        self._doubled = False
        self._woken = Event()
        cell.register_request_cb(CHANNEL, TOPIC, self._take)

    @property
    def failure(self) -> str:
        """Why the latest connection to the relay failed; empty if it did not."""
        return self._outgoing.failure

    def deliver(
        self, packets: Mapping[Address, bytes], patience: float | None
    ) -> Mapping[Address, PeerGoneError]:
        """Deliver packets side by side; return the errors of the receivers that are not reached."""
        failed: dict[Address, PeerGoneError] = {}
        if self._by_name is not None:  # for those who have answered the party's own name alone
            older = packets.keys() & (self._by_name._heard - self._heard)
            failed |= self._by_name.deliver({peer: packets[peer] for peer in older}, patience)
            packets = {peer: packet for peer, packet in packets.items() if peer not in older}
        number = next(self._numbers)
        if patience is None:
            for peer, packet in packets.items():
                self._post(peer, packet, number)
            return failed
        sending = partial(self._send_pieces, packets, number, patience, failed)
        most = max((count_of(packet) for packet in packets.values()), default=0)
        if most <= 1:  # threads would not help
            sending(0)
            return failed
        with ThreadPoolExecutor(min(UNDER_WAY, most)) as pool:
            list(pool.map(sending, range(most)))
        return failed

    def _post(self, peer: Address, packet: bytes, number: int) -> None:
        """Send a packet, and do not wait for receipts."""
        for index in range(count_of(packet)):
            message = self._piece(peer, packet, self._posts, number, index).message
            self._cell.fire_and_forget(CHANNEL, TOPIC, peer, message, optional=True)

    def _send_pieces(
        self,
        packets: Mapping[Address, bytes],
        number: int,
        patience: float,
        failed: dict[Address, PeerGoneError],
        index: int,
    ) -> None:
        """Send one piece of each packet until its receipt comes or its receiver has failed."""
        waiting = {p for p, packet in packets.items() if index < count_of(packet)}
        missing = None  # since when a receipt is missing
        while waiting := {peer for peer in waiting if peer not in failed}:
            pieces = {p: self._piece(p, packets[p], self._epoch, number, index) for p in waiting}
            waiting -= self._send(pieces)
            missing = missing or monotonic()
            if waiting and monotonic() - missing >= patience:
                failed.update({peer: self._lost(peer) for peer in waiting})
            elif waiting:
                sleep(AGAIN_SECONDS)

    def _piece(
        self, peer: Address, packet: bytes, epoch: bytes, number: int, index: int
    ) -> CellMessage:
        nv = nvflare()
        headers: dict[str, object] = {"epoch": epoch, "number": number}
        headers |= {"index": index, "count": count_of(packet)}
        message = nv.Message(headers, piece_of(packet, index))
        return nv.TargetMessage(peer, CHANNEL, TOPIC, message)

    def _send(self, pieces: Mapping[Address, CellMessage]) -> set[Address]:
        """Send a piece to each receiver, and return the receivers whose receipts come."""
        nv = nvflare()
        size = UNDER_WAY * sum(len(piece.message.payload) for piece in pieces.values())
        seconds = ANSWER_SECONDS + size / BYTES_A_SECOND
        replies = self._cell.broadcast_multi_requests(dict(pieces), seconds, optional=True)
        codes = {p: r.get_header(nv.MessageHeaderKey.RETURN_CODE) for p, r in replies.items()}
        if nv.ReturnCode.TIMEOUT in codes.values():
            self._check_relay()
        return {peer for peer, code in codes.items() if code == nv.ReturnCode.OK}

    def _lost(self, peer: Address) -> PeerGoneError:
        if self._cell.is_backbone_ready():
            return PeerGoneError(party_of(peer), "cannot be reached")
        return PeerGoneError(RELAY, f"cannot be reached at {self.address}")

    def is_away(self, address: Address) -> bool:
        """Ask the relay once whether no process has an address; False if it does not answer.

        A process that gets the question refuses it: it is no piece of a packet.
        """
        nv = nvflare()
        ask = nv.Message({}, b"")
        reply = self._cell.send_request(CHANNEL, TOPIC, address, ask, AWAY_SECONDS, optional=True)
        away = nv.ReturnCode.TARGET_UNREACHABLE, nv.ReturnCode.COMM_ERROR
        there = self._cell.is_backbone_ready()
        return there and reply.get_header(nv.MessageHeaderKey.RETURN_CODE) in away

    def introduce(self, packets: Mapping[Address, bytes]) -> None:
        """Deliver packets under the party's own name to those who have never sent anything.

        Parties of releases up to 0.1.0 pass over what comes from the address of a process. Who
        answers under the party's own name alone is sent all packets under it. Others may only have
        been slow: they have taken the address of the process, and refuse packets from another.
        """
        party = party_of(self.name)
        packets = {peer: packet for peer, packet in packets.items() if peer not in self._heard}
        if party == self.name or not packets:
            return
        if self._by_name is None:
            self._by_name = CellLink(party, self.address, self._pieces, self.certificates)
            self._by_name.start(AWAY_SECONDS)
        self._by_name.deliver(packets, 0.0)

    def start(self, seconds: float) -> bool:
        """Connect, and return whether the relay gives receipts within so many seconds."""
        self._cell.start()
        return self.await_relay(seconds)

    def await_relay(self, seconds: float) -> bool:
        """Return whether the relay gives receipts within so many seconds."""
        end = monotonic() + seconds
        while not (is_there := self.is_connected()) and monotonic() < end:
            sleep(0.02)
        return is_there

    def close(self) -> None:
        """Leave the network, and close all connections."""
        if self._by_name is not None:
            self._by_name.close()
        super().close()

    def wake(self) -> None:
        """Let `receive` return None, now or when it is next called."""
        self._woken.set()
        self._pieces.wake()

    def is_connected(self) -> bool:
        """Whether the relay gives receipts: it accepts a connection before it knows the name."""
        nv = nvflare()
        if not self._cell.is_backbone_ready():
            return False
        ask = nv.Message({"epoch": self._epoch}, b"")
        reply = self._cell.send_request(CHANNEL, TOPIC, SERVER, ask, ANSWER_SECONDS, optional=True)
        code = reply.get_header(nv.MessageHeaderKey.RETURN_CODE)
        self._doubled = self._doubled or code == nv.ReturnCode.INVALID_SESSION
        self.relay_version = reply.get_header("version")
        return bool(code in (nv.ReturnCode.OK, nv.ReturnCode.INVALID_SESSION))

    def _check_relay(self) -> None:
        """Connect again if the relay gives no receipt: a network that is cut reports nothing."""
        if not self._checking.acquire(blocking=False):
            return  # another thread checks; two would cut each other's new connection
        try:
            if self._cell.is_backbone_ready() and not self.is_connected():
                self._cell.communicator.remove_endpoint(SERVER)
        finally:
            self._checking.release()

    def _take(self, request: CellMessage) -> CellMessage:
        """Take a piece and return its receipt: the callback of CellNet."""
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
        if sender == party_of(sender) and self._pieces.expects(sender):
            self._heard.add(sender)
        return nv.make_reply(nv.ReturnCode.OK)

    def receive(self, timeout: float | None) -> tuple[Address, bytes] | None:
        """Return the next packet with its alleged sender; None after `timeout` or `wake`."""
        end = None if timeout is None else monotonic() + timeout
        quiet = monotonic() + QUIET_SECONDS
        while True:
            rest = WAKE_SECONDS if end is None else min(WAKE_SECONDS, end - monotonic())
            packet = self._pieces.next(max(0.0, rest))
            if packet is not None or (end is not None and monotonic() >= end):
                return packet
            if self._woken.is_set():
                self._woken.clear()
                return None
            if monotonic() >= quiet:
                self._check_relay()
                quiet = monotonic() + QUIET_SECONDS
            if self._doubled:
                raise TransportError(
                    f"another process is connected to the relay as {self.name}: stop one of them"
                )


def connect(
    name: Address,
    address: str,
    peers: Collection[Party],
    *,
    certificates: Certificates | None,
    timeout: float = 30.0,
) -> CellLink:
    """Connect a party to the relay."""
    party = party_of(name)
    if not NAME.fullmatch(party) or not ADDRESS.fullmatch(name) or party in RESERVED:
        allowed = f"at most 63 letters, digits, - and _, and not {' or '.join(RESERVED)}"
        raise ValueError(f"{name!r} cannot be a party's name: a name has {allowed}")
    host_and_port(address)
    link = CellLink(name, address, Pieces(peers), certificates)
    try:
        if link.start(min(NAME_SECONDS, timeout)):
            return link
        seconds = (timeout - NAME_SECONDS) / 2  # for each name
        if name != party and (older := _to_older_relay(link, party, peers, seconds)):
            return older
        if not link.await_relay(seconds):
            reason = f": {link.failure}" if link.failure else ""
            raise TransportError(f"the relay cannot be reached at {address}{reason}")
    except BaseException:
        link.close()
        raise
    return link


def _to_older_relay(
    link: CellLink, party: Party, peers: Collection[Party], seconds: float
) -> CellLink | None:
    """Close a link, and return one under the party's own name, if a relay up to 0.1.0 answers it.

    Such a relay takes a certificate for the name in it alone, and for no process of the party.
    """
    by_name = CellLink(party, link.address, Pieces(peers), link.certificates)
    try:
        if by_name.start(seconds) and by_name.relay_version is None:
            link.close()
            return by_name
    except BaseException:
        by_name.close()
        raise
    by_name.close()
    return None


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and the port of an address; raise a TransportError if it has no port."""
    host, _, port = address.rpartition(":")
    if not host or ":" in host or not port.isdecimal() or int(port) > 65535:
        raise TransportError(f"{address!r} is not an address: host:port is expected")
    return host, int(port)
