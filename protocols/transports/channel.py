"""Channels: one party's end of one session between machines, and the loop that drives a program.

    all -> all        hello: the parties of the session, the analyst first     (protocols.seal)
    any -> any        messages, in the envelopes of protocols.wire, sealed
    any -> any        ping, asked, taken, abort, bye: sealed as messages are

A party that fails tells all others whom it blames (abort), so that everyone ends with that name. A
peer that is waited for is pinged: one whose process or network is gone is found out in seconds, one
that is there and silent when the time is up. Whoever sends and expects nothing waits, after 32 MiB,
until its receiver has read them (asked, taken), so that nobody's mail box is filled.

Security, leakage: as `protocols.seal`: who carries the packets sees their sizes and times. An abort
tells a party's name and the reason of a named error; of any other error, its class alone.
Cost: a round for the hellos of a session; 120 bytes a message more than in one process.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TypeVar

from mpc.errors import ProtocolError, UnexpectedMessageError
from mpc.rounds import Expect, Inbox, Message, Party, Program, Round
from protocols import wire
from protocols.errors import (
    PeerAbortedError,
    PeerGoneError,
    PeerTimeoutError,
    QueryRefusedError,
    SessionOverError,
    TransportError,
)
from protocols.seal import DATA, HELLO, Header, Seal
from protocols.session import Traffic
from protocols.transports.control import (
    Abort,
    Asked,
    Bye,
    Control,
    Ping,
    Roster,
    Taken,
    decode_control,
    decode_roster,
)
from protocols.transports.mailbox import RELAY, UNREADABLE, Mailbox

R = TypeVar("R")

WINDOW = 1 << 25  # bytes that are sent before their receiver is asked whether it has read them
GATHER_SECONDS = 1.0  # for hellos, before a session that failed early is left
MOST_WAITING = 1 << 30  # bytes of one sender that wait to be read,
A_MESSAGE = 256  # and so many for each of its messages
_MESSAGE, _CONTROL = b"message\0", b"control\0"  # with the envelope 80 bytes: arrays stay aligned


class Channel:
    """One party's end of one session; blocking.

    Parameters
    ----------
    mailbox : Mailbox
    seal : Seal
    parties : collection of Party
        All of the session, this one included.
    analyst : Party
        Who may end the session, and begin another.

    Attributes
    ----------
    traffic : Traffic
        What this party sent, seals and hellos included, and the longest chain that it has read.
    """

    def __init__(
        self, mailbox: Mailbox, seal: Seal, parties: Collection[Party], analyst: Party
    ) -> None:
        self.party = mailbox.party
        self.peers = tuple(p for p in sorted(parties) if p != self.party)
        self.analyst = analyst
        self.traffic = Traffic()
        self._mailbox, self._seal, self._patience = mailbox, seal, mailbox.patience
        self._depth = 0
        self._sent = dict.fromkeys(self.peers, 0)
        self._read = dict.fromkeys(self.peers, 0)
        self._mail: dict[Party, deque[bytes]] = {peer: deque() for peer in self.peers}
        self._waiting = dict.fromkeys(self.peers, 0)
        self._hellos: dict[Party, bytes] = {}  # what was said to each
        self._welcomed: dict[Party, bytes] = {}  # digests of the hellos that were taken
        self._gone: dict[Party, PeerGoneError] = {}
        self._unread = dict.fromkeys(self.peers, 0)  # bytes sent that may not have been read
        self._asking: set[Party] = set()  # who has not answered `Asked`
        self._asked: set[Party] = set()  # who is to be answered
        self._over: TransportError | None = None
        mailbox.begin(seal.session)

    # ---- hellos ----------------------------------------------------------------------------------

    def greet(self, peers: Collection[Party] | None = None, patience: float | None = None) -> None:
        """Say hello to peers, by default to all; the same again to who may not have heard it."""
        text = wire.encode(Roster(tuple(sorted((self.party, *self.peers)))))
        chosen = self.peers if peers is None else peers
        self._hellos |= {p: self._seal.greet(p, text) for p in chosen if p not in self._hellos}
        self._deliver({peer: self._hellos[peer] for peer in chosen}, patience)

    def unreached(self) -> dict[Party, PeerGoneError]:
        """Return whom no hello has reached: no longer given up, they may be greeted again."""
        late, self._gone = self._gone, {}
        return late

    def welcome(self, sender: Party, packet: bytes) -> None:
        """Take a peer's hello; the same again is none.

        Raises
        ------
        ProtocolError
            If it does not open, or names other parties.
        """
        digest = hashlib.sha256(packet).digest()
        if self._welcomed.get(sender) == digest:
            return  # its receipt was lost
        told = decode_roster(self._seal.welcome(sender, packet), sender)
        self._welcomed[sender] = digest
        if set(told) != {self.party, *self.peers}:
            raise UnexpectedMessageError(sender, "a session of other parties")
        if self._gone.pop(sender, None) is not None:
            self.greet([sender])  # it was not there when it was greeted

    def await_hellos(self, peers: Collection[Party] | None = None) -> None:
        """Wait until peers, by default all, have said hello.

        Raises
        ------
        PeerGoneError
            If one cannot be reached, or does not in time.
        """
        wanted = self.peers if peers is None else tuple(peers)
        reason = "did not say hello in time; does each side pin the other's key?"
        self._wait(partial(self._strange, wanted), self._patience.hello, reason)

    def _strange(self, wanted: Collection[Party]) -> list[Party]:
        strange = [peer for peer in wanted if not self._seal.knows(peer)]
        for peer in strange:
            if peer in self._gone:
                raise self._gone[peer]
        return strange

    # ---- sending ---------------------------------------------------------------------------------

    def send(self, outbox: Mapping[Party, Message]) -> None:
        """Send messages; a peer that is gone is passed over, and missed when it is waited for.

        Raises
        ------
        ProtocolError, TransportError
            If a receiver is none of the session's, or does not say hello.
        """
        self._check_parties(outbox)
        there = [peer for peer in outbox if peer not in self._gone]
        self.await_hellos(there)
        different = {id(outbox[peer]): outbox[peer] for peer in there}
        bodies = {place: wire.encode(message) for place, message in different.items()}
        self._deliver({peer: self._pack(peer, bodies[id(outbox[peer])]) for peer in there})

    def _pack(self, receiver: Party, body: bytes) -> bytes:
        counter = self._sent[receiver]
        self._sent[receiver] += 1
        self.traffic.messages += 1
        names = self._seal.session, self.party, receiver
        depth = min(self._depth + 1, wire.MOST_CHAIN)  # whoever lied about theirs
        header = wire.header(wire.Envelope(*names, counter, depth), body)
        packet = self._seal.seal(receiver, b"".join((_MESSAGE, header, body)))
        self._unread[receiver] += len(packet)
        return packet

    def _tell(
        self, peers: Collection[Party], control: Control, patience: float | None = None
    ) -> None:
        text = _CONTROL + wire.encode(control)
        known = (peer for peer in peers if self._seal.knows(peer) and peer not in self._gone)
        self._deliver({peer: self._seal.seal(peer, text) for peer in known}, patience)

    def _deliver(self, packets: Mapping[Party, bytes], patience: float | None = None) -> None:
        if not packets:
            return
        sent = self.traffic.bytes_sent
        for receiver, packet in packets.items():
            sent[self.party, receiver] = sent.get((self.party, receiver), 0) + len(packet)
        patience = self._patience.gone if patience is None else patience
        for peer, error in self._mailbox.link.deliver(packets, patience).items():
            self._gone.setdefault(peer, error)

    # ---- receiving -------------------------------------------------------------------------------

    def receive(self, step: Round) -> Inbox:
        """Wait for what a round expects; without the gone if it can do without them.

        Raises
        ------
        PeerGoneError
            If too few are left: a peer cannot be reached, is silent for too long, or has aborted.
        ProtocolError
            If a peer's packet is malformed, replayed or has no place here.
        SessionOverError
            If the analyst has ended the session.
        """
        self._check_parties(step.expect)
        if not step.expect:
            self._slow_down(step)
        time = None if step.idle else self._patience.silent
        self._wait(partial(self._silent, step), time, "can be reached, and is silent", step)
        inbox = {peer: self._take(peer, e) for peer, e in step.expect.items() if self._mail[peer]}
        self._unread.update(dict.fromkeys(inbox, 0))  # it goes on, and so it reads
        return inbox

    def _check_parties(self, named: Collection[Party]) -> None:
        for peer in named:
            if peer not in self._mail:
                raise ProtocolError(peer, "takes no part in this session")

    def _silent(self, step: Round) -> list[Party]:
        unheard = [peer for peer in step.expect if not self._mail[peer]]
        gone = [peer for peer in unheard if peer in self._gone]
        if gone and len(step.expect) - len(gone) < step.needed:
            raise self._gone[gone[0]]
        return [peer for peer in unheard if peer not in self._gone]

    def _slow_down(self, step: Round) -> None:
        """Wait until what was sent is read, if it is much."""
        full = [p for p in step.outbox if p not in self._gone and self._unread[p] > WINDOW]
        if not full:
            return
        self._asking.update(full)
        self._tell(full, Asked())
        unread = lambda: [p for p in full if p in self._asking and p not in self._gone]  # noqa: E731
        self._wait(unread, self._patience.silent, "can be reached, and does not read", step)
        self._unread.update(dict.fromkeys(full, 0))

    def _wait(
        self,
        awaited: Callable[[], list[Party]],
        time: float | None,
        reason: str,
        step: Round | None = None,
    ) -> None:
        """Take in packets until nobody is awaited any more, and look after those who are."""
        now = monotonic()
        end = None if time is None else now + time
        probe = now + self._patience.probe
        while True:
            if self._over is not None:
                raise self._over
            if not (peers := awaited()):
                return
            now = monotonic()
            if end is not None and now >= end:
                late = {peer: PeerTimeoutError(peer, f"{reason} ({time:g} s)") for peer in peers}
                self._gone.update(late)
            elif now >= probe:
                self._tell(peers, Ping())
                probe = monotonic() + self._patience.probe
            else:
                self._take_in((probe if end is None else min(probe, end)) - now, step)

    def _take_in(self, timeout: float, step: Round | None) -> None:
        """Take in a packet, if one comes in time."""
        for peer in self.peers:
            if not self._seal.knows(peer):
                early = self._mailbox.hello_of(peer, self._seal.session)
                if early is not None:
                    self.welcome(peer, early)
                    return
        found = self._mailbox.receive(self._seal.session, timeout)
        if found is not None:
            self._open(*found, step)
        elif self.party != self.analyst and self._mailbox.begins(self.analyst):
            self._over = SessionOverError(f"{self.analyst} has begun another session")

    def _open(self, sender: Party, header: Header, packet: bytes, step: Round | None) -> None:
        if sender not in self._mail:
            self._mailbox.refuse(UnexpectedMessageError(sender, "takes no part in this session"))
        elif header.kind == HELLO:
            self.welcome(sender, packet)
        elif header.kind == DATA:
            self._sort(sender, self._seal.open(sender, packet), step)
        else:
            text = self._mailbox.identity.open_statically(sender, packet)
            changed = "cannot open a hello that was sent to it: it was changed on its way"
            reason = changed if text == UNREADABLE else "was started again"
            self._leaves(sender, PeerGoneError(sender, reason), step)

    def _sort(self, sender: Party, text: bytes, step: Round | None) -> None:
        """Keep a message; act on what a channel tells."""
        if text[: len(_MESSAGE)] == _MESSAGE:
            self._waiting[sender] += len(text) + A_MESSAGE
            if self._waiting[sender] > MOST_WAITING:
                raise UnexpectedMessageError(sender, "sends more than is read")
            self._mail[sender].append(text)
            return
        match decode_control(memoryview(text)[len(_CONTROL) :], sender):
            case Asked():
                self._asked.add(sender)
                self._answer(sender)
            case Taken():
                self._asking.discard(sender)
            case Abort() as abort:
                self._leaves(sender, self._blamed(sender, abort), step)
            case Bye():
                if sender == self.analyst:
                    self._over = SessionOverError(f"{sender} has ended the session")
                self._leaves(sender, PeerGoneError(sender, "has left the session"), step)

    def _blamed(self, sender: Party, abort: Abort) -> PeerAbortedError:
        if abort.party == sender or abort.party not in (self.party, RELAY, *self.peers):
            return PeerAbortedError(sender, abort.told())
        return PeerAbortedError(abort.party, f"{abort.told()} ({sender} says so)")

    def _leaves(self, peer: Party, error: PeerGoneError, step: Round | None) -> None:
        """Note that a peer has left; end, unless the round may do without some."""
        self._gone.setdefault(peer, error)
        if self._over is None and (peer == self.analyst or step is None or step.need is None):
            raise error

    def _take(self, sender: Party, expect: Expect[Message]) -> Message:
        text = memoryview(self._mail[sender].popleft())[len(_MESSAGE) :]
        self._waiting[sender] -= len(text) + len(_MESSAGE) + A_MESSAGE
        header, body = bytes(text[: wire.ENVELOPE.size]), text[wire.ENVELOPE.size :]
        names = self._seal.session, sender, self.party
        depth = wire.check_header(header, body, wire.Envelope(*names, self._read[sender], 0))
        self._read[sender] += 1
        self._depth = max(self._depth, depth)
        self.traffic.rounds = self._depth
        self._answer(sender)
        return wire.decode(body, sender, expect)

    def _answer(self, sender: Party) -> None:
        if sender in self._asked and not self._mail[sender]:
            self._asked.discard(sender)
            self._tell([sender], Taken())

    # ---- the end ---------------------------------------------------------------------------------

    def abort(self, error: BaseException) -> None:
        """Leave the session and tell all peers who is to blame."""
        self._leave(None if isinstance(error, SessionOverError) else Abort.of(error, self.party))

    def close(self) -> None:
        """Leave the session; peers are told, if it was not over."""
        self._leave(Bye())

    def _leave(self, last: Control | None) -> None:
        if self._over is None and last is not None:
            if self.party == self.analyst:
                self._gather()
            self._tell(self.peers, last, 0.0)
        self._over = self._over or TransportError("the session is over")
        self._seal.forget()

    def _gather(self) -> None:
        """Take in hellos that are on their way: without them nobody can be told of the end."""
        end = monotonic() + GATHER_SECONDS
        while monotonic() < end:
            if all(self._seal.knows(peer) or peer in self._gone for peer in self.peers):
                return
            found = self._mailbox.receive(self._seal.session, max(0.0, end - monotonic()))
            if found is not None and found[1].kind == HELLO:
                with suppress(ProtocolError):
                    self._seal.welcome(found[0], found[2])


def drive(program: Program[R], channel: Channel) -> R:
    """Run one party's program to its end: the only loop that a networked party needs.

    Errors of the channel are raised in the program, where it waits. If the program fails, the
    session's parties are told; a query that is refused is no failure.
    """
    go_on: Callable[[], Round] = partial(next, program)
    try:
        while True:
            step = go_on()
            try:
                channel.send(step.outbox)
                go_on = partial(program.send, channel.receive(step))
            except (ProtocolError, TransportError) as error:
                go_on = partial(program.throw, error)
    except StopIteration as stop:
        output: R = stop.value
        return output
    except QueryRefusedError:
        raise
    except BaseException as error:
        channel.abort(error)
        raise
    finally:
        program.close()
