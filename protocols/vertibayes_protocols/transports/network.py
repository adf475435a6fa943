"""Sessions between machines: the analyst begins them, and sites and dealer join.

    NetworkTransport    analyst: say hello to all parties, and wait for their hellos
    join                party: take an analyst's hello; `transports.serving` serves many

A session that failed is over for all its parties. The next has keys of its own. What a study has
committed outlives the session in the memories of the sites: a column that has changed is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from vertibayes_mpc.errors import ProtocolError, UnexpectedMessageError
from vertibayes_mpc.randomness import KEY_BYTES
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.seal import SESSION_BYTES, Seal, read_header
from vertibayes_protocols.session import Traffic
from vertibayes_protocols.transports.channel import Channel, Steps, block, drive
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.control import Roster, decode_roster
from vertibayes_protocols.transports.mailbox import Address, Mailbox, Patience, party_of

R = TypeVar("R")

SOON = 2.5  # seconds before late parties are reported


class NetworkTransport:
    """Runs the analyst's programs in one session between machines."""

    def __init__(
        self,
        mailbox: Mailbox,
        parties: Collection[Party],
        watch: RunWatch = UNWATCHED,
        *,
        star: bool = False,
        most_absent: int = 0,
        patience: Patience | None = None,
    ) -> None:
        most = max(0, len(parties) - 1) if star else 0
        if not 0 <= most_absent <= most:
            why = "all parties but one" if star else "the session is not a star"
            raise ValueError(f"most_absent must be between 0 and {most} ({why}), got {most_absent}")
        strangers = set(parties) - set(mailbox.identity.peers)
        if strangers:
            raise ValueError(f"the keys of {', '.join(sorted(strangers))} are not pinned")
        session = mailbox.randomness.bytes(SESSION_BYTES)
        patience = patience or mailbox.patience
        seal = Seal(mailbox.identity, session, mailbox.randomness)
        everybody = {mailbox.party, *parties}
        self._watch = watch
        time_of_day, warn = mailbox.time_of_day, watch.noticed
        connection = Connection(
            seal, everybody, mailbox.party, patience, time_of_day=time_of_day, star=star, warn=warn
        )
        self._channel = Channel(mailbox, connection)
        watch.began(parties)
        try:
            self._block(_greet(self._channel, patience.hello, watch))
            self._block(self._channel.await_hellos(parties, most_absent))
        except BaseException as error:
            self._block(self._channel.leave(error))
            raise
        self.absent = self._channel.connection.settle()
        watch.saw(self._channel.view())

    @property
    def traffic(self) -> Traffic:
        """What the analyst has sent, and the longest chain of messages that it has read."""
        return self._channel.connection.traffic

    def run(self, program: Program[R]) -> R:
        """Run a program to its end."""
        result = self._block(drive(program, self._channel))
        self._watch.saw(self._channel.view())
        return result

    def close(self) -> None:
        """End the session."""
        self._block(self._channel.leave())

    def _block(self, steps: Steps[R]) -> R:
        return block(steps, self._channel, self._watch)


def session_of_those_there(
    mailbox: Mailbox,
    parties: Collection[Party],
    watch: RunWatch = UNWATCHED,
    *,
    hello: float | None = None,
) -> tuple[NetworkTransport, frozenset[Party]]:
    """Begin a session with the parties that are there, which speak with each other too."""
    patience = mailbox.patience._replace(hello=mailbox.patience.gone if hello is None else hello)
    most = max(0, len(parties) - 1)
    roll = NetworkTransport(mailbox, parties, watch, star=True, most_absent=most, patience=patience)
    roll.close()
    there = [party for party in parties if party not in roll.absent]
    return NetworkTransport(mailbox, there, watch), roll.absent


def _greet(channel: Channel, patience: float, watch: RunWatch) -> Steps[None]:
    """Greet all parties; report those that are late."""
    peers = channel.connection.peers
    late = yield from channel.greet(peers, min(SOON, patience))
    if late and patience > SOON:
        watch.late(sorted({error.party for error in late.values()}), patience)
        late = yield from channel.greet(late, patience - SOON)
    for party, error in late.items():
        reason = f"{error.reason} ({patience:g} s; is it started?)"
        peers[party].gone = PeerGoneError(error.parties, reason)


def join(mailbox: Mailbox, sender: Address, packet: bytes) -> Channel:
    """Take an analyst's hello, and return the party's end of the session: it has not said hello."""
    analyst = party_of(sender)
    session = read_header(packet, analyst).session
    mailbox.begin(session, analyst)
    text = mailbox.identity.open_statically(analyst, packet)
    parties = decode_roster(text[KEY_BYTES:], analyst, Roster).parties
    if not {mailbox.party, analyst} <= set(parties):
        raise UnexpectedMessageError(analyst, f"a session without {mailbox.party}")
    seal = Seal(mailbox.identity, session, mailbox.randomness)
    patience, time_of_day = mailbox.patience, mailbox.time_of_day
    connection = Connection(seal, parties, analyst, patience, time_of_day=time_of_day)
    connection.receive(analyst, packet)
    return Channel(mailbox, connection, {analyst: sender})


def unpinned(mailbox: Mailbox, connection: Connection) -> ProtocolError | None:
    """Return the error of a session with parties whose keys are not pinned here, if it has some."""
    strangers = set(connection.peers) - set(mailbox.identity.peers)
    if not strangers:
        return None
    reason = f"has not pinned the key of {', '.join(sorted(strangers))}"
    return ProtocolError(mailbox.party, reason)
