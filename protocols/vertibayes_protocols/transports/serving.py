"""Sessions side by side: the life of a site or dealer, which serves several analysts in one thread.

    a hello of an analyst        the session is joined, or refused by name: too many go on
    a packet of a session        its program is run as far as it goes without waiting
    a deadline of a session      its connection sends pings, or gives up who is silent

A session ends by itself, and its error touches no other. Programs are run one at a time, so that
what a party checks before it agrees to a query, and what it notes, are not interleaved with another
session. Only deliveries have threads of their own (`outbox`): they wait for receipts.

A process of an analyst runs one session at a time: its next hello ends the last. When another
process of this analyst says hello, the network is asked once for the analyst's other processes, and
the sessions of those that are away end before the new one begins: an analyst that was killed and
started again need not wait for a time-out.

Security: one analyst cannot exclude another: each has a share of the sessions, and of the hellos
that wait. One that sends more hellos than its share is answered, and costs a party little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import NoReturn, TypeAlias

from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.errors import PeerGoneError, SessionOverError
from vertibayes_protocols.parties import UNWATCHED, Kinds, Watch, serve
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.transports.channel import Channel, Steps, drive
from vertibayes_protocols.transports.connection import A_MESSAGE, MOST_WAITING
from vertibayes_protocols.transports.mailbox import Address, Delivery, Mail, Mailbox, party_of
from vertibayes_protocols.transports.network import join, unpinned
from vertibayes_protocols.transports.outbox import Asking, Outbox, Sending

MOST_REFUSALS = 8  # sessions of one analyst that are being refused at the same time
LAST_SECONDS = 1.0  # for the last words of all sessions, when the party is stopped

Watches: TypeAlias = Callable[[SiteRole | DealerRole, bytes], Watch]


def answer(
    mailbox: Mailbox,
    role: SiteRole | DealerRole,
    analysts: Mapping[Party, bytes],
    kinds: Kinds,
    *,
    watches: Watches = lambda _role, _session: UNWATCHED,
) -> NoReturn:
    """Serve the sessions of analysts side by side: the life of a site or dealer."""
    serving = _Serving(mailbox, role, analysts, kinds, watches)
    try:
        while True:
            serving.turn()
    except BaseException as error:
        serving.stop(error)
        raise


@dataclass(eq=False)
class _Served:
    """A session that goes on, or one that is being refused."""

    channel: Channel
    analyst: Party
    address: Address
    steps: Steps[None]
    is_refused: bool
    watch: Watch
    deadline: float = inf
    sending: Sending | None = None
    mail: deque[Mail] = field(default_factory=deque)  # that came during a delivery

    def waiting(self, sender: Party) -> int:
        """Return the bytes of a sender that wait here."""
        peer = self.channel.connection.peers.get(sender)
        early = (len(m.packet) + A_MESSAGE for m in self.mail if party_of(m.sender) == sender)
        return (0 if peer is None else peer.waiting) + sum(early)


@dataclass(eq=False)
class _Hello:
    """A hello of an analyst whose other processes are being asked for."""

    sender: Address
    packet: bytes
    asked: list[Asking]


class _Serving:
    def __init__(
        self,
        mailbox: Mailbox,
        role: SiteRole | DealerRole,
        analysts: Mapping[Party, bytes],
        kinds: Kinds,
        watches: Watches,
    ) -> None:
        self.live: dict[bytes, _Served] = {}
        self._mailbox, self._role, self._analysts = mailbox, role, analysts
        self._kinds, self._watches = kinds, watches
        self._outbox = Outbox(mailbox.link)
        self._hellos: dict[Party, _Hello] = {}

    def turn(self) -> None:
        """Begin what can begin, wait until something happens, and act on it."""
        while (hello := self._mailbox.take_hello(self._free())) is not None:
            self._greeted(*hello)
        first = min((s.deadline for s in self.live.values()), default=inf)
        timeout = None if first == inf else max(0.0, first - self._mailbox.clock())
        mail = self._mailbox.receive(self.live, timeout)
        if mail is not None:
            self._take(self.live[mail.session], mail)
        while (done := self._outbox.done()) is not None:
            self._delivered(done)
        for served in [s for s in self.live.values() if s.deadline <= self._mailbox.clock()]:
            self._run(served, partial(served.steps.send, None))

    # ---- hellos ----------------------------------------------------------------------------------

    def _free(self) -> set[Party]:
        """Return the analysts whose next hello can be taken."""
        refused = [s.analyst for s in self.live.values() if s.is_refused]
        busy = {analyst for analyst in refused if refused.count(analyst) >= MOST_REFUSALS}
        return set(self._analysts) - self._hellos.keys() - busy

    def _greeted(self, sender: Address, packet: bytes) -> None:
        """Begin a session, as soon as it is known which processes of its analyst are away."""
        analyst = party_of(sender)
        own = [s for s in self.live.values() if s.analyst == analyst and not s.is_refused]
        for served in own:
            if served.address == sender:
                self._fail(served, SessionOverError(f"{analyst} has begun another session"))
        others = {s.address for s in own} - {sender}
        hello = _Hello(sender, packet, [self._outbox.ask(address) for address in sorted(others)])
        if hello.asked:
            self._hellos[analyst] = hello
        else:
            self._begin(hello)

    def _asked(self, asking: Asking) -> None:
        """End the sessions of a process that is away; begin the session that waited for this."""
        analyst = party_of(asking.address)
        for served in list(self.live.values()):
            if asking.is_away and served.address == asking.address:
                self._fail(served, PeerGoneError(analyst, "cannot be reached"))
        hello = self._hellos[analyst]
        hello.asked.remove(asking)
        if not hello.asked:
            del self._hellos[analyst]
            self._begin(hello)

    def _begin(self, hello: _Hello) -> None:
        """Join a session, or refuse it; refuse a hello that is not in order."""
        analyst, mailbox = party_of(hello.sender), self._mailbox
        try:
            channel = join(mailbox, hello.sender, hello.packet)
        except ProtocolError as error:
            mailbox.refuse(error)
            return
        refusal = unpinned(mailbox, channel.connection) or self._too_many(analyst)
        session, watch = channel.connection.session, UNWATCHED
        if refusal is None:
            role = self._role.for_session(analyst, self._analysts[analyst])
            watch = self._watches(role, session)
            traffic = channel.connection.traffic
            steps = _joined(channel, serve(role, analyst, self._kinds, watch, traffic), watch)
        else:
            steps = _refused(channel, refusal)
        served = _Served(channel, analyst, hello.sender, steps, refusal is not None, watch)
        self.live[session] = served
        self._run(served, partial(next, steps))

    def _too_many(self, analyst: Party) -> ProtocolError | None:
        """Return why another session of an analyst is one too many, if it is."""
        going = [s.analyst for s in self.live.values() if not s.is_refused]
        most = self._role.policy.most_sessions
        share = max(1, most // max(1, len(self._analysts)))
        if going.count(analyst) >= share:
            taken = f"{going.count(analyst)} of at most {share} sessions of {analyst} are open"
        elif len(going) >= most:
            taken = f"{len(going)} of at most {most} sessions are open"
        else:
            return None
        reason = f"is busy: {taken} (most_sessions in its policy); try again when one has ended"
        return ProtocolError(self._mailbox.party, reason)

    # ---- sessions that go on ---------------------------------------------------------------------

    def _take(self, served: _Served, mail: Mail) -> None:
        """Hand a packet to its session; what waits of one sender is limited over all sessions."""
        sender = party_of(mail.sender)
        if sum(s.waiting(sender) for s in self.live.values()) > MOST_WAITING:
            self._fail(served, UnexpectedMessageError(sender, "sends more than is read"))
        elif served.sending is None:
            self._run(served, partial(served.steps.send, mail))
        else:
            served.mail.append(mail)

    def _delivered(self, done: Sending | Asking) -> None:
        if done.error is not None and not isinstance(done.error, Exception):
            raise done.error
        if isinstance(done, Asking):  # if the link has failed, nobody is known to be away
            self._asked(done)
            return
        for served in [s for s in self.live.values() if s.sending is done]:
            served.sending = None
            if done.error is not None:
                self._fail(served, done.error)
            else:
                self._run(served, partial(served.steps.send, done.failed))

    def _fail(self, served: _Served, error: Exception) -> None:
        """Raise an error in a session where it waits."""
        if isinstance(error, PeerGoneError):
            served.channel.connection.peers[served.analyst].gone = error
        served.sending = None
        self._run(served, partial(served.steps.throw, error))

    def _run(self, served: _Served, go_on: Callable[[], Delivery | float]) -> None:
        """Run a session until it waits; note how it ended."""
        error: Exception | None = None
        try:
            while True:
                step = go_on()
                served.deadline = inf if isinstance(step, tuple) else step
                if isinstance(step, tuple):
                    served.sending = self._outbox.send(*step)
                    return
                if not served.mail:
                    return
                go_on = partial(served.steps.send, served.mail.popleft())
        except (StopIteration, SessionOverError):
            pass
        except Exception as failure:  # the other sessions go on, whatever it is
            error = failure
        self._end(served, error)

    def _end(self, served: _Served, error: Exception | None) -> None:
        del self.live[served.channel.connection.session]
        if not served.is_refused:
            served.watch.ended(error)
        elif isinstance(error, ProtocolError):
            self._mailbox.refuse(error)

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self, error: BaseException) -> None:
        """Leave all sessions: the party is stopped, and its last words have a second."""
        end = self._mailbox.clock() + LAST_SECONDS
        for served in list(self.live.values()):
            self._leave(served, partial(served.steps.throw, error))
        while self.live and (rest := end - self._mailbox.clock()) > 0:
            done = self._outbox.done(rest)
            if isinstance(done, Sending):
                for served in [s for s in self.live.values() if s.sending is done]:
                    self._leave(served, partial(served.steps.send, done.failed))

    def _leave(self, served: _Served, go_on: Callable[[], Delivery | float]) -> None:
        """Run a session that is stopped up to its next delivery, or to its end."""
        with suppress(BaseException):  # that which has stopped the party, or what came of it
            step = go_on()
            if isinstance(step, tuple):
                served.sending = self._outbox.send(*step)
                return
        del self.live[served.channel.connection.session]


def _joined(channel: Channel, program: Program[None], watch: Watch) -> Steps[None]:
    """Say hello to all, and run the party's program."""
    watch.begun()
    try:
        yield from channel.greet(channel.connection.peers)
    except GeneratorExit:
        raise
    except BaseException as error:
        program.close()
        yield from channel.leave(error)
        raise
    yield from drive(program, channel)


def _refused(channel: Channel, refusal: ProtocolError) -> Steps[None]:
    """Say hello to the analyst alone, and why the party takes no part."""
    yield from channel.greet([channel.connection.analyst])
    yield from channel.leave(refusal)
    raise refusal
