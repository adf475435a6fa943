"""A party's mail: what an engine brings, sorted by session, and what does not belong, turned away.

A `Link` is all that an engine gives: packets to peers, packets from peers. Its names are a claim;
packets are believed once their seal is opened. A `Mailbox` outlives sessions. What comes for the
session that is under way is handed to its channel; hellos of other sessions wait until they are
begun; whatever else comes is refused by a named error, which is noted and ends nothing.

Who says hello and is not understood is told so, under the static keys: else it would wait for its
time-out and could not say why. If two parties do not have each other's keys, that answer does not
open either; it ends its receiver's session as any packet does that claims to be of the session and
does not open. So whoever carries packets ends sessions no more easily by it: an answer that is
invented must name the session, which its parties and who carries their packets know alone, and
these end it also by a changed or a lost packet. An answer is never answered, and is about as long
as the shortest hello: nothing is multiplied by what is sent in another's name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import NamedTuple, Protocol

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
MOST_EARLY = 4  # hellos of one peer, of sessions that have not begun
HELLO_BYTES = 1 << 17  # of a hello, at most
MOST_REFUSED = 100  # that are remembered
MOST_NOTED, NOTED_SECONDS = 10, 10.0  # refusals that are noted, in so many seconds
MOST_ANSWERED = 100  # sessions that senders were told of,
AGAIN_SECONDS = 2.0  # and are told of again
UNREADABLE = b"hello"  # says that it was a hello that did not open: not that it is of no session


class Link(Protocol):
    """What an engine gives: it moves bytes between parties, each link in order."""

    def deliver(
        self, packets: Mapping[Party, bytes], patience: float | None
    ) -> Mapping[Party, PeerGoneError]:
        """Bring each receiver its packet; return the errors of those that were not reached.

        Parameters
        ----------
        packets : mapping of Party to bytes
        patience : float
            Seconds to try again for, where a receiver or the network is gone; 0 tries once, None
            once and without waiting to hear whether it came.
        """
        ...

    def receive(self, timeout: float | None) -> tuple[Party, bytes] | None:
        """Return the next packet and who is said to have sent it; None after `timeout` seconds."""
        ...

    def close(self) -> None:
        """Leave the network."""
        ...


class Patience(NamedTuple):
    """How long a party waits, in seconds.

    Parameters
    ----------
    silent : float, default=600
        For a message of a peer that can be reached: it may be computing.
    gone : float, default=10
        For a peer, or the network, that cannot be reached: it may come back.
    probe : float, default=2
        Before a peer that is waited for is looked after, again and again.
    hello : float, default=60
        For all hellos of a session.
    """

    silent: float = 600.0
    gone: float = 10.0
    probe: float = 2.0
    hello: float = 60.0


class Mailbox:
    """A party's mail, for as long as its process lives.

    Parameters
    ----------
    link : Link
    identity : Identity
    patience : Patience, optional
    randomness : Randomness, optional
    note : callable, optional
        Is told each error for which a packet was refused: for a log.

    Attributes
    ----------
    refused : deque of ProtocolError
        The last of them.
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
        """Whose it is."""
        return self.identity.party

    def refuse(self, error: ProtocolError) -> None:
        """Note a packet that is turned away."""
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
        """Return the next packet of a session; None after `timeout` seconds or an early hello."""
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
        """Read a packet's header; None if it is refused."""
        try:
            if sender not in self.identity.peers:
                raise UnexpectedMessageError(sender, f"{self.party} has pinned no key of it")
            return read_header(packet, sender)
        except ProtocolError as error:
            self.refuse(error)
            return None

    def _keep(self, sender: Party, header: Header, packet: bytes) -> None:
        """Keep a hello that opens, and begins a session that has not been; the latest of a peer."""
        try:
            if len(packet) > HELLO_BYTES:
                raise UnexpectedMessageError(sender, f"a hello of {len(packet)} bytes")
            self.identity.open_statically(sender, packet)
            if header.session in self._seen:
                raise ReplayedMessageError(sender, "a hello of a session that is over")
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
        """Refuse a packet of another session; tell its sender if it was a message.

        A party that was started again knows nothing of its sessions: who is told so need not wait.
        """
        self.refuse(UnexpectedMessageError(sender, "a message of another session"))
        if header.kind == DATA:
            self._answer(sender, header, b"")

    def _answer(self, sender: Party, header: Header, text: bytes) -> None:
        """Tell a sender that its packet is of no session here; wait for nothing of it.

        It is told again if it goes on: an answer may be lost, and not every packet is worth one.
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
