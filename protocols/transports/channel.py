"""Channels: the driver of a connection, which waits and holds the clock, and that of a program."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TypeVar

from mpc.errors import ProtocolError, UnexpectedMessageError
from mpc.rounds import Inbox, Party, Program, Round
from protocols.errors import PeerGoneError, QueryRefusedError, SessionOverError, TransportError
from protocols.transports.connection import Connection
from protocols.transports.mailbox import Mailbox

R = TypeVar("R")

GATHER_SECONDS = 1.0  # for hellos, before a session that failed early is left


class Channel:
    """Drives a connection over a mailbox; blocking.

    Parameters
    ----------
    mailbox : Mailbox
    connection : Connection
        Of a session that begins.
    """

    def __init__(self, mailbox: Mailbox, connection: Connection) -> None:
        self.connection = connection
        self._mailbox = mailbox
        mailbox.begin(connection.session)

    def greet(
        self, parties: Collection[Party], patience: float | None = None
    ) -> dict[Party, PeerGoneError]:
        """Say hello; return the errors of the peers that it has not reached."""
        self.connection.greet(parties, patience)
        self._deliver()
        peers = self.connection.peers
        return {p: error for p in parties if (error := peers[p].gone) is not None}

    def await_hellos(self, parties: Collection[Party], most_absent: int = 0) -> None:
        """Wait until parties have said hello, all but at most `most_absent`."""
        self.connection.wait_for_hellos(parties, monotonic(), most_absent)
        self._wait()

    def exchange(self, step: Round) -> Inbox:
        """Send a round's messages, and wait for those that it expects.

        A peer that is gone is passed over, and missed if the round cannot do without it.

        Raises
        ------
        PeerGoneError
            If too few are left: a peer cannot be reached, is silent for too long, or has aborted.
        ProtocolError
            If a party takes no part in the session, or its packet is malformed, replayed or has no
            place here.
        SessionOverError
            If the analyst has ended the session.
        """
        connection = self.connection
        may_be_gone = 0 if step.need is None else len(step.outbox)
        self.await_hellos(connection.present(step.outbox), may_be_gone)
        connection.send(step.outbox)
        self._deliver()
        connection.wait_for(step, monotonic())
        self._wait()
        inbox = connection.take(step.expect)
        self._deliver()
        return inbox

    def leave(self, error: BaseException | None = None) -> None:
        """Leave the session; if it was not over, send the peers who is at fault, or a bye."""
        if self.connection.party == self.connection.analyst:
            self._gather()
        self.connection.leave(error)
        self._deliver()

    def _gather(self) -> None:
        """Take in hellos that are on their way: nothing can be sealed for other peers."""
        end = monotonic() + GATHER_SECONDS
        while self.connection.strangers() and (rest := end - monotonic()) > 0:
            with suppress(ProtocolError):
                self._take_in(rest)

    def _wait(self) -> None:
        """Take in packets until no peer is awaited any more."""
        self._deliver()
        while self.connection.is_waiting():
            rest = self.connection.deadline - monotonic()
            if rest > 0:
                self._take_in(rest)
            else:
                self.connection.tick(monotonic())
            self._deliver()

    def _take_in(self, timeout: float) -> None:
        """Take in a packet, if one comes in time."""
        connection, mailbox = self.connection, self._mailbox
        received = mailbox.receive(connection.session, timeout)
        if received is None:
            if connection.party != connection.analyst and mailbox.hello_of(connection.analyst):
                raise SessionOverError(f"{connection.analyst} has begun another session")
        elif received[0] not in connection.peers:
            reason = "takes no part in this session"
            mailbox.refuse(UnexpectedMessageError(received[0], reason))
        else:
            connection.receive(*received)

    def _deliver(self) -> None:
        for delivery in self.connection.to_send():
            failed = self._mailbox.link.deliver(*delivery)
            self.connection.delivered(failed, monotonic())


def drive(program: Program[R], channel: Channel) -> R:
    """Run one party's program to its end: the only loop that a networked party needs.

    Errors of the channel are raised in the program, where it waits. If the program fails, the
    session's parties are sent an abort; a query that is refused is not a failure.
    """
    go_on: Callable[[], Round] = partial(next, program)
    try:
        while True:
            step = go_on()
            try:
                go_on = partial(program.send, channel.exchange(step))
            except (ProtocolError, TransportError) as error:
                go_on = partial(program.throw, error)
    except StopIteration as stop:
        output: R = stop.value
        return output
    except QueryRefusedError:
        raise
    except BaseException as error:
        channel.leave(error)
        raise
    finally:
        program.close()
