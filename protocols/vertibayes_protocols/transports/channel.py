"""Channels: the drivers of a connection and of a program over it, which yield to wait.

    yields      a delivery: packets and a patience      is sent    the receivers not reached
    yields      a deadline                              is sent    a packet, or None at the deadline

A driver is a generator (`Steps`), so that one thread can drive the sessions of many analysts.
`block` runs one to its end, as the analyst does; `vertibayes_protocols.transports.serving` runs
many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, TypeAlias, TypeVar

from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.rounds import Inbox, Party, Program, Round
from vertibayes_protocols.errors import PeerGoneError, QueryRefusedError, TransportError
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch, SessionView
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.mailbox import Address, Delivery, Mail, Mailbox, party_of

R = TypeVar("R")
Steps: TypeAlias = Generator[Delivery | float, Any, R]

GATHER_SECONDS = 1.0  # for hellos, before a session that failed early is left


class Channel:
    """Drives a connection over a mailbox."""

    def __init__(
        self,
        mailbox: Mailbox,
        connection: Connection,
        addresses: Mapping[Party, Address] | None = None,
    ) -> None:
        self.connection = connection
        self.mailbox, self._now = mailbox, mailbox.clock
        self._addresses = addresses or {}
        mailbox.begin(connection.session, connection.analyst)

    def greet(
        self, parties: Collection[Party], patience: float | None = None
    ) -> Steps[dict[Party, PeerGoneError]]:
        """Say hello; return the errors of the peers that it has not reached."""
        self.connection.greet(parties, patience)
        yield from self._deliver()
        peers = self.connection.peers
        return {p: error for p in parties if (error := peers[p].gone) is not None}

    def await_hellos(self, parties: Collection[Party], most_absent: int = 0) -> Steps[None]:
        """Wait until parties have said hello, all but at most `most_absent`."""
        self.connection.wait_for_hellos(parties, self._now(), most_absent)
        yield from self._wait()

    def exchange(self, step: Round) -> Steps[Inbox]:
        """Send a round's messages, and wait for those that it expects.

        A peer that is gone is passed over, and missed if the round cannot do without it.
        """
        connection = self.connection
        may_be_gone = 0 if step.need is None else len(step.outbox)
        yield from self.await_hellos(connection.present(step.outbox), may_be_gone)
        connection.send(step.outbox)
        yield from self._deliver()
        connection.wait_for(step, self._now())
        yield from self._wait()
        inbox = connection.take(step.expect)
        yield from self._deliver()
        return inbox

    def view(self) -> SessionView:
        """Return the state of the session."""
        connection, peers = self.connection, self.connection.peers
        gone = {party: peer.gone for party, peer in peers.items() if peer.gone is not None}
        traffic = connection.traffic
        return SessionView(
            frozenset(peers) - gone.keys() - frozenset(connection.strangers()),
            gone,
            {party: peer.read + len(peer.mail) for party, peer in peers.items()},
            connection.awaited(),
            traffic.bytes,
            traffic.rounds,
        )

    def leave(self, error: BaseException | None = None) -> Steps[None]:
        """Leave the session; if it was not over, send the peers who is at fault, or a bye."""
        connection = self.connection
        end = self._now() + GATHER_SECONDS if connection.party == connection.analyst else 0.0
        while end > self._now() and connection.strangers():
            mail = yield end  # a hello on its way: without it, nothing can be sealed for its sender
            with suppress(ProtocolError):
                self._take_in(mail)
        connection.leave(error)
        self.mailbox.end(connection.session, connection.last_words)
        with suppress(TransportError):  # the session is over, whoever else is gone
            yield from self._deliver()

    def _wait(self) -> Steps[None]:
        """Take in packets until no peer is awaited any more."""
        yield from self._deliver()
        while self.connection.is_waiting():
            if self.connection.deadline > self._now():
                self._take_in((yield self.connection.deadline))
            else:
                self.connection.tick(self._now())
            yield from self._deliver()

    def _take_in(self, mail: Mail | None) -> None:
        """Take in a packet, if one has come in time."""
        if mail is None:
            return
        party = party_of(mail.sender)
        if party not in self.connection.peers:
            reason = "takes no part in this session"
            self.mailbox.refuse(UnexpectedMessageError(party, reason))
        elif self._addresses.get(party, party) != mail.sender:
            reason = "a packet from another address than the party has in this session"
            self.mailbox.refuse(UnexpectedMessageError(party, reason))
        else:
            self.connection.receive(party, mail.packet)

    def _deliver(self) -> Steps[None]:
        for packets, patience in self.connection.to_send():
            addressed = {self._addresses.get(p, p): packet for p, packet in packets.items()}
            failed = yield addressed, patience
            lost = {party_of(address): error for address, error in failed.items()}
            self.connection.delivered(lost, self._now())


def drive(program: Program[R], channel: Channel) -> Steps[R]:
    """Run one party's program to its end: the only loop that a networked party needs.

    Errors of the channel are raised in the program, where it waits. If the program fails, the
    session's parties are sent an abort; a query that is refused is not a failure.
    """
    go_on: Callable[[], Round] = partial(next, program)
    try:
        while True:
            step = go_on()
            try:
                inbox = yield from channel.exchange(step)
                go_on = partial(program.send, inbox)
            except (ProtocolError, TransportError) as error:
                go_on = partial(program.throw, error)
    except StopIteration as stop:
        output: R = stop.value
        return output
    except (QueryRefusedError, GeneratorExit):
        raise
    except BaseException as error:
        yield from channel.leave(error)
        raise
    finally:
        program.close()


def block(steps: Steps[R], channel: Channel, watch: RunWatch = UNWATCHED) -> R:
    """Run a driver of a channel to its end, and wait where it waits."""
    go_on: Callable[[], Delivery | float] = partial(next, steps)
    try:
        while True:
            step = go_on()
            try:
                go_on = partial(steps.send, _done(step, channel, watch))
            except BaseException as error:
                go_on = partial(steps.throw, error)
    except StopIteration as stop:
        output: R = stop.value
        return output


def _done(step: Delivery | float, channel: Channel, watch: RunWatch) -> object:
    """Deliver, or wait for a packet; return what a driver is sent."""
    mailbox = channel.mailbox
    if isinstance(step, tuple):
        return mailbox.link.deliver(*step)
    watch.saw(channel.view())
    timeout = None if step == inf else max(0.0, step - mailbox.clock())
    return mailbox.receive((channel.connection.session,), timeout)
