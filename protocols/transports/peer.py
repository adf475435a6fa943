"""What one end of a session knows of one of its peers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from mpc.errors import UnexpectedMessageError
from mpc.rounds import Party
from protocols.errors import PeerGoneError

MOST_WAITING = 1 << 30  # bytes of one sender that wait to be read,
A_MESSAGE = 256  # and so many more for each of its messages
MESSAGE = b"message\0"  # with the envelope 80 bytes: arrays stay aligned


@dataclass(eq=False)
class Peer:
    """What is kept of one peer, for as long as a session lasts."""

    party: Party
    roster: frozenset[Party]  # whom the hellos of the two name
    hello: bytes = b""  # what it was greeted with
    welcomed: bytes = b""  # the digest of its own hello
    gone: PeerGoneError | None = None
    sent: int = 0  # messages
    read: int = 0
    mail: deque[bytes] = field(default_factory=deque)
    waiting: int = 0  # bytes of its mail
    unread: int = 0  # bytes that were sent to it, and that it may not have read
    asking: bool = False  # it was sent `Asked` and has not answered
    asked: bool = False  # it has sent `Asked` and was not answered

    def keep(self, text: bytes) -> None:
        """Keep a message until it is read."""
        self.waiting += len(text) + A_MESSAGE
        if self.waiting > MOST_WAITING:
            raise UnexpectedMessageError(self.party, "sends more than is read")
        self.mail.append(text)

    def next_message(self) -> memoryview:
        """Take its oldest message: an envelope and a body."""
        text = self.mail.popleft()
        self.waiting -= len(text) + A_MESSAGE
        return memoryview(text)[len(MESSAGE) :]
