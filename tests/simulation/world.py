"""The world of a simulation: time, events, processes, and the points at which a fault may strike.

    world.point(process, what)    before each packet, write, sync and rename: due faults strike here
    world.advance(until)          the next event: a packet arrives, a party's deadline, a restart

There is one thread. Everything that is drawn, secrets too, follows from the seed: equal seeds give
equal schedules. `note` keeps what happens, so that a failure can be replayed and read.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, deque
from contextlib import contextmanager
from heapq import heappop, heappush
from random import Random

BEGIN = 1_800_000_000  # seconds since 1970, when each world begins
MOST_EVENTS = 100_000


class Killed(BaseException):
    """Ends a process as a signal does: it tells nobody, and writes nothing more."""


class Failure(AssertionError):
    """What must not happen in any schedule."""


class Process:
    """One life of a party: what it loses when it is killed."""

    def __init__(self, world, party, address):
        self.world, self.party, self.address = world, party, address
        self.inbox = deque()
        self.is_dead = False
        self.frozen = 0.0  # until when

    def check(self):
        """Raise where the process was killed meanwhile."""
        if self.is_dead:
            raise Killed

    @property
    def is_frozen(self):
        return self.frozen > self.world.time


class World:
    """Time, events and processes."""

    def __init__(self, seed, faults=(), trace=None):
        self.seed, self.trace = seed, trace
        self.draw = Random(f"schedule {seed}")
        self._secrets = Random(f"secrets {seed}")
        self.time, self.points, self.done = 0.0, 0, Counter()
        self.processes = {}  # by address
        self.parties = {}  # by name
        self.current = None  # the process that runs
        self.session = b""  # of the program that runs
        self.digest, self.root = hashlib.sha256(), "/"
        self._events, self._count = [], 0
        self._faults = deque(sorted(faults, key=lambda fault: fault.point))

    # ---- time ------------------------------------------------------------------------------------

    def monotonic(self):
        """Return the seconds since the world began: the clock of all mailboxes."""
        return self.time

    def time_ns(self):
        """Return what the calendar of the running party shows."""
        offset = self.current.party.offset if self.current is not None else 0.0
        return int((BEGIN + self.time + offset) * 1e9)

    def after(self, seconds, action):
        """Do something later; events at one time come in an order that is drawn."""
        self._count += 1
        heappush(self._events, (self.time + seconds, self.draw.random(), self._count, action))

    def advance(self, until=math.inf):
        """Let the next event happen, or time pass if there is none before `until`."""
        if self._count > MOST_EVENTS:
            raise Failure("the parties do not come to an end")
        if not self._events or self._events[0][0] > until:
            if until == math.inf:
                raise Failure("all wait, and nothing can happen any more")
            self.time = max(self.time, until)
            return
        at, _, _, action = heappop(self._events)
        self.time = max(self.time, at)
        action()

    def pass_(self, seconds):
        """Let some seconds pass."""
        end = self.time + seconds
        while self.time < end:
            self.advance(end)

    # ---- processes -------------------------------------------------------------------------------

    @contextmanager
    def running(self, process):
        """Run a block as a process."""
        before, self.current = self.current, process
        try:
            yield
        finally:
            self.current = before

    def secret(self, count):
        """Return bytes in place of the operating system's."""
        return self._secrets.randbytes(count)

    # ---- points ----------------------------------------------------------------------------------

    def point(self, process, what):
        """Let the faults strike that are due; raise if the process is killed by one."""
        process.check()
        self.points += 1
        self.note(process.party.name, what)
        while self._faults and self._faults[0].point <= self.points:
            fault = self._faults.popleft()
            self.done[fault.kind] += 1
            fault.strike(self, process)
        process.check()

    def note(self, who, what):
        """Keep what happened."""
        line = f"{self.time:10.3f} {self.points:5} {who}: {what}".replace(self.root, "")
        self.digest.update(line.encode())
        if self.trace is not None:
            self.trace.append(line)
