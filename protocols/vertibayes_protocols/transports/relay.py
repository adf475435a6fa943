"""The relay: parties connect to it, and it passes on what it cannot read.

    party -> relay -> party    frames (`frames`), inside a WebSocket, once both ends have proved who
                               they are (`proof`)

The relay writes the sender of a frame itself: nobody sends in another's name. Two processes under
one name would each take a part of the packets: while the earlier is alive, the relay refuses the
later and says why; an earlier one that has said nothing for some seconds gives way. Each process of
an analyst has an address of its own.

Security: the adversaries are strangers, who reach the port, and certified parties. A stranger has
some seconds to prove who it is, and a frame's room of memory; when many wait, the longest waiting
goes. A message has at most 64 KiB and some; nothing is decompressed. What a party sends to a
receiver that does not read waits here up to 4 MiB, to all receivers 64 MiB, and all parties'
together 512 MiB; more is refused and sent again. Senders take turns at a receiver, so that one
delays others and keeps none out. A certificate that is revoked or expires ends its connection. A
relay that lies (about receipts, about who is there) can lose packets and end sessions, as the
network can; it opens none (`vertibayes_protocols.seal`).

Leakage: the relay sees who sends to whom, when and how much.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Self

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.events import Tell, silent
from vertibayes_protocols.transports.entrance import MOST_SHOWN, Entrance
from vertibayes_protocols.transports.frames import (
    ABSENT,
    ASK,
    AWAY,
    BEAT,
    BEAT_SECONDS,
    BUSY,
    FROM_PARTY,
    HERE,
    MOST_SMALL,
    PIECE,
    Outgoing,
    read_frame,
    write_frame,
)
from vertibayes_protocols.transports.loop import HANDSHAKE_SECONDS, Loop
from vertibayes_protocols.transports.mailbox import ADDRESS, NAME, RESERVED, Address, party_of
from vertibayes_protocols.transports.proof import (
    DOUBLED,
    KNOCK,
    Entry,
    answer,
    challenge,
    new_nonce,
    read_entry,
    read_hello,
)
from vertibayes_protocols.transports.proof import MOST_BYTES as MOST_PROOF
from vertibayes_protocols.transports.route import host_and_port
from vertibayes_protocols.transports.server_socket import HandOut, ServerSocket, shake_hands
from vertibayes_protocols.transports.tls import Certificates, HandshakeError, PeerCertificate

MOST_STRANGERS = 256  # connections that have not proved who they are
MOST_PROCESSES = 64  # of one party
MOST_FROM = 1 << 22  # bytes of one party that wait for one receiver,
MOST_WAITING = 1 << 29  # and of all parties together, for all receivers;
SHARE = 8  # of this one party has at most one part in so many
QUIET_SECONDS = 20.0  # of a party: then its connection is closed
ALIVE_SECONDS = 4.0  # in which a process that is alive says something
LOOK_SECONDS = 0.5  # between looks at certificates: revoked, expired


@dataclass(eq=False)
class Inside:
    """A party's connection that the relay has let in."""

    address: Address
    stream: bytes  # names the process
    socket: ServerSocket
    shown: PeerCertificate | None
    where: str  # host and port
    since: float
    heard: float
    waiting: Outgoing = field(default_factory=Outgoing)

    @property
    def party(self) -> Party:
        """The party's name; without certificates it is a claim."""
        return party_of(self.address)


