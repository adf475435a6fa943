"""A party's mail, sorted by session; packets that have no place are refused.

An engine gives a `Link`: packets to peers and packets from peers, whose names are claims until a
seal has been opened. A `Mailbox` outlives sessions. It hands packets of the current session to the
channel, keeps hellos of sessions that have not begun, and refuses all other packets with a named
error, which is noted and ends nothing.

A party that cannot open a hello answers so, under the static keys: the sender would otherwise wait
for its time-out and could not say why. If the two have not pinned each other's keys, the answer
does not open either, and ends the session of its receiver, as any packet does that claims to be of
the session and does not open. Whoever carries packets ends sessions no more easily by it: a forged
answer must name the session, which only its parties and their carriers know, and a carrier ends a
session also by changing or losing a packet. An answer is never answered, and is about as long as
the shortest hello: nothing that is sent in another's name is multiplied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias

from mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from mpc.randomness import Randomness, SystemRandomness
from mpc.rounds import Party
from protocols.errors import PeerGoneError
from protocols.seal import DATA, HELLO, UNKNOWN, Header, Identity, read_header

RELAY: Party = "relay"
Address: TypeAlias = str  # a party's name; of a process of an analyst the name, "~" and its number
MOST_EARLY = 4  # hellos of one peer that are kept
HELLO_BYTES = 1 << 17  # the longest hello that is kept
MOST_REFUSED = 100  # errors that are remembered
MOST_NOTED, NOTED_SECONDS = 10, 10.0  # errors that are noted, in so many seconds
MOST_ANSWERED = 100  # answered sessions that are remembered,
AGAIN_SECONDS = 2.0  # and the seconds before one is answered again
UNREADABLE = b"hello"  # the text of an answer to a hello that does not open


def party_of(address: Address) -> Party:
    """Return the party to which an address belongs."""
    return address.partition("~")[0]


class Link(Protocol):
    """The interface of an engine: it moves bytes between parties, in the order of each link."""

    def deliver(
        self, packets: Mapping[Party, bytes], patience: float | None
    ) -> Mapping[Party, PeerGoneError]:
        """Deliver a packet to each receiver; return the errors of those that are not reached.

        Parameters
        ----------
        packets : mapping of Party to bytes
            The packet for each receiver.
        patience : float or None
            Seconds to keep trying when a receiver or the network is gone. 0 tries once; None tries
            once and does not wait for a receipt.
        """
        ...

    def receive(self, timeout: float | None) -> tuple[Party, bytes] | None:
        """Return the next packet and its alleged sender, or None after `timeout` seconds."""
        ...

    def close(self) -> None:
        """Leave the network."""
        ...


class Patience(NamedTuple):
    """How long a party waits, in seconds.

    Parameters
    ----------
    silent : float, default=600
        For a message of a peer that can be reached: the peer may be computing.
    gone : float, default=10
        For a peer, or the network, that cannot be reached: it may come back.
    probe : float, default=2
        Between two pings to a peer that is awaited.
    hello : float, default=60
        For the hellos of a session.
    """

    silent: float = 600.0
    gone: float = 10.0
    probe: float = 2.0
    hello: float = 60.0


class Mailbox:
    """The mail of one party, for as long as its process lives.

    Parameters
    ----------
    link : Link
    identity : Identity
    patience : Patience, optional
    randomness : Randomness, optional
    note : callable, optional
        Called with the error of each packet that is refused, for a log.

    Attributes
    ----------
    refused : deque of ProtocolError
        The latest of these errors.
    """

    def __init__(
        self,
        link: Link,
        identity: Identity,
        patience: Patience | None = None,
        randomness: Randomness | None = None,
        note: Callable[[ProtocolError], None] | None = None,
    ) -> None:
        self.link = link
        self.identity = identity
        self.patience = patience or Patience()
        self.randomness = randomness or SystemRandomness()
        self.refused: deque[ProtocolError] = deque(maxlen=MOST_REFUSED)
        self._note = note
        self._noted: deque[float] = deque(maxlen=MOST_NOTED)
        self._early: list[tuple[Party, bytes, bytes]] = []  # sender, session, hello
        self._seen: set[bytes] = set()
        self._answered: dict[tuple[Party, bytes], float] = {}

    @property
    def party(self) -> Party:
        """The party whose mail this is."""
        return self.identity.party

    def refuse(self, error: ProtocolError) -> None:
        """Note why a packet is refused."""
        self.refused.append(error)
        now = monotonic()
        full = len(self._noted) == MOST_NOTED and now - self._noted[0] < NOTED_SECONDS
        if self._note is not None and not full:
            self._noted.append(now)
            self._note(error)

    def begin(self, session: bytes) -> None:
        """Note that a session begins, which it does once."""
        self._seen.add(session)

    def hello_of(self, sender: Party) -> bytes | None:
        """Return a sender's oldest hello of a session that has not begun."""
        new = (h for p, session, h in self._early if p == sender and session not in self._seen)
        return next(new, None)

    def receive(self, session: bytes | None, timeout: float | None) -> tuple[Party, bytes] | None:
        """Return the next packet of a session; None after `timeout` seconds or another hello."""
        for item in self._early:
            if item[1] == session:
                self._early.remove(item)
                return item[0], item[2]
        end = None if timeout is None else monotonic() + timeout
        while True:
            received = self.link.receive(None if end is None else max(0.0, end - monotonic()))
            if received is None:
                return None
            header = self._header(*received)
            if header is not None and header.session == session:
                return received
            if header is not None and header.kind == HELLO:
                self._keep(received[0], header, received[1])
                return None
            if header is not None:
                self._turn_away(received[0], header)
            if end is not None and monotonic() >= end:
                return None

    def _header(self, sender: Party, packet: bytes) -> Header | None:
        """Read the header of a packet; return None if the packet is refused."""
        try:
            if sender not in self.identity.peers:
                raise UnexpectedMessageError(sender, f"{self.party} has not pinned its key")
            return read_header(packet, sender)
        except ProtocolError as error:
            self.refuse(error)
            return None

    def _keep(self, sender: Party, header: Header, packet: bytes) -> None:
        """Keep a hello that opens and begins a new session; of each peer, keep the latest."""
        try:
            if len(packet) > HELLO_BYTES:
                raise UnexpectedMessageError(sender, f"a hello of {len(packet)} bytes")
            self.identity.open_statically(sender, packet)
            if header.session in self._seen:
                raise ReplayedMessageError(sender, "a hello of a session that has begun before")
        except ProtocolError as error:
            self.refuse(error)
            if isinstance(error, MalformedMessageError):
                self._answer(sender, header, UNREADABLE)
            return
        kept = [item for item in self._early if item[0] == sender]
        if len(kept) == MOST_EARLY:
            self._early.remove(kept[0])
        self._early.append((sender, header.session, packet))

    def _turn_away(self, sender: Party, header: Header) -> None:
        """Refuse a packet of another session; answer it if it is a message.

        A party that was started again knows none of its sessions: the sender need not wait for it.
        """
        self.refuse(UnexpectedMessageError(sender, "a message of another session"))
        if header.kind == DATA:
            self._answer(sender, header, b"")

    def _answer(self, sender: Party, header: Header, text: bytes) -> None:
        """Answer that a packet is of no session here, and do not wait for a receipt.

        An answer may be lost: a sender that goes on is answered again after some seconds.
        """
        key, now = (sender, header.session), monotonic()
        if key in self._answered and now - self._answered[key] < AGAIN_SECONDS:
            return
        self._answered[key] = now
        if len(self._answered) > MOST_ANSWERED:
            del self._answered[next(iter(self._answered))]
        packet = self.identity.seal_statically(
            sender, UNKNOWN, header.session, text, self.randomness
        )
        self.link.deliver({sender: packet}, None)
