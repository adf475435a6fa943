"""A party's mail, sorted by session; packets that have no place are refused.

An engine gives a `Link`: packets to peers and packets from peers, whose names are claims until a
seal has been opened. A `Mailbox` outlives sessions. It hands out the packets of the sessions that
are asked for, keeps hellos of sessions that have not begun, and refuses all other packets with a
named error, which is noted and ends nothing.

Each process of an analyst has an address of its own, ``NAME~16hex``, so that several processes of
one analyst do not disturb each other. Sites and the dealer have their names as addresses. Seals and
limits are bound to parties, and never to addresses.

A party that cannot open a hello answers so, under the static keys: the sender would otherwise wait
for its time-out and could not say why. If the two have not pinned each other's keys, the answer
does not open either, and ends the session of its receiver, as any packet does that claims to be of
the session and does not open. Whoever carries packets ends sessions no more easily by it: a forged
answer must name the session, which only its parties and their carriers know, and a carrier ends a
session also by changing or losing a packet. An answer is never answered, and is about as long as
the shortest hello: nothing that is sent in another's name is multiplied.

A packet of a session that is over is normal after an abort. The party answers such a packet with
its last word in this session, under the static keys, and notes it once per session. A party that
answers a packet of a session that it has never known was started again. Whoever steals a party's
static key can send it false answers of this kind, and end its sessions with a false reason.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from time import monotonic, time
from typing import NamedTuple, Protocol, TypeAlias

from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import wire
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.seal import DATA, HELLO, UNKNOWN, Header, Identity, read_header
from vertibayes_protocols.transports.control import (
    Bye,
    VersionsDifferError,
    compare_versions,
    farewell,
)

RELAY: Party = "relay"
RESERVED = (RELAY, "server")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")  # fits a certificate's DNS name too
Address: TypeAlias = str  # a party's name; of a process of an analyst the name, "~" and its number
Delivery: TypeAlias = tuple[Mapping[Address, bytes], float | None]  # as of `Link.deliver`
PROCESS_BYTES = 8  # of the number in an analyst's address
MOST_EARLY = 8  # hellos of one peer that are kept
HELLO_BYTES = 1 << 17  # the longest hello that is kept
MOST_REFUSED = 100  # errors that are remembered
MOST_NOTED, NOTED_SECONDS = 10, 10.0  # errors that are noted, in so many seconds
MOST_ANSWERED = 100  # answered sessions that are remembered,
AGAIN_SECONDS = 2.0  # and the seconds before one is answered again
MOST_FAREWELLS = 8  # answers to parties of another version that are on their way
MOST_BEGUN = 20_000  # sessions that are remembered, so that none begins twice,
MOST_WORDS = 200  # and those of them whose last words are remembered
UNREADABLE = b"hello"  # the text of an answer to a hello that does not open,
GONE = b""  # to a packet of a session that this process has never known,
OVER = wire.encode(Bye())  # and to one of a session that is over, without a last word
ADDRESS = re.compile(rf"[^~]+(~[0-9a-f]{{{2 * PROCESS_BYTES}}})?")


def party_of(address: Address) -> Party:
    """Return the party to which an address belongs."""
    return address.partition("~")[0]


def process_of(party: Party, randomness: Randomness) -> Address:
    """Return the address of a new process of an analyst."""
    return f"{party}~{randomness.bytes(PROCESS_BYTES).hex()}"


class LatePacketsError(UnexpectedMessageError):
    """Packets of a session that is over: they are normal after an abort."""


class Link(Protocol):
    """The interface of an engine: it moves bytes between parties, in the order of each link."""

    def deliver(
        self, packets: Mapping[Address, bytes], patience: float | None
    ) -> Mapping[Address, PeerGoneError]:
        """Deliver a packet to each receiver; return the errors of those that are not reached.

        Several threads may deliver at the same time, if they deliver to different receivers.
        """

    def receive(self, timeout: float | None) -> tuple[Address, bytes] | None:
        """Return the next packet and its alleged sender, or None after `timeout` or `wake`."""

    def wake(self) -> None:
        """Let `receive` return None, now or when it is next called: for another thread."""

    def is_away(self, address: Address) -> bool:
        """Ask the network once whether no process has an address; False if it does not answer."""

    def close(self) -> None:
        """Leave the network."""


class Patience(NamedTuple):
    """How long a party waits, in seconds."""

    silent: float = 600.0  # for a message of a peer that can be reached: the peer may be computing
    gone: float = 10.0  # for a peer, or the network, that cannot be reached: it may come back
    probe: float = 2.0  # between two pings to a peer that is awaited
    hello: float = 60.0  # for the hellos of a session


class Mail(NamedTuple):
    """A packet of a session, and the address that it comes from."""

    session: bytes
    sender: Address
    packet: bytes


@dataclass(slots=True)
class _Begun:
    """A session that has begun."""

    analyst: Party
    words: Mapping[Party, bytes] | None = None  # the last word to each peer, once it is over
    is_over: bool = False
    is_noted: bool = False  # packets have come late, and a line in the log says so


class Mailbox:
    """The mail of one party, for as long as its process lives."""

    def __init__(
        self,
        link: Link,
        identity: Identity,
        patience: Patience | None = None,
        randomness: Randomness | None = None,
        note: Callable[[ProtocolError], None] | None = None,
        clock: Callable[[], float] = monotonic,
        time_of_day: Callable[[], float] = time,
    ) -> None:
        self.link = link
        self.time_of_day = time_of_day
        self.identity = identity
        self.patience = patience or Patience()
        self.randomness = randomness or SystemRandomness()
        self.refused: deque[ProtocolError] = deque(maxlen=MOST_REFUSED)
        self._note = note
        self._noted: deque[float] = deque(maxlen=MOST_NOTED)
        self.clock = clock
        self._early: list[Mail] = []  # hellos of sessions that have not begun
        self._begun: dict[bytes, _Begun] = {}
        self._words: deque[_Begun] = deque(maxlen=MOST_WORDS)
        self._answered: dict[tuple[Address, bytes], float] = {}
        self._farewells: list[Thread] = []

    @property
    def party(self) -> Party:
        """The party whose mail this is."""
        return self.identity.party

    def refuse(self, error: ProtocolError) -> None:
        """Note why a packet is refused."""
        self.refused.append(error)
        now = self.clock()
        full = len(self._noted) == MOST_NOTED and now - self._noted[0] < NOTED_SECONDS
        if self._note is not None and not full:
            self._noted.append(now)
            self._note(error)

    # ---- sessions --------------------------------------------------------------------------------

    def begin(self, session: bytes, analyst: Party) -> None:
        """Note that a session of an analyst begins, which it does once."""
        self._begun.setdefault(session, _Begun(analyst))
        if len(self._begun) > MOST_BEGUN:
            del self._begun[next(iter(self._begun))]

    def end(self, session: bytes, words: Mapping[Party, bytes]) -> None:
        """Note that a session is over, and this party's last word to each peer."""
        begun = self._begun.get(session)
        if begun is None or begun.is_over:
            return
        if len(self._words) == MOST_WORDS:
            self._words[0].words = None
        begun.words, begun.is_over = words, True
        self._words.append(begun)
        self._early = [mail for mail in self._early if mail.session != session]

    def take_hello(self, senders: Collection[Party]) -> tuple[Address, bytes] | None:
        """Take the oldest hello of one of some parties that begins a session."""
        for mail in self._early:
            if party_of(mail.sender) in senders and mail.session not in self._begun:
                self._early.remove(mail)
                return mail.sender, mail.packet
        return None

    # ---- packets ---------------------------------------------------------------------------------

    def receive(self, sessions: Collection[bytes], timeout: float | None) -> Mail | None:
        """Return the next packet of sessions; None at `timeout`, another hello, or a wake."""
        for mail in self._early:
            if mail.session in sessions:
                self._early.remove(mail)
                return mail
        end = None if timeout is None else self.clock() + timeout
        while True:
            received = self.link.receive(None if end is None else max(0.0, end - self.clock()))
            if received is None:
                return None
            sender, packet = received
            header = self._header(sender, packet)
            if header is not None and header.session in sessions:
                return Mail(header.session, sender, packet)
            if header is not None and header.kind == HELLO:
                self._keep(sender, header, packet)
                return None
            if header is not None:
                self._turn_away(sender, header)
            if end is not None and self.clock() >= end:
                return None

    def _header(self, sender: Address, packet: bytes) -> Header | None:
        """Read the header of a packet; return None if the packet is refused."""
        party = party_of(sender)
        try:
            if party not in self.identity.peers or not ADDRESS.fullmatch(sender):
                raise UnexpectedMessageError(party, f"{self.party} has not pinned its key")
            return read_header(packet, party)
        except ProtocolError as error:
            self.refuse(error)
            return None

    def _keep(self, sender: Address, header: Header, packet: bytes) -> None:
        """Keep a hello that opens and begins a new session; of each peer, keep the latest."""
        party = party_of(sender)
        try:
            if len(packet) > HELLO_BYTES:
                raise UnexpectedMessageError(party, f"a hello of {len(packet)} bytes")
            self.identity.open_statically(party, packet)
            if (begun := self._begun.get(header.session)) is not None:
                if begun.analyst == party:
                    reason = "a hello of a session that has begun before"
                    raise ReplayedMessageError(party, reason)
                return self._note_late(party, begun)
            compare_versions(self.identity, party, packet)
        except VersionsDifferError as error:
            return self._name_versions(error, sender, packet)
        except ProtocolError as error:
            self.refuse(error)
            if isinstance(error, MalformedMessageError):
                self._answer(sender, header, UNREADABLE)
            return None
        kept = [mail for mail in self._early if party_of(mail.sender) == party]
        if len(kept) == MOST_EARLY:
            self._early.remove(kept[0])
        self._early.append(Mail(header.session, sender, packet))
        return None

    def _name_versions(self, error: VersionsDifferError, sender: Address, packet: bytes) -> None:
        """Answer a hello of another version with both versions, and note them once per session."""
        session = read_header(packet, error.party).session
        if (sender, session) in self._answered:
            return
        if session not in {named for _, named in self._answered}:
            self.refuse(error)
        self._remember(sender, session)
        try:
            answers = farewell(self.identity, error, packet, self.randomness)
        except ProtocolError as fault:  # a hello without a valid key
            self.refuse(fault)
            return

        def say() -> None:  # the abort follows the receipt of the hello
            with suppress(BaseException):  # the link is closed: nobody waits for this thread
                for answer in answers:
                    self.link.deliver({sender: answer}, 0.0)

        self._farewells = [thread for thread in self._farewells if thread.is_alive()]
        if len(self._farewells) < MOST_FAREWELLS:
            self._farewells.append(Thread(target=say, daemon=True))
            self._farewells[-1].start()

    def _turn_away(self, sender: Address, header: Header) -> None:
        """Refuse a packet of no session that is open here; answer it if it is a message.

        The sender need not wait for a party that was started again and knows none of its sessions,
        nor for one whose last word did not reach it.
        """
        party, begun = party_of(sender), self._begun.get(header.session)
        if begun is None:
            self.refuse(UnexpectedMessageError(party, "a message of another session"))
        else:
            self._note_late(party, begun)
        if header.kind == DATA:
            last = GONE if begun is None else (begun.words or {}).get(party, OVER)
            self._answer(sender, header, last)

    def _note_late(self, sender: Party, begun: _Begun) -> None:
        """Note once per session that packets come late."""
        if not begun.is_noted:
            begun.is_noted = True
            reason = f"late packets of a session of {begun.analyst} that is over here"
            self.refuse(LatePacketsError(sender, reason))

    def _answer(self, sender: Address, header: Header, text: bytes) -> None:
        """Answer that a packet is of no session here: after some seconds again, without receipt."""
        answered = self._answered.get((sender, header.session), -AGAIN_SECONDS)
        if self.clock() - answered < AGAIN_SECONDS:
            return
        self._remember(sender, header.session)
        packet = self.identity.seal_statically(
            party_of(sender), UNKNOWN, header.session, text, self.randomness
        )
        self.link.deliver({sender: packet}, None)

    def _remember(self, sender: Address, session: bytes) -> None:
        """Remember that a packet of a session was answered, and when."""
        self._answered[sender, session] = self.clock()
        if len(self._answered) > MOST_ANSWERED:
            del self._answered[next(iter(self._answered))]
