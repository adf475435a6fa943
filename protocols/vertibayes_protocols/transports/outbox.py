"""Deliveries side by side: a receiver that cannot be reached holds up no other.

Each address has a lane, a thread that delivers its packets one after the other and ends when it has
had nothing to do for a second. The thread of the sessions learns of a delivery that has ended when
it next asks; the link wakes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeAlias

from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.transports.mailbox import Address, Link

IDLE_SECONDS = 1.0

Job: TypeAlias = Callable[[], None]


@dataclass(eq=False)
class Sending:
    """A delivery that is under way."""

    left: int
    failed: dict[Address, PeerGoneError] = field(default_factory=dict)
    error: BaseException | None = None  # what the link has raised


@dataclass(eq=False)
class Asking:
    """Whether a process has an address is being asked."""

    address: Address
    is_away: bool = False
    error: BaseException | None = None


class Outbox:
    """Delivers the packets of many sessions."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = Lock()
        self._lanes: dict[str, SimpleQueue[Job]] = {}
        self._done: SimpleQueue[Sending | Asking] = SimpleQueue()

    def send(self, packets: Mapping[Address, bytes], patience: float | None) -> Sending:
        """Begin a delivery, as of `Link.deliver`; packets to one address stay in order."""
        sending = Sending(len(packets))
        for address, packet in packets.items():
            self._add(address, partial(self._send, sending, address, packet, patience))
        return sending

    def ask(self, address: Address) -> Asking:
        """Begin to ask whether a process has an address, beside what is delivered to it."""
        asking = Asking(address)
        self._add(f"? {address}", partial(self._ask, asking))
        return asking

    def done(self, timeout: float = 0.0) -> Sending | Asking | None:
        """Return the next that has ended; None after `timeout` seconds."""
        try:
            return self._done.get(timeout=timeout)
        except Empty:
            return None

    def _send(
        self, sending: Sending, address: Address, packet: bytes, patience: float | None
    ) -> None:
        failed: Mapping[Address, PeerGoneError] = {}
        try:
            failed = self._link.deliver({address: packet}, patience)
        except BaseException as error:
            sending.error = error
        with self._lock:
            sending.failed.update(failed)
            sending.left -= 1
            is_done = not sending.left
        if is_done:
            self._end(sending)

    def _ask(self, asking: Asking) -> None:
        try:
            asking.is_away = self._link.is_away(asking.address)
        except BaseException as error:
            asking.error = error
        self._end(asking)

    def _end(self, done: Sending | Asking) -> None:
        self._done.put(done)
        self._link.wake()

    def _add(self, lane: str, job: Job) -> None:
        with self._lock:
            if lane in self._lanes:
                return self._lanes[lane].put(job)
            jobs = self._lanes[lane] = SimpleQueue[Job]()
        jobs.put(job)
        Thread(target=self._work, args=(lane, jobs), daemon=True).start()
        return None

    def _work(self, lane: str, jobs: SimpleQueue[Job]) -> None:
        while True:
            try:
                jobs.get(timeout=IDLE_SECONDS)()
            except Empty:
                with self._lock:
                    if jobs.empty():
                        del self._lanes[lane]
                        return
