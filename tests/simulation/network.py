"""The network of a simulation: what `Link` promises, and no more.

A packet arrives once and in the order of its link, or its sender is told that it did not reach the
receiver; it may have arrived all the same, if the receipt was lost. Links are not in step.
"""

from __future__ import annotations

import math
from collections import deque

from tests.simulation.world import Failure
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.transports.mailbox import party_of
from vertibayes_protocols.transports.outbox import Asking, Sending

AGAIN = 0.25  # seconds between two tries to reach a receiver


class Job:
    """A packet on its way."""

    def __init__(self, packet, end, done):
        self.packet, self.end, self.done = packet, end, done


class Lane:
    """Delivers the packets of one process to one address, one after the other."""

    def __init__(self, sender, address):
        self.world, self.sender, self.address = sender.world, sender, address
        self.jobs, self.is_busy, self.extra = deque(), False, 0.0

    def add(self, job):
        self.jobs.append(job)
        if not self.is_busy:
            self._next()

    def _next(self):
        self.is_busy = bool(self.jobs) and not (self.sender.is_dead and self.sender.is_cut)
        if self.is_busy:
            seconds = self.world.draw.choice((0.001, 0.002, 0.005, 0.02)) + self.extra
            self.extra = 0.0
            self.world.after(seconds, self._arrive)

    def _arrive(self):
        world, job = self.world, self.jobs[0]
        receiver = world.processes.get(self.address)
        is_there = receiver is not None and world.time >= world.parties["relay"].down
        if is_there and not receiver.is_frozen:
            return self._over(self._drop(job, receiver))
        if world.time < job.end:
            return world.after(min(AGAIN, job.end - world.time), self._arrive)
        if is_there:  # it reads the packet when it goes on
            receiver.put(self.sender.address, job.packet)
        return self._over(PeerGoneError(party_of(self.address), "cannot be reached"))

    def _drop(self, job, receiver):
        """Put a packet into the receiver's mail, unless a fault is due; return an error."""
        fault, self.sender.next_packet = self.sender.next_packet, ""
        times = {"lose": 0, "silent loss": 0, "duplicate": 2}.get(fault, 1)
        for _ in range(times):
            receiver.put(self.sender.address, job.packet)
        if fault in ("lose", "no receipt"):
            return PeerGoneError(party_of(self.address), "no receipt")
        return None

    def _over(self, error):
        self.jobs.popleft().done(error)
        self._next()


class Link:
    """A process's end of the network, for a party whose turns the world calls."""

    def __init__(self, process):
        self.process, self.world = process, process.world
        self.lanes = {}
        self.is_empty, self.deadline = False, math.inf  # as it was when it was last asked

    def transmit(self, address, packet, patience, done):
        """Send a packet; `done` is called with an error, or None, when its fate is known."""
        self.world.point(self.process, f"sends {len(packet)} bytes to {party_of(address)}")
        lane = self.lanes.setdefault(address, Lane(self.process, address))
        lane.add(Job(packet, self.world.time + (patience or 0.0), done))

    def receive(self, timeout):
        """Return the next packet, or None at once: the world knows when to ask again."""
        self.process.check()
        self.is_empty = not self.process.inbox
        self.deadline = math.inf if timeout is None else self.world.time + timeout
        return None if self.is_empty else self.process.inbox.popleft()

    def deliver(self, packets, patience):
        """Deliver packets of nobody's session, whose fate nobody waits for."""
        self.process.check()
        for address, packet in packets.items():
            self.transmit(address, packet, patience, lambda _: None)
        return {}

    def wake(self):
        """Do nothing: there is one thread."""

    def is_away(self, address):
        return address not in self.world.processes and self.world.time >= (
            self.world.parties["relay"].down
        )

    def close(self):
        """Leave the network."""


class WaitingLink(Link):
    """A link for an analyst, who waits: the others go on meanwhile."""

    def deliver(self, packets, patience):
        self.process.check()
        left, failed = set(packets), {}

        def over(address, error):
            left.discard(address)
            if error is not None:
                failed[address] = error

        for address, packet in packets.items():
            self.transmit(
                address, packet, patience, lambda error, address=address: over(address, error)
            )
        while left and patience is not None:
            self._wait(math.inf)
        self._thaw()
        return failed

    def receive(self, timeout):
        end = math.inf if timeout is None else self.world.time + timeout
        self._thaw()
        while not self.process.inbox and self.world.time < end:
            self._wait(end)
        self._thaw()
        return self.process.inbox.popleft() if self.process.inbox else None

    def sleep(self, seconds):
        """Sleep as the process."""
        end = self.world.time + seconds
        while self.world.time < end:
            self._wait(end)

    def _thaw(self):
        self.process.check()
        while self.process.is_frozen:
            self._wait(self.process.frozen)

    def _wait(self, until):
        with self.world.running(None):
            self.world.advance(until)
        self.process.check()


class Outbox:
    """As `transports.outbox.Outbox`, without its threads."""

    def __init__(self, link):
        self.link, self.ended = link, deque()

    def send(self, packets, patience):
        self.link.process.check()
        sending = Sending(len(packets))

        def over(address, error):
            sending.left -= 1
            if error is not None:
                sending.failed[address] = error
            if not sending.left:
                self._end(sending)

        for address, packet in packets.items():
            self.link.transmit(
                address, packet, patience, lambda error, address=address: over(address, error)
            )
        if patience is None or not packets:
            self._end(sending)
        return sending

    def ask(self, address):
        asking = Asking(address)

        def answered():
            asking.is_away = self.link.is_away(address)
            self._end(asking)

        self.link.world.after(0.01, answered)
        return asking

    def done(self, timeout=0.0):
        world = self.link.world
        if not self.ended and timeout > 0.0:  # a process that is stopped waits for its last words
            with world.running(None):
                world.advance(world.time + timeout)
        return self.ended.popleft() if self.ended else None

    def _end(self, done):
        if done in self.ended or getattr(done, "left", 0) < 0:
            raise Failure("a delivery ends twice")
        self.ended.append(done)
        self.link.process.wake()
