"""Packets in pieces that arrive in any order and more than once; each packet is taken once."""

from __future__ import annotations

from collections.abc import Collection
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import NamedTuple

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.transports.mailbox import Address, party_of

PIECE = 1 << 16  # bytes
MOST_QUEUED = 1 << 30  # bytes of one peer that wait; more are refused, and sent again
MOST_STRANGE = 1 << 20  # bytes of all strangers together
OBJECT = 256  # bytes of memory that a piece takes beside its own
MOST_STREAMS = 256  # of one peer's processes that are remembered: four times what the relay lets in
GIVEN_UP = 600.0  # seconds after which a process that sends no more of its packet has ended


def count_of(packet: bytes) -> int:
    """Return the number of pieces of a packet; an empty packet has one."""
    return max(1, -(-len(packet) // PIECE))


def piece_of(packet: bytes, index: int) -> bytes:
    """Return a piece of a packet."""
    return packet[index * PIECE : (index + 1) * PIECE]


def cost(waiting: bytes) -> int:
    """Return the bytes of memory that a packet, or a piece of one, takes."""
    return len(waiting) + OBJECT


class Stream(NamedTuple):
    """What one process of a sender has sent: the number and the pieces of its last packet."""

    number: int
    pieces: dict[int, bytes]
    complete: bool
    since: float = 0.0  # when its last piece came


class Room:
    """Room for the packets, and pieces of packets, of one peer or of all strangers."""

    def __init__(self, most: int) -> None:
        self.most, self.queued = most, 0
        self._streams: dict[tuple[Address, bytes], Stream] = {}

    def add(
        self, key: tuple[Address, bytes], number: int, index: int, count: int, piece: bytes
    ) -> bytes | None:
        """Add a piece from a process of a sender; return the packet if it is complete."""
        stream = self._stream(key, number)
        if number < stream.number or stream.complete or index in stream.pieces:
            return None  # its receipt was lost
        if self.queued > self.most or count * PIECE > self.most + PIECE:
            raise OverflowError
        stream.pieces[index] = piece
        self.queued += cost(piece)
        if len(stream.pieces) < count:
            return None
        self._streams[key] = Stream(number, {}, True)
        packet = b"".join(stream.pieces[i] for i in sorted(stream.pieces))
        self._forget(stream)
        self.queued += cost(packet)
        return packet

    def _stream(self, key: tuple[Address, bytes], number: int) -> Stream:
        """Return the stream of a process; pieces of an earlier packet were given up."""
        if key not in self._streams and len(self._streams) >= MOST_STREAMS:
            self._make_room()
        stream = self._streams.pop(key, None) or Stream(-1, {}, True)
        if number > stream.number:
            self._forget(stream)
            stream = Stream(number, {}, False)
        self._streams[key] = stream = stream._replace(since=monotonic())
        return stream

    def _make_room(self) -> None:
        """Forget the longest silent process whose packet is complete, or was given up."""
        end = monotonic() - GIVEN_UP
        for key, stream in self._streams.items():
            if stream.complete or stream.since < end:
                return self._forget(self._streams.pop(key))
        raise OverflowError  # the others have receipts for what they have sent

    def _forget(self, stream: Stream) -> None:
        self.queued -= sum(map(cost, stream.pieces.values()))


class Pieces:
    """The packets of all senders, in the order in which they are completed."""

    def __init__(self, peers: Collection[Party]) -> None:
        self._lock = Lock()
        self._packets: SimpleQueue[tuple[Address, bytes] | None] = SimpleQueue()
        # A peer that fills its room, or is never read, keeps no other out.
        self._rooms = {peer: Room(MOST_QUEUED) for peer in peers}
        self._strange = Room(MOST_STRANGE)

    def expects(self, sender: Address) -> bool:
        """Whether a sender is one of the peers whose packets are expected."""
        return sender in self._rooms

    def _room(self, sender: Address) -> Room:
        """Return the room of a sender: the processes of one party share it."""
        return self._rooms.get(party_of(sender), self._strange)

    def wake(self) -> None:
        """Let `next` return None, now or when it is next called."""
        self._packets.put(None)

    def next(self, timeout: float) -> tuple[Address, bytes] | None:
        """Return the sender of the next packet, and the packet; None after `timeout` or `wake`."""
        try:
            packet = self._packets.get(timeout=timeout)
        except Empty:
            return None
        if packet is None:
            return None
        with self._lock:
            self._room(packet[0]).queued -= cost(packet[1])
        return packet

    def add(
        self, sender: Address, epoch: bytes, number: int, index: int, count: int, piece: bytes
    ) -> bool:
        """Add a piece; return False if too much waits and it must be sent again."""
        with self._lock:
            try:
                packet = self._room(sender).add((sender, epoch), number, index, count, piece)
            except OverflowError:
                return False
            if packet is not None:
                self._packets.put((sender, packet))
        return True
