"""A link whose bytes are counted, for a monitor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.transports.mailbox import Address, Link


@dataclass
class Moved:
    """The bytes of packets that a party has sent and received; threads may miss a few."""

    sent: int = 0
    received: int = 0


class CountedLink(Link):
    """Passes on what another link does, and counts the bytes."""

    def __init__(self, link: Link, moved: Moved) -> None:
        self._link, self._moved = link, moved

    def deliver(
        self, packets: Mapping[Address, bytes], patience: float | None
    ) -> Mapping[Address, PeerGoneError]:
        """Deliver packets."""
        self._moved.sent += sum(map(len, packets.values()))
        return self._link.deliver(packets, patience)

    def receive(self, timeout: float | None) -> tuple[Address, bytes] | None:
        """Return the next packet."""
        received = self._link.receive(timeout)
        self._moved.received += 0 if received is None else len(received[1])
        return received

    def wake(self) -> None:
        """Let `receive` return."""
        self._link.wake()

    def is_away(self, address: Address) -> bool:
        """Ask the network."""
        return self._link.is_away(address)

    def close(self) -> None:
        """Leave the network."""
        self._link.close()
