"""The frames between a party and the relay, one in each binary message of the WebSocket.

    party -> relay -> party    PIECE          a piece of a packet, at most 64 KiB, and its mark
    party <- relay <- party    TAKEN, FULL    the receipt of a mark; no room, to be sent again
    party <- relay             AWAY, BUSY     nobody has the receiver's address; too much waits
    party -> relay             ASK            whether a process has an address
    party <- relay             HERE, ABSENT   the answer
    both ways                  BEAT           nothing: this end is alive

A frame is its kind, an address and what follows. A party writes the address of the receiver; the
relay puts the sender's in its place, as the sender has proved it. So no frame can be in another's
name. A *mark* names a piece: the stream of a process, the number of the packet, which of how many.
"""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import NamedTuple

from vertibayes_protocols.transports.mailbox import Address
from vertibayes_protocols.transports.pieces import PIECE as PIECE_BYTES

BEAT, PIECE, TAKEN, FULL, AWAY, BUSY, ASK, HERE, ABSENT = range(9)
FROM_PARTY = BEAT, PIECE, TAKEN, FULL, ASK  # kinds that a party may send
MARKED = PIECE, TAKEN, FULL, AWAY, BUSY
STREAM_BYTES = 16
BEAT_SECONDS = 3.0  # between signs that an end is alive
_MARK = Struct(f">{STREAM_BYTES}sQII")
MOST_BYTES = PIECE_BYTES + 512  # of a frame
MOST_SMALL = 1 << 18  # bytes of one sender's frames without a piece that wait for one receiver
MOST_PIECES = 1 << 20  # of a packet


class Mark(NamedTuple):
    """What names a piece of a packet."""

    stream: bytes
    number: int
    piece: int
    pieces: int


class Frame(NamedTuple):
    """A frame as it is read."""

    kind: int
    address: Address
    mark: Mark | None
    piece: bytes


def write_frame(
    kind: int, address: Address = "", mark: Mark | None = None, piece: bytes = b""
) -> bytes:
    """Return a frame."""
    name = address.encode()
    return b"".join(
        (bytes((kind, len(name))), name, b"" if mark is None else _MARK.pack(*mark), piece)
    )


def read_frame(data: bytes) -> Frame:
    """Read a frame; raise a ValueError if it is not one."""
    if len(data) < 2 or len(data) < (start := 2 + data[1]):
        raise ValueError("a frame is cut short")
    kind, address = data[0], data[2:start].decode()
    if kind not in MARKED:
        if kind > ABSENT or len(data) > start:
            raise ValueError("a frame of no known kind")
        return Frame(kind, address, None, b"")
    if len(data) < (end := start + _MARK.size):
        raise ValueError("a frame is cut short")
    mark = Mark(*_MARK.unpack_from(data, start))
    if not 0 <= mark.piece < mark.pieces <= MOST_PIECES:
        raise ValueError("a piece without its numbers")
    if len(data) - end > (PIECE_BYTES if kind == PIECE else 0):
        raise ValueError("a piece that is too large")
    return Frame(kind, address, mark, data[end:])


class Turns:
    """Frames of several senders, who take turns."""

    def __init__(self) -> None:
        self._frames: dict[str, deque[bytes]] = {}  # of whose turn is next, first
        self.sizes: dict[str, int] = {}  # bytes of each sender that wait

    def put(self, frame: bytes, sender: str) -> None:
        """Add a frame."""
        self._frames.setdefault(sender, deque()).append(frame)
        self.sizes[sender] = self.sizes.get(sender, 0) + len(frame)

    def take(self) -> tuple[str, bytes]:
        """Return the next frame after its sender."""
        sender = next(iter(self._frames))
        frames = self._frames.pop(sender)
        frame = frames.popleft()
        self.sizes[sender] -= len(frame)
        if frames:
            self._frames[sender] = frames
        else:
            del self.sizes[sender]
        return sender, frame


class Outgoing:
    """Frames that wait for a connection.

    Those without a piece go first; while pieces wait, a piece follows on as many bytes of them.
    """

    def __init__(self) -> None:
        self.small, self.pieces = Turns(), Turns()
        self._filled = asyncio.Event()
        self._ahead = 0  # bytes without a piece that have left since the last piece

    def put(self, frame: bytes, sender: str = "") -> None:
        """Add a frame; `sender` is the party for which its bytes are counted."""
        (self.pieces if frame[0] == PIECE else self.small).put(frame, sender)
        self._filled.set()

    async def take(self) -> tuple[str, bytes]:
        """Wait for the next frame, and return it after its sender."""
        while self.is_empty():
            self._filled.clear()
            await self._filled.wait()
        has_turn = self._ahead < PIECE_BYTES or not self.pieces.sizes
        is_small = bool(self.small.sizes) and has_turn
        sender, frame = (self.small if is_small else self.pieces).take()
        self._ahead = self._ahead + len(frame) if is_small and self.pieces.sizes else 0
        return sender, frame

    def clear(self) -> dict[str, int]:
        """Drop all that waits; return the bytes of each sender's pieces."""
        dropped, self.small, self.pieces = self.pieces.sizes, Turns(), Turns()
        return dropped

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self.small.sizes and not self.pieces.sizes