class Relay:
    """A relay that runs in a thread of its own; use it as a context manager."""

    def __init__(self, address: str, entrance: Entrance, hand_out: HandOut) -> None:
        self.address, self._entrance, self._hand_out = address, entrance, hand_out
        self._loop = Loop("relay")
        self._inside: dict[Address, Inside] = {}
        self._strangers: dict[asyncio.Task[None], None] = {}  # the longest waiting first
        self._listening: asyncio.Task[None] | None = None
        self._waiting: Counter[Party] = (
            Counter()
        )  # bytes of each sender's pieces, for all receivers

    def start(self) -> None:
        """Listen; raise a TransportError if the address cannot be used."""
        try:
            server = socket.create_server(host_and_port(self.address), backlog=128)
        except OSError as error:
            why = error.strerror or str(error)
            raise TransportError(f"the relay cannot listen on {self.address}: {why}") from None
        server.setblocking(False)
        self._loop.run(self._begin(server))

    def close(self) -> None:
        """Close all connections, and leave the address."""
        if self._listening is not None:
            self._loop.run(self._stop_listening(self._listening))  # or who comes would find nobody
            self._listening = None
        self._loop.close()

    async def _begin(self, server: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._listening = loop.create_task(self._listen(server))
        self._looking = loop.create_task(self._look())

    async def _stop_listening(self, listening: asyncio.Task[None]) -> None:
        listening.cancel()
        await asyncio.wait([listening])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- who comes -------------------------------------------------------------------------------

    async def _listen(self, server: socket.socket) -> None:
        with server:
            await self._accept(server)

    async def _accept(self, server: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                plain, found = await loop.sock_accept(server)
            except OSError:  # too many files are open, or who came has gone
                await asyncio.sleep(0.1)
                continue
            task = loop.create_task(self._serve(plain, f"{found[0]}:{found[1]}"))
            self._strangers[task] = None
            task.add_done_callback(lambda done: self._strangers.pop(done, None))
            await asyncio.sleep(0)  # it begins, and closes what it was given whatever happens
            if len(self._strangers) > MOST_STRANGERS:
                next(iter(self._strangers)).cancel()

    async def _serve(self, plain: socket.socket, where: str) -> None:
        """Let a party in, and carry its frames until its connection ends."""
        connected: ServerSocket | None = None
        try:
            connected = await shake_hands(plain, self._entrance.context)
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                inside = await self._meet(connected, where)
        except HandshakeError as error:
            self._entrance.refused(where, error.reason, error.party)
        except TimeoutError:
            self._entrance.refused(where, "timeout")
        except OSError:
            self._entrance.refused(where, "closed")
        except Exception as error:  # a defect: the other connections go on
            self._entrance.refused(where, f"error: {type(error).__name__}")
        except asyncio.CancelledError:
            self._entrance.refused(where, "timeout")
            if connected is not None:
                connected.abort()
            raise
        else:
            if inside is not None:
                await self._keep(inside)
        if connected is not None:
            connected.close()

    async def _meet(self, connected: ServerSocket, where: str) -> Inside | None:
        """Let both ends prove who they are; None if the party has only asked who listens."""
        if not await connected.accept(self._hand_out):
            self._entrance.handed_out(where)
            return None
        party_nonce, relay_nonce = read_hello(await connected.receive()), new_nonce()
        proving = party_nonce, relay_nonce, self._entrance.credentials
        await connected.send(challenge(*proving))
        message = await connected.receive()
        try:
            if len(message) > MOST_PROOF:
                raise HandshakeError("not readable")
            asked, shown = read_entry(message, *proving)
            self._check(asked, shown)
            if asked.purpose != KNOCK:
                await self._make_room(asked)
                self._check(asked, shown)  # again: it may have been revoked in the meantime
        except HandshakeError as error:
            await connected.send(answer(error.reason, *proving))
            raise
        self._entrance.entered(party_of(asked.address), where, shown)
        now = monotonic()
        inside = Inside(asked.address, asked.stream, connected, shown, where, now, now)
        if asked.purpose == KNOCK:
            await connected.send(answer("", *proving))
            self._entrance.left(inside.party, where, 0)
            return None
        self._inside[asked.address] = inside  # before anything else can enter under this name
        with suppress(OSError):
            await connected.send(answer("", *proving))
        return inside

    def _check(self, asked: Entry, shown: PeerCertificate | None) -> None:
        """Refuse a name that is not the certified party's, and a revoked certificate."""
        party = party_of(asked.address)
        if shown is not None and shown.name != party:
            named = f"wrong name: connected in the name of {asked.address[:MOST_SHOWN]}"
            raise HandshakeError(named, party=shown.name)
        good = NAME.fullmatch(party) and ADDRESS.fullmatch(asked.address)
        if not good or party in RESERVED:
            raise HandshakeError("wrong name")
        if shown is not None:
            self._entrance.check(shown)

    async def _make_room(self, asked: Entry) -> None:
        """Close an earlier connection under the same name, unless another process is alive."""
        while (earlier := self._inside.get(asked.address)) is not None:
            start = monotonic()
            if earlier.stream != asked.stream:
                while monotonic() - start < ALIVE_SECONDS and earlier.heard < start:
                    await asyncio.sleep(0.05)
                if earlier.heard >= start and self._inside.get(asked.address) is earlier:
                    raise HandshakeError(DOUBLED)
            self._forget(earlier)
        party = party_of(asked.address)
        if sum(one.party == party for one in self._inside.values()) >= MOST_PROCESSES:
            raise HandshakeError("too many processes")

    # ---- who is inside ---------------------------------------------------------------------------

    async def _keep(self, inside: Inside) -> None:
        """Carry frames both ways until the connection ends."""
        self._strangers.pop(asyncio.current_task(), None)  # type: ignore[arg-type]
        work = [asyncio.create_task(one(inside)) for one in (self._read, self._write, self._beat)]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            self._forget(inside)
            self._entrance.left(inside.party, inside.where, monotonic() - inside.since)

    def _forget(self, inside: Inside) -> None:
        """Take a connection out, and close it."""
        if self._inside.get(inside.address) is inside:
            del self._inside[inside.address]
        self._waiting -= Counter(inside.waiting.clear())
        inside.socket.abort()

    async def _read(self, inside: Inside) -> None:
        with suppress(OSError, TimeoutError):
            while True:
                async with asyncio.timeout(QUIET_SECONDS):
                    message = await inside.socket.receive()
                inside.heard = monotonic()
                self._pass_on(inside, message)

    async def _write(self, inside: Inside) -> None:
        with suppress(OSError):
            while True:
                sender, frame = await inside.waiting.take()
                if frame[0] == PIECE:
                    self._waiting[sender] -= len(frame)
                await inside.socket.send(frame)

    async def _beat(self, inside: Inside) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._tell(inside, write_frame(BEAT))

    def _pass_on(self, sender: Inside, message: bytes) -> None:
        """Pass a frame on to its receiver, or answer that it cannot be."""
        try:
            frame = read_frame(message)
            if frame.kind not in FROM_PARTY:
                raise ValueError("a frame that only the relay may send")
        except ValueError as error:  # of the frame or of its name's encoding
            why = "not readable" if isinstance(error, UnicodeError) else str(error)
            return self._entrance.packet_refused(sender.party, why)
        receiver = self._inside.get(frame.address)
        if frame.kind == ASK:
            self._tell(sender, write_frame(ABSENT if receiver is None else HERE, frame.address))
        elif frame.kind == PIECE and receiver is None:
            self._tell(sender, write_frame(AWAY, frame.address, frame.mark))
        elif frame.kind == PIECE and receiver is not None and self._is_full(sender, receiver):
            self._tell(sender, write_frame(BUSY, frame.address, frame.mark))
        elif receiver is not None and frame.kind != BEAT:
            self._tell(
                receiver,
                write_frame(frame.kind, sender.address, frame.mark, frame.piece),
                sender.party,
            )
        return None

    def _is_full(self, sender: Inside, receiver: Inside) -> bool:
        there = receiver.waiting.pieces.sizes.get(sender.party, 0)
        all_there = self._waiting[sender.party]
        return (
            there > MOST_FROM
            or all_there > MOST_WAITING // SHARE
            or self._waiting.total() > MOST_WAITING
        )

    def _tell(self, receiver: Inside, frame: bytes, sender: Party = "") -> None:
        """Let a frame wait for a receiver; drop a small one that finds no room."""
        if frame[0] == PIECE:
            self._waiting[sender] += len(frame)
        elif receiver.waiting.small.sizes.get(sender, 0) > MOST_SMALL:
            return
        receiver.waiting.put(frame, sender)

    async def _look(self) -> None:
        """Close connections whose certificates are revoked or have expired since."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            serials, now = self._entrance.revoked(), datetime.now(UTC)
            for inside in list(self._inside.values()):
                shown = inside.shown
                if shown is not None and (shown.serial in serials or shown.end < now):
                    why = "revoked" if shown.serial in serials else "expired"
                    reason = f"{why}: {inside.party}, certificate {shown.number}"
                    self._entrance.refused(inside.where, reason)
                    self._forget(inside)


def start_relay(
    address: str,
    *,
    certificates: Certificates | None,
    revoked: Path | None = None,
    tell: Tell = silent,
    tls: bool = True,
    hand_out: HandOut = lambda _: None,
) -> Relay:
    """Start the relay in this process; without `tls` a reverse proxy ends TLS before it.

    `hand_out` returns the content that a request of HTTP for a path is answered with.
    """
    relay = Relay(address, Entrance(certificates, revoked, tell, tls=tls), hand_out)
    try:
        relay.start()
    except BaseException:
        relay.close()
        raise
    return relay
