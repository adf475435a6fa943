"""A link through the process that started this one, which carries packets over its platform.

    party's process                          the process that started it, as in a job of FLARE
    CarriedLink.deliver   --- packet --->    End.take: hands the packet to the platform
                          <-- receipt ---    once the receiver's process has it
    CarriedLink.receive   <-- packet ----    End.pass_on, when the platform brings a packet
                          --- receipt -->    once it waits here

A frame is a line of JSON and a packet. The two processes share a pair of sockets; the environment
names the descriptor of the party's end.

Security: the carrier is what a relay is: it and its platform see who sends to whom, when and how
much, and can lose and delay packets. Names are claims. Nothing is believed that
`vertibayes_protocols.seal` does not open.

Cost: one receipt per packet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Self, TypeAlias

from vertibayes_protocols.errors import PeerGoneError, TransportError
from vertibayes_protocols.transports.mailbox import Address, party_of

DESCRIPTOR = "VERTIBAYES_CARRIER"  # of the environment: the party's end of the connection
MOST_WAITING = 1 << 30  # bytes of packets that wait to be read; more are refused, and sent again
GONE = EOFError, OSError, TypeError  # the last: this end was closed in the middle of a frame
MOST_AT_ONCE = 64  # packets that are on their way over the platform
MOST_NUMBERS = 10_000  # of packets of one sender that are remembered
MOST_SENDERS = 1000  # whose numbers are remembered
# How much longer than its patience a party waits for receipts: the carrier may ask twice.
GRACE_SECONDS = 60.0
BYTES_A_SECOND = 100_000

Take: TypeAlias = Callable[[Address, bytes, float | None], bool]  # a packet and the patience


class End:
    """One end of the connection of a party and its carrier.

    Parameters
    ----------
    connection : Connection
        This end's.
    take : callable
        (address, packet, patience in seconds) -> whether the packet is received; called in threads.
        Nobody waits for the receipt of a packet without patience.
    lost : callable, optional
        Called when the other end is gone.
    """

    def __init__(
        self, connection: Connection, take: Take, lost: Callable[[], None] = lambda: None
    ) -> None:
        self._connection, self._take, self._lost = connection, take, lost
        self._lock = Lock()
        self._numbers = count()
        self._awaited: dict[int, Future[bool]] = {}
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE)
        self.is_closed = False
        Thread(target=self._read, daemon=True).start()

    def pass_on(self, address: Address, packet: bytes, patience: float | None) -> Future[bool]:
        """Pass a packet to the other end; the result is whether it is received."""
        receipt: Future[bool] = Future()
        with self._lock:
            number = next(self._numbers)
            self._awaited[number] = receipt
        self._write({"number": number, "address": address, "patience": patience}, packet)
        return receipt

    def close(self) -> None:
        """End the connection: the other end sees it, and nobody waits for a receipt."""
        self.is_closed = True
        self._connection.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _write(self, about: Mapping[str, Any], packet: bytes = b"") -> None:
        try:
            if self.is_closed:
                raise EOFError
            with self._lock:
                self._connection.send_bytes(json.dumps(about).encode() + b"\n" + packet)
        except GONE:
            self._lose()

    def _read(self) -> None:
        try:
            while True:
                line, _, packet = self._connection.recv_bytes().partition(b"\n")
                if not isinstance(about := json.loads(line), dict):
                    raise ValueError("a frame begins with an object")
                if "address" in about:
                    self._pool.submit(self._received, about, packet)
                elif (receipt := self._awaited.pop(about["number"], None)) is not None:
                    receipt.set_result(about["received"] is True)
        except (*GONE, RuntimeError):  # the pool is shut down
            self._lose()
        except (ValueError, KeyError):  # not a frame: nothing after it can be believed
            self.close()
            self._lose()

    def _received(self, about: Mapping[str, Any], packet: bytes) -> None:
        received = False
        try:
            received = self._take(about["address"], packet, about["patience"])
        finally:
            self._write({"number": about["number"], "received": received})

    def _lose(self) -> None:
        """Answer all who wait for receipts: the other end is gone."""
        self.is_closed = True
        with self._lock:
            awaited, self._awaited = self._awaited, {}
        for receipt in awaited.values():
            receipt.set_result(False)
        self._lost()


class TakenNumbers:
    """Which packets were taken: one that is sent again is taken once, and one may overtake another.

    Of each sender, the newest numbers of its latest epoch are remembered.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[bytes, dict[int, None]]] = {}

    def has(self, sender: str, epoch: bytes, number: int) -> bool:
        """Whether a packet was taken."""
        latest, numbers = self._of.get(sender, (b"", {}))
        return latest == epoch and number in numbers

    def add(self, sender: str, epoch: bytes, number: int) -> None:
        """Note that a packet is taken, and forget the oldest beyond the limits."""
        latest, numbers = self._of.get(sender, (epoch, {}))
        if latest != epoch:
            numbers = {}
        numbers[number] = None
        self._of[sender] = epoch, numbers
        if len(numbers) > MOST_NUMBERS:
            del numbers[next(iter(numbers))]
        if len(self._of) > MOST_SENDERS:
            del self._of[next(iter(self._of))]


class CarriedLink:
    """A party's link to its peers by way of the process that started it; see `mailbox.Link`."""

    def __init__(self, connection: Connection) -> None:
        self._lock, self._waiting = Lock(), 0
        self._packets: SimpleQueue[tuple[Address, bytes] | None] = SimpleQueue()
        self._end = End(connection, self._take, self.wake)

    def deliver(
        self, packets: Mapping[Address, bytes], patience: float | None
    ) -> Mapping[Address, PeerGoneError]:
        """Deliver packets side by side; return the errors of the receivers that are not reached."""
        receipts = {
            peer: self._end.pass_on(peer, packet, patience) for peer, packet in packets.items()
        }
        if patience is None:
            return {}
        size = sum(map(len, packets.values()))
        done, _ = wait(receipts.values(), patience + GRACE_SECONDS + size / BYTES_A_SECOND)
        missed = [
            peer for peer, receipt in receipts.items() if not (receipt in done and receipt.result())
        ]
        return {peer: PeerGoneError(party_of(peer), "cannot be reached") for peer in missed}

    def _take(self, sender: Address, packet: bytes, _: float | None) -> bool:
        with self._lock:
            if self._waiting > MOST_WAITING:
                return False
            self._waiting += len(packet)
        self._packets.put((sender, packet))
        return True

    def receive(self, timeout: float | None) -> tuple[Address, bytes] | None:
        """Return the next packet with its alleged sender; None after `timeout` or `wake`."""
        try:
            received = self._packets.get(timeout=timeout)
        except Empty:
            return None
        if self._end.is_closed:
            raise TransportError(
                "the process that carries this party's packets has ended, or has sent what is not "
                "a packet"
            )
        if received is not None:
            with self._lock:
                self._waiting -= len(received[1])
        return received

    def wake(self) -> None:
        """Let `receive` return None, now or when it is next called."""
        self._packets.put(None)

    def is_away(self, address: Address) -> bool:
        """Answer that nothing is known: a job has one process of each party."""
        del address
        return False

    def close(self) -> None:
        """Leave the network."""
        self._end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def carried_link() -> CarriedLink | None:
    """Return the link of a process that was started with a carrier; None without one."""
    descriptor = os.environ.get(DESCRIPTOR)
    return None if descriptor is None else CarriedLink(Connection(int(descriptor)))
