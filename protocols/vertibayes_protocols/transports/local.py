"""All parties in one process: the default, for trials, for tests and for one machine.

Every message is encoded, put into an envelope, counted and decoded, as between machines. The other
parties are stepped while the analyst waits. There are no threads and no clock: data and randomness
determine a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_mpc.rounds import Expect, Message, Party, Program
from vertibayes_mpc.scheduler import Scheduler, Sent
from vertibayes_protocols import wire
from vertibayes_protocols.session import Traffic

R = TypeVar("R")


class EnvelopedPackets:
    """A carrier that encodes messages, puts them into envelopes, and counts them."""

    def __init__(self, session: bytes, traffic: Traffic) -> None:
        self.session = session
        self.traffic = traffic
        self._sent: dict[tuple[Party, Party], int] = {}
        self._taken: dict[tuple[Party, Party], int] = {}
        self._last: tuple[Message, bytes] | None = None

    def pack(self, sent: Sent) -> tuple[bytes, bytes]:
        """Return the header and the body of a message."""
        link = sent.sender, sent.receiver
        counter = self._sent.get(link, 0)
        self._sent[link] = counter + 1
        if self._last is None or self._last[0] is not sent.message:
            self._last = sent.message, wire.encode(sent.message)
        body = self._last[1]  # encoded once if several receivers in turn receive it
        envelope = wire.Envelope(self.session, *link, counter, sent.depth)
        header = wire.header(envelope, body)
        traffic = self.traffic
        traffic.bytes_sent[link] = traffic.bytes_sent.get(link, 0) + len(header) + len(body)
        traffic.messages += 1
        return header, body

    def unpack(
        self, packet: tuple[bytes, bytes], sender: Party, receiver: Party, expect: Expect[Message]
    ) -> Sent:
        """Open a packet that must be the next on its link."""
        link = sender, receiver
        counter = self._taken.get(link, 0)
        header, body = packet
        depth = wire.check_header(header, body, wire.Envelope(self.session, *link, counter, 0))
        self._taken[link] = counter + 1
        self.traffic.rounds = max(self.traffic.rounds, depth)
        return Sent(*link, wire.decode(body, sender, expect), depth)

    def discard(self, sender: Party, receiver: Party) -> None:
        """Count the next packet on a link as taken: the packet after it is the next."""
        link = sender, receiver
        self._taken[link] = self._taken.get(link, 0) + 1


class LocalTransport:
    """Runs programs of the analyst, and steps those of all other parties meanwhile."""

    def __init__(
        self,
        analyst: Party,
        programs: Mapping[Party, Program[object]],
        randomness: Randomness | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        self.analyst = analyst
        self.traffic = traffic or Traffic()
        session = (randomness or SystemRandomness()).bytes(16)
        self._scheduler = Scheduler(EnvelopedPackets(session, self.traffic))
        for party, program in programs.items():
            self._scheduler.start(party, program)

    def run(self, program: Program[R]) -> R:
        """Run a program of the analyst to its end."""
        return self._scheduler.run(self.analyst, program)

    def drop(self, party: Party) -> None:
        """End a party's program where it waits, as if its process were gone."""
        self._scheduler.drop(party)

    def close(self) -> None:
        """End all programs."""
        self._scheduler.close()
