"""Packets by way of the relay: parties with one outbound connection each.

    party -> relay -> party    a piece of a packet, at most 64 KiB
    party <- relay <- party    its receipt: the receiver's process has taken it

A party is an ordinary process that connects to the relay; nothing connects to a party. A packet
leaves in pieces, several of which are on their way at a time, to fill a slow line. The connection
keeps their order; after a gap (the receiver is away, it or the relay has no room, a connection was
lost) the sender goes back to the oldest piece without a receipt. Packets are numbered and their
pieces counted, so that a piece that comes twice is taken once. A packet leaves when the one before
it has arrived or was given up. A network that is cut reports nothing: each end says that it is
alive, and a party that has heard nothing for a while connects again.

Security, leakage: `vertibayes_protocols.transports.relay`; nothing is believed that
`vertibayes_protocols.seal` does not open. Cost: one receipt of some 50 bytes per piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from secrets import token_bytes
from time import monotonic
from typing import Self
from weakref import WeakValueDictionary

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import PeerGoneError, TransportError, words
from vertibayes_protocols.events import AGAIN, WAITING, Tell, silent
from vertibayes_protocols.transports.frames import (
    ABSENT,
    ASK,
    AWAY,
    BEAT,
    BEAT_SECONDS,
    BUSY,
    FULL,
    HERE,
    MOST_SMALL,
    PIECE,
    STREAM_BYTES,
    TAKEN,
    Frame,
    Mark,
    Outgoing,
    read_frame,
    write_frame,
)
from vertibayes_protocols.transports.line import DoubledError, check_route, open_line
from vertibayes_protocols.transports.loop import WAKE_SECONDS, Loop
from vertibayes_protocols.transports.mailbox import (
    ADDRESS,
    NAME,
    RELAY,
    RESERVED,
    Address,
    party_of,
)
from vertibayes_protocols.transports.pieces import Pieces, count_of, piece_of
from vertibayes_protocols.transports.proof import ENTER, Entry
from vertibayes_protocols.transports.route import Route
from vertibayes_protocols.transports.tls import Certificates

UNDER_WAY = 32  # pieces to each receiver that are on their way at a time
ANSWER_SECONDS = 5.0  # for the next receipt
MOST_ANSWER_SECONDS = 60.0  # for it, if the line is slow: each time twice as long
AGAIN_SECONDS = 0.2
AWAY_SECONDS = 2.0  # for the answer to whether a process is away
QUIET_SECONDS = 10.0  # without any, before a party connects again
LEAVE_SECONDS = 1.0  # for the last receipts
MOST_PAUSE = 2.0  # between two attempts to connect


class _Delivery:
    """A packet that is on its way to one receiver."""

    def __init__(self, stream: bytes, number: int, packet: bytes) -> None:
        self.stream, self.number, self.packet = stream, number, packet
        self.count = count_of(packet)
        self.next = self.oldest = 0  # piece that was not sent, and that has no receipt
        self.window = UNDER_WAY
        self.taken: set[int] = set()  # receipts beyond the oldest
        self.heard = asyncio.Event()
        self.refused = False

    def take(self, mark: Mark) -> None:
        """Note a receipt; one that is no progress, or of another count, wakes nobody."""
        if mark.pieces != self.count or mark.piece < self.oldest:
            return
        self.taken.add(mark.piece)
        if self.oldest not in self.taken:
            return
        while self.oldest in self.taken:
            self.taken.remove(self.oldest)
            self.oldest += 1
        self.window = UNDER_WAY
        self.heard.set()

    def refuse(self) -> None:
        """Note that a piece was not taken."""
        self.refused = True
        self.heard.set()

    def go_back(self) -> None:
        """Send again from the oldest piece on, and that alone until its receipt comes."""
        self.next, self.window, self.refused = self.oldest, 1, False

    def frames(self, receiver: Address) -> list[bytes]:
        """Return the frames of the pieces that may leave now."""
        end = min(self.count, self.oldest + self.window)
        due = [index for index in range(self.next, end) if index not in self.taken]
        self.next = max(self.next, end)
        return [self.frame(receiver, index) for index in due]

    def frame(self, receiver: Address, index: int) -> bytes:
        """Return the frame of one piece."""
        mark = Mark(self.stream, self.number, index, self.count)
        return write_frame(PIECE, receiver, mark, piece_of(self.packet, index))


class WebSocketLink:
    """A party's link to its peers, by way of the relay; see `transports.mailbox.Link`."""

    def __init__(self, name: Address, route: Route, pieces: Pieces, tell: Tell = silent) -> None:
        check_route(route)
        self.name, self.route, self.failure = name, route, ""
        self._pieces, self._tell = pieces, tell
        self._stream = token_bytes(STREAM_BYTES)
        self._posts = token_bytes(STREAM_BYTES)  # names what is sent without receipts: it may pass
        self._numbers = count()  # of packets, to all receivers
        self._deliveries: dict[Address, _Delivery] = {}
        self._turns: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        self._asked: dict[Address, asyncio.Future[bool]] = {}
        self._doubled: TransportError | None = None
        self._woken = self._is_leaving = self._is_sending = False
        self._out = Outgoing()
        self._line: ClientConnection | None = None
        self._connected = asyncio.Event()
        self._loop = Loop(name)
        self._loop.start(self._stay())

    # ---- the connection --------------------------------------------------------------------------

    async def _stay(self) -> None:
        """Connect, and again whenever the connection has ended, until this party leaves."""
        pause, is_waiting = 0.0, False
        while not self._is_leaving:
            try:
                line = await open_line(self.route, Entry(self.name, self._stream, ENTER))
            except DoubledError as error:
                self._doubled = TransportError(f"{error}: stop one of them")
                self.failure = str(self._doubled)
                self.wake()
                return
            except (OSError, TransportError) as error:
                self.failure = words(error)
                if not is_waiting:
                    self._tell(WAITING, reason=self.failure)
                is_waiting, pause = True, min(MOST_PAUSE, 2 * pause or 0.1)
                await asyncio.sleep(pause)
                continue
            if is_waiting:
                self._tell(AGAIN)
            pause, is_waiting, self.failure = 0.0, False, ""
            await self._carry(line)

    async def _carry(self, line: ClientConnection) -> None:
        """Carry frames until the connection ends."""
        self._out, self._line = Outgoing(), line
        work = [asyncio.create_task(one(line)) for one in (self._read, self._write, self._beat)]
        self._changed(True)
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._changed(False)
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            line.transport.abort()

    def _changed(self, connected: bool) -> None:
        """Let deliveries know that the connection has begun or ended."""
        (self._connected.set if connected else self._connected.clear)()
        for delivery in self._deliveries.values():
            delivery.refuse()

    async def _read(self, line: ClientConnection) -> None:
        with suppress(OSError, ConnectionClosed, TimeoutError, ValueError):
            while True:
                async with asyncio.timeout(QUIET_SECONDS):
                    message = await line.recv(decode=False)
                self._take(read_frame(message))

    async def _write(self, line: ClientConnection) -> None:
        with suppress(OSError, ConnectionClosed):
            while True:
                self._is_sending = False
                _, frame = await self._out.take()
                self._is_sending = True
                await line.send(frame)

    async def _beat(self, _: ClientConnection) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._out.put(write_frame(BEAT))

    def _take(self, frame: Frame) -> None:
        """Act on a frame from the relay."""
        if self._out.small.sizes.get("", 0) > MOST_SMALL:
            return  # a relay that reads no receipts gets none
        if frame.kind == PIECE and frame.mark is not None:
            self._out.put(self._receipt(frame.address, frame.mark, frame.piece))
        elif frame.kind in (HERE, ABSENT):
            if (asked := self._asked.pop(frame.address, None)) is not None and not asked.done():
                asked.set_result(frame.kind == ABSENT)
        elif frame.mark is not None:
            delivery = self._deliveries.get(frame.address)
            named = frame.mark.stream, frame.mark.number
            if delivery is not None and named == (delivery.stream, delivery.number):
                if frame.kind == TAKEN:
                    delivery.take(frame.mark)
                elif frame.kind in (FULL, AWAY, BUSY):
                    delivery.refuse()

    def _receipt(self, sender: Address, mark: Mark, piece: bytes) -> bytes:
        """Take a piece, and return the frame of its receipt."""
        taken = self._pieces.add(sender, mark.stream, mark.number, mark.piece, mark.pieces, piece)
        return write_frame(TAKEN if taken else FULL, sender, mark)

    # ---- to other parties ------------------------------------------------------------------------

    def deliver(
        self, packets: Mapping[Address, bytes], patience: float | None
    ) -> Mapping[Address, PeerGoneError]:
        """Deliver packets side by side; return the errors of the receivers that are not reached."""
        if patience is None:
            self._loop.call(partial(self._post, dict(packets)))
            return {}
        return self._loop.run(self._deliver_all(packets, patience))

    def _post(self, packets: Mapping[Address, bytes]) -> None:
        """Send packets, and do not wait for receipts."""
        for receiver, packet in packets.items() if self._connected.is_set() else ():
            delivery = _Delivery(self._posts, next(self._numbers), packet)
            for index in range(delivery.count):
                self._out.put(delivery.frame(receiver, index))

    async def _deliver_all(
        self, packets: Mapping[Address, bytes], patience: float
    ) -> Mapping[Address, PeerGoneError]:
        each = (self._deliver(peer, packet, patience) for peer, packet in packets.items())
        failed = zip(packets, await asyncio.gather(*each), strict=True)
        return {peer: error for peer, error in failed if error is not None}

    async def _deliver(
        self, receiver: Address, packet: bytes, patience: float
    ) -> PeerGoneError | None:
        turn = self._turns.setdefault(receiver, asyncio.Lock())
        async with turn:
            delivery = _Delivery(self._stream, next(self._numbers), packet)
            self._deliveries[receiver] = delivery
            try:
                return await self._send(receiver, delivery, patience)
            finally:
                del self._deliveries[receiver]

    async def _send(
        self, receiver: Address, delivery: _Delivery, patience: float
    ) -> PeerGoneError | None:
        """Send a packet until all receipts have come, or none comes any more."""
        missing: float | None = None  # since when no receipt comes
        answer = ANSWER_SECONDS
        while True:
            for frame in delivery.frames(receiver) if self._connected.is_set() else ():
                self._out.put(frame)
            before = delivery.oldest
            rest = answer if self._connected.is_set() else AGAIN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await delivery.heard.wait()
            delivery.heard.clear()
            if delivery.oldest >= delivery.count:
                return None
            if delivery.oldest > before:
                missing, answer = None, ANSWER_SECONDS
            if delivery.oldest > before and not delivery.refused:
                continue
            missing = missing or monotonic()
            if monotonic() - missing >= patience:
                return self._lost(receiver)
            if delivery.refused and self._connected.is_set():
                await asyncio.sleep(AGAIN_SECONDS)
            elif not delivery.refused:
                answer = min(2 * answer, MOST_ANSWER_SECONDS)
            delivery.go_back()

    def _lost(self, peer: Address) -> PeerGoneError:
        if self._connected.is_set():
            return PeerGoneError(party_of(peer), "cannot be reached")
        return PeerGoneError(RELAY, f"cannot be reached at {self.route.address}")

    def is_away(self, address: Address) -> bool:
        """Ask the relay once whether no process has an address; False if it does not answer."""
        return self._loop.run(self._ask(address))

    async def _ask(self, address: Address) -> bool:
        if not self._connected.is_set():
            return False
        asked = self._asked.setdefault(address, asyncio.get_running_loop().create_future())
        self._out.put(write_frame(ASK, address))
        try:
            async with asyncio.timeout(AWAY_SECONDS):
                return await asyncio.shield(asked)
        except TimeoutError:
            self._asked.pop(address, None)
            return False

    # ---- from other parties ----------------------------------------------------------------------

    def receive(self, timeout: float | None) -> tuple[Address, bytes] | None:
        """Return the next packet with its alleged sender; None after `timeout` or `wake`."""
        end = None if timeout is None else monotonic() + timeout
        while True:
            rest = WAKE_SECONDS if end is None else min(WAKE_SECONDS, end - monotonic())
            packet = self._pieces.next(max(0.0, rest))
            if packet is not None or (end is not None and monotonic() >= end):
                return packet
            if self._doubled is not None:
                raise self._doubled
            if self._woken:
                self._woken = False
                return None

    def wake(self) -> None:
        """Let `receive` return None, now or when it is next called."""
        self._woken = True
        self._pieces.wake()

    # ---- begin and end ---------------------------------------------------------------------------

    def await_relay(self, seconds: float) -> bool:
        """Return whether the relay has let this party in within so many seconds."""
        return self._loop.run(self._await_relay(seconds))

    async def _await_relay(self, seconds: float) -> bool:
        end = monotonic() + seconds
        while not self._connected.is_set() and self._doubled is None and monotonic() < end:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await self._connected.wait()
        return self._connected.is_set()

    def close(self) -> None:
        """Leave the network, once the last receipts have left."""
        if self._connected.is_set():
            self._loop.run(self._leave())
        self._loop.close()

    async def _leave(self) -> None:
        self._is_leaving = True
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                while self._connected.is_set() and (self._is_sending or not self._out.is_empty()):
                    await asyncio.sleep(0.005)
                if self._line is not None:
                    await self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    name: Address,
    address: str,
    peers: Collection[Party],
    *,
    certificates: Certificates | None,
    trust: str = "root",
    proxy: str | None = None,
    tls: bool = True,
    timeout: float = 30.0,
    tell: Tell = silent,
) -> WebSocketLink:
    """Connect a party to the relay; `tell` is called when the relay is away, and is back."""
    party = party_of(name)
    if not NAME.fullmatch(party) or not ADDRESS.fullmatch(name) or party in RESERVED:
        allowed = f"at most 63 letters, digits, - and _, and not {' or '.join(RESERVED)}"
        raise ValueError(f"{name!r} cannot be a party's name: a name has {allowed}")
    route = Route(address, certificates, trust, proxy, tls)
    link = WebSocketLink(name, route, Pieces(peers), tell)
    try:
        if not link.await_relay(timeout):
            reason = f": {link.failure}" if link.failure else ""
            raise TransportError(f"the relay cannot be reached at {address}{reason}")
    except BaseException:
        link.close()
        raise
    return link
