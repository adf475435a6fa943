"""One party's end of a session, pure: no clock, no input or output, nothing that waits.

    analyst -> all    hello: the parties of the session, the analyst first  (`seal`)
    all -> all        hello: the same
    any -> any        messages, in the envelopes of vertibayes_protocols.wire, sealed;
                      ping, asked, taken, abort, bye: sealed as messages are

A driver (`vertibayes_protocols.transports.channel`) hands packets to `receive`, delivers what
`to_send` returns, and calls `tick` at `deadline`. A party that fails sends all others an abort,
which names the party at fault, so that everyone ends with that name. A peer that is awaited is sent
pings: one that cannot be delivered reveals, in seconds, a process or a network that is gone. A
party that sends 32 MiB and expects nothing waits until they are read (asked, taken): no mailbox
fills up.

In a *star* session the parties speak with the analyst alone: the hellos between a party and the
analyst name these two. The session continues when a party drops out, and that party stays absent.

Security, leakage: as `vertibayes_protocols.seal`: who carries the packets sees their sizes and
times. An abort shows a party's name and the reason of a named error; of any other error, its class
alone. Cost: a round for the hellos of a session; 120 bytes a message more than in one process.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import NamedTuple

from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect, Inbox, Message, Party, Round
from vertibayes_protocols import wire
from vertibayes_protocols.errors import (
    PeerGoneError,
    PeerTimeoutError,
    SessionOverError,
    TransportError,
)
from vertibayes_protocols.seal import DATA, HELLO, Seal, read_header
from vertibayes_protocols.session import Traffic
from vertibayes_protocols.transports import control
from vertibayes_protocols.transports.control import (
    CONTROL,
    Abort,
    Asked,
    Bye,
    Control,
    Ping,
    Taken,
    compare_versions,
)
from vertibayes_protocols.transports.mailbox import GONE, RELAY, UNREADABLE, Delivery, Patience

WINDOW = 1 << 25  # bytes that are sent before their receiver is asked whether it has read them
MOST_WAITING = 1 << 30  # bytes of one sender that wait to be read,
A_MESSAGE = 256  # and so many more for each of its messages
LEFT = "has left the session"
MESSAGE = b"message\0"  # with the envelope 80 bytes: arrays stay aligned


@dataclass(eq=False)
class Peer:
    """What a connection knows of one peer."""

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


class _Wait(NamedTuple):
    """What a connection waits for."""

    awaited: Callable[[], list[Peer]]  # raises if too few peers are left
    seconds: float | None = None
    reason: str = ""  # why a peer is given up when the time is up
    tolerant: bool = False  # a peer that leaves is not an error yet


class Connection:
    """One party's end of one session."""

    def __init__(
        self,
        seal: Seal,
        parties: Collection[Party],
        analyst: Party,
        patience: Patience,
        *,
        time_of_day: Callable[[], float],
        star: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.party, self.session = seal.identity.party, seal.session
        self.analyst, self.star = analyst, star
        self.peers = {
            party: Peer(party, frozenset((self.party, party) if star else parties))
            for party in sorted(parties)
            if party != self.party
        }
        self.absent: frozenset[Party] = frozenset()
        self.traffic = Traffic()
        self.last_words: dict[Party, bytes] = {}
        self._seal, self._patience = seal, patience
        self._warn, self._time_of_day, self._asked = warn, time_of_day, inf
        self._depth = 0
        self._outgoing: list[Delivery] = []
        self._wait = _Wait(list)
        self._end = self._probe = inf  # pings are due at `_probe`: never, while some are delivered
        self._over: TransportError | None = None

    # ---- hellos ----------------------------------------------------------------------------------

    def greet(self, parties: Collection[Party], patience: float | None = None) -> None:
        """Say hello; say the same again to peers that no hello has reached."""
        for peer in (chosen := [self.peers[party] for party in parties]):
            peer.gone = None
            peer.hello = peer.hello or self._seal.greet(peer.party, wire.encode(self._text(peer)))
        patience = self._patience.gone if patience is None else patience
        self._emit({peer.party: peer.hello for peer in chosen}, patience)

    def _text(self, peer: Peer) -> control.Roster:
        """Return the text of a hello; the analyst's notes when it has asked for clocks."""
        roster, now = tuple(sorted(peer.roster)), self._time_of_day()
        self._asked = min(self._asked, now)
        is_answer = peer.party == self.analyst
        return control.Joined(roster, int(now)) if is_answer else control.Roster(roster)

    def settle(self) -> frozenset[Party]:
        """Note and return the absent: the peers that are gone when the session begins."""
        self.absent = frozenset(p for p, peer in self.peers.items() if peer.gone is not None)
        return self.absent

    def _welcome(self, peer: Peer, packet: bytes) -> None:
        """Take a peer's hello; ignore it if it comes again."""
        digest = hashlib.sha256(packet).digest()
        if peer.welcomed == digest:
            return  # its receipt was lost
        text = self._seal.welcome(peer.party, packet)
        peer.welcomed = digest
        compare_versions(self._seal.identity, peer.party, packet)
        answers = control.Joined if self.party == self.analyst else control.Roster
        roster = control.decode_roster(text, peer.party, answers)
        if set(roster.parties) != peer.roster:
            raise UnexpectedMessageError(peer.party, "a session of other parties")
        if isinstance(roster, control.Joined):
            now = self._time_of_day()
            if warning := control.clocks_differ(peer.party, roster.clock, self._asked, now):
                self._warn(warning)
        if peer.party in self.absent:
            self._dismiss(peer)
        elif peer.gone is not None:
            self.greet([peer.party])  # it was not there when it was greeted

    # ---- sending ---------------------------------------------------------------------------------

    def present(self, parties: Collection[Party]) -> list[Party]:
        """Return the parties that are not gone; all must take part in the session."""
        for party in parties:
            if party not in self.peers:
                raise ProtocolError(party, "takes no part in this session")
        return [party for party in parties if self.peers[party].gone is None]

    def send(self, outbox: Mapping[Party, Message]) -> None:
        """Send messages to peers that have said hello; pass over peers that are gone."""
        there = self.present(outbox)
        different = {id(outbox[party]): outbox[party] for party in there}
        bodies = {place: wire.encode(message) for place, message in different.items()}
        packets = {party: self._pack(party, bodies[id(outbox[party])]) for party in there}
        self._emit(packets, self._patience.gone)

    def _pack(self, receiver: Party, body: bytes) -> bytes:
        peer, names = self.peers[receiver], (self.session, self.party, receiver)
        depth = min(self._depth + 1, wire.MOST_CHAIN)  # a peer may have lied about its chain
        header = wire.header(wire.Envelope(*names, peer.sent, depth), body)
        packet = self._seal.seal(receiver, b"".join((MESSAGE, header, body)))
        self.traffic.messages += 1
        peer.sent += 1
        peer.unread += len(packet)
        return packet

    def _tell(self, controls: Mapping[Party, Control], patience: float | None) -> None:
        """Send controls to those that have said hello."""
        text = {p: CONTROL + wire.encode(c) for p, c in controls.items() if self._seal.knows(p)}
        self._emit({party: self._seal.seal(party, text[party]) for party in text}, patience)

    def _emit(self, packets: Mapping[Party, bytes], patience: float | None) -> None:
        sent = self.traffic.bytes_sent
        for receiver, packet in packets.items():
            sent[self.party, receiver] = sent.get((self.party, receiver), 0) + len(packet)
        if packets:
            self._outgoing.append((packets, patience))

    def to_send(self) -> list[Delivery]:
        """Take what must be delivered, in order; the caller calls `delivered` after each."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def delivered(self, failed: Mapping[Party, PeerGoneError], now: float) -> None:
        """Note that a delivery has ended, and which peers it has not reached."""
        for party, error in failed.items():
            self.peers[party].gone = self.peers[party].gone or error
        if self._probe == inf:
            self._probe = now + self._patience.probe

    # ---- waiting ---------------------------------------------------------------------------------

    def wait_for_hellos(self, parties: Collection[Party], now: float, most_absent: int = 0) -> None:
        """Wait until parties have said hello, all but at most `most_absent`."""
        awaited = partial(self._strange, [self.peers[party] for party in parties], most_absent)
        reason = "did not say hello in time; does each side pin the other's key?"
        self._start(now, _Wait(awaited, self._patience.hello, reason, most_absent > 0))

    def wait_for(self, step: Round, now: float) -> None:
        """Wait for what a round expects, or else until its receivers have read what is much."""
        self.present(step.expect)
        awaited, doing = partial(self._silent, step), "is silent"
        if not step.expect:
            awaited, doing = partial(self._not_read, self._ask(step.outbox)), "does not read"
        seconds = None if step.idle else self._patience.silent
        reason = f"can be reached, and {doing}"
        self._start(now, _Wait(awaited, seconds, reason, step.need is not None))

    def _ask(self, outbox: Mapping[Party, Message]) -> list[Peer]:
        """Ask receivers of much whether they have read it."""
        full = [self.peers[p] for p in self.present(outbox) if self.peers[p].unread > WINDOW]
        for peer in full:
            peer.asking, peer.unread = True, 0
        self._tell({peer.party: Asked() for peer in full}, self._patience.gone)
        return full

    def _not_read(self, asked: Collection[Peer]) -> list[Peer]:
        return [peer for peer in asked if peer.asking and peer.gone is None]

    def _start(self, now: float, wait: _Wait) -> None:
        self._wait, self._probe = wait, now + self._patience.probe
        self._end = inf if wait.seconds is None else now + wait.seconds

    def is_waiting(self) -> bool:
        """Whether a peer is awaited."""
        if self._over is not None:
            raise self._over
        return bool(self._wait.awaited())

    def awaited(self) -> tuple[Party, ...]:
        """Return the peers that are awaited; none if too few are left."""
        try:
            return tuple(peer.party for peer in self._wait.awaited())
        except TransportError:
            return ()

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        return min(self._probe, self._end)

    def tick(self, now: float) -> None:
        """Give up the awaited peers if their time is up; otherwise send them the pings due."""
        if now >= self._end:
            for peer in self._wait.awaited():
                reason = f"{self._wait.reason} ({self._wait.seconds:g} s)"
                peer.gone = PeerTimeoutError(peer.party, reason)
        elif now >= self._probe:
            self._tell({p.party: Ping() for p in self._wait.awaited()}, self._patience.gone)
            self._probe = inf if self._outgoing else now + self._patience.probe

    def _strange(self, wanted: Collection[Peer], most_absent: int) -> list[Peer]:
        strange = [peer for peer in wanted if not self._seal.knows(peer.party)]
        gone = [p.gone for p in (wanted if self.star else strange) if p.gone is not None]
        if len(gone) > most_absent:
            names = tuple(sorted({party for error in gone for party in error.parties}))
            reason = f"{gone[0].reason}; at most {most_absent} may be absent"
            raise PeerGoneError(names, reason) if most_absent else gone[0]
        return [peer for peer in strange if peer.gone is None]

    def _silent(self, step: Round) -> list[Peer]:
        unheard = [self.peers[party] for party in step.expect if not self.peers[party].mail]
        gone = [peer.gone for peer in unheard if peer.gone is not None]
        if gone and len(step.expect) - len(gone) < step.needed:
            raise gone[0]
        return [peer for peer in unheard if peer.gone is None]

    # ---- receiving -------------------------------------------------------------------------------

    def receive(self, sender: Party, packet: bytes) -> None:
        """Take a peer's packet of this session."""
        peer, kind = self.peers[sender], read_header(packet, sender).kind
        if kind == HELLO:
            self._welcome(peer, packet)
        elif kind == DATA:
            self._sort(peer, self._seal.open(sender, packet))
        else:
            text = self._seal.identity.open_statically(sender, packet)
            self._leaves(peer, self._turned_away(peer, text))

    def _turned_away(self, peer: Peer, text: bytes) -> PeerGoneError:
        """Return why a peer answers that a packet is of no session: see `mailbox`."""
        if text == GONE:
            return PeerGoneError(peer.party, "was started again")
        if text == UNREADABLE:
            reason = "cannot open a hello that was sent to it: it was changed on its way"
            return PeerGoneError(peer.party, reason)
        last = control.decode_control(text, peer.party)
        if isinstance(last, Abort):
            return last.error(peer.party, (self.party, RELAY, *peer.roster))
        return PeerGoneError(peer.party, LEFT)

    def _sort(self, peer: Peer, text: bytes) -> None:
        """Keep a message; act on a control."""
        is_message, is_gone = text.startswith(MESSAGE), self.star and peer.gone is not None
        if is_message and not is_gone:
            peer.waiting += len(text) + A_MESSAGE
            if peer.waiting > MOST_WAITING:
                raise UnexpectedMessageError(peer.party, "sends more than is read")
            return peer.mail.append(text)
        match None if is_message else control.decode_control(text[len(CONTROL) :], peer.party):
            case Abort() as abort:
                self._leaves(peer, abort.error(peer.party, (RELAY, *peer.roster)))
            case Bye():
                if peer.party == self.analyst:
                    self._over = SessionOverError(f"{peer.party} has ended the session")
                self._leaves(peer, PeerGoneError(peer.party, LEFT))
            case _ if is_gone:
                self._dismiss(peer)
            case Asked():
                peer.asked = True
                self._answer(peer)
            case Taken():
                peer.asking = False
        return None

    def _dismiss(self, peer: Peer) -> None:
        """End the session of a peer that speaks after it was given up."""
        self._tell({peer.party: Bye()}, None)

    def _leaves(self, peer: Peer, error: PeerGoneError) -> None:
        """Note that a peer has left; raise, unless the session or the round may do without some."""
        peer.gone = peer.gone or error
        tolerant = peer.party != self.analyst and (self.star or self._wait.tolerant)
        if self._over is None and not tolerant:
            raise error

    def take(self, expect: Mapping[Party, Expect[Message]]) -> Inbox:
        """Read the messages that a round has waited for."""
        inbox = {p: self._take(self.peers[p], e) for p, e in expect.items() if self.peers[p].mail}
        for party in inbox:
            self.peers[party].unread = 0  # it goes on, and so it reads
        return inbox

    def _take(self, peer: Peer, expect: Expect[Message]) -> Message:
        text, names = memoryview(peer.mail.popleft()), (self.session, peer.party, self.party)
        peer.waiting -= len(text) + A_MESSAGE
        start = len(MESSAGE) + wire.ENVELOPE.size
        header, body = bytes(text[len(MESSAGE) : start]), text[start:]
        depth = wire.check_header(header, body, wire.Envelope(*names, peer.read, 0))
        peer.read += 1
        self._depth = self.traffic.rounds = max(self._depth, depth)
        self._answer(peer)
        return wire.decode(body, peer.party, expect)

    def _answer(self, peer: Peer) -> None:
        if peer.asked and not peer.mail:
            peer.asked = False
            self._tell(dict.fromkeys(self.present([peer.party]), Taken()), self._patience.gone)

    # ---- the end ---------------------------------------------------------------------------------

    def strangers(self) -> list[Party]:
        """Return the peers whose hellos may be on their way; none once the session is over."""
        there = self.present(self.peers) if self._over is None else []
        return [party for party in there if not self._seal.knows(party)]

    def leave(self, error: BaseException | None = None) -> None:
        """Leave the session: send the peers a bye, or an abort that names who is at fault."""
        is_ended = self._over is not None or isinstance(error, SessionOverError)
        words = {
            p: Bye() if is_ended else self._last_word(peer, error) for p, peer in self.peers.items()
        }
        self.last_words = self.last_words or {p: wire.encode(word) for p, word in words.items()}
        if not is_ended:
            self._tell({party: words[party] for party in self.present(self.peers)}, 0.0)
        self._over = self._over or TransportError("the session is over")
        self._seal.forget()

    def _last_word(self, peer: Peer, error: BaseException | None) -> Control:
        if error is None:
            return Bye()
        abort = Abort.of(error, self.party)
        if self.star and abort.party not in (RELAY, *peer.roster):  # whom the peer does not know
            return Abort(self.party, f"failed ({type(error).__name__})")
        return abort
