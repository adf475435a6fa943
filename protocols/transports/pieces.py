"""Packets cut into pieces, and put together: each once, in any order, however often it comes."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from threading import Lock
from typing import NamedTuple

from mpc.rounds import Party

PIECE = 1 << 18  # bytes
MOST_QUEUED = 1 << 30  # bytes that wait; beyond it pieces are not taken, and are sent again
MOST_STREAMS = 256


def count_of(packet: bytes) -> int:
    """Return of how many pieces a packet is; an empty one is of one."""
    return max(1, -(-len(packet) // PIECE))


def piece_of(packet: bytes, index: int) -> bytes:
    """Return a piece of a packet."""
    return packet[index * PIECE : (index + 1) * PIECE]


class Stream(NamedTuple):
    """What one process of a sender has sent: its last packet's number, and the pieces of it."""

    number: int
    pieces: dict[int, bytes]
    complete: bool


class Pieces:
    """The packets of all senders, in the order in which they were complete."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._packets: SimpleQueue[tuple[Party, bytes]] = SimpleQueue()
        self._queued = 0
        self._streams: dict[tuple[Party, bytes], Stream] = {}

    def next(self, timeout: float) -> tuple[Party, bytes] | None:
        """Return the next packet and its sender; None after `timeout` seconds."""
        try:
            found = self._packets.get(timeout=timeout)
        except Empty:
            return None
        with self._lock:
            self._queued -= len(found[1])
        return found

    def add(
        self, sender: Party, epoch: bytes, number: int, index: int, count: int, piece: bytes
    ) -> bool:
        """Add a piece; return False if too much waits, and it is to be sent again.

        Parameters
        ----------
        sender : Party
        epoch : bytes
            Names a process of the sender.
        number : int
            Of the packet; ascends. With a higher one, those before are complete or given up.
        index, count : int
            Which piece of how many; they come in any order.
        piece : bytes
        """
        with self._lock:
            if self._queued > MOST_QUEUED:
                return False
            self._add((sender, epoch), number, index, count, piece)
        return True

    def _add(
        self, key: tuple[Party, bytes], number: int, index: int, count: int, piece: bytes
    ) -> None:
        stream = self._streams.pop(key, None) or Stream(-1, {}, True)
        if number > stream.number:
            self._forget(stream)  # given up, if it is not complete
            stream = Stream(number, {}, False)
        if number == stream.number and not stream.complete and index not in stream.pieces:
            stream.pieces[index] = piece
            self._queued += len(piece)
            if len(stream.pieces) == count:
                whole = b"".join(stream.pieces[i] for i in sorted(stream.pieces))
                self._packets.put((key[0], whole))
                stream = Stream(number, {}, True)
        self._streams[key] = stream
        if len(self._streams) > MOST_STREAMS:
            self._forget(self._streams.pop(next(iter(self._streams))))

    def _forget(self, stream: Stream) -> None:
        self._queued -= sum(map(len, stream.pieces.values()))
