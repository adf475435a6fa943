"""Packets from numbered pieces, each taken once, whatever thread brings it and however often."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from threading import Lock
from typing import NamedTuple

from mpc.rounds import Party

MOST_QUEUED = 1 << 30  # bytes that wait; beyond it pieces are not taken, and are sent again
MOST_STREAMS = 256


class Stream(NamedTuple):
    """What one process of a sender has sent: the last number, and the pieces of a packet."""

    number: int
    pieces: list[bytes]


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
        self, sender: Party, epoch: bytes, number: int, piece: bytes, first: bool, last: bool
    ) -> bool:
        """Add a piece; return False if too much waits, and it is to be sent again.

        Parameters
        ----------
        sender : Party
        epoch : bytes
            Names a process of the sender.
        number : int
            Ascends; one that is not above the last was taken before.
        piece : bytes
        first, last : bool
            Whether a packet begins, or ends, with it.
        """
        with self._lock:
            if self._queued > MOST_QUEUED:
                return False
            self._add((sender, epoch), number, piece, first, last)
        return True

    def _add(
        self, key: tuple[Party, bytes], number: int, piece: bytes, first: bool, last: bool
    ) -> None:
        known = self._streams.pop(key, None) or Stream(-1, [])
        if number <= known.number:  # its receipt was lost
            self._streams[key] = known
            return
        if first:
            self._queued -= sum(map(len, known.pieces))  # of a packet that was given up
        pieces = [piece] if first else [*known.pieces, piece] if known.pieces else []
        self._queued += len(piece) if pieces else 0
        if pieces and last:
            self._packets.put((key[0], b"".join(pieces)))
            pieces = []
        self._streams[key] = Stream(number, pieces)
        if len(self._streams) > MOST_STREAMS:
            oldest = self._streams.pop(next(iter(self._streams)))
            self._queued -= sum(map(len, oldest.pieces))
