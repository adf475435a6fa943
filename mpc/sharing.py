"""Additive shares: opening a sum to one party, and the zero shares that hide its summands.

    P -> analyst    v_P + Z_P        Z_P = sum_{Q>P} F(k_PQ, label) - sum_{Q<P} F(k_PQ, label)
    analyst         sum_P (v_P + Z_P) = sum_P v_P,  since the Z_P add up to zero

Security: honest-but-curious. What a set of parties and the analyst learn is the sum of the values
of the others, as long as these share keys that the set does not know. One label, one vector: a
label used for two vectors shows the difference of a party's values.
Leakage: the sum, its length. Cost: 1 round, one vector from each party.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpc.errors import MalformedMessageError
from mpc.randomness import Stream
from mpc.ring import Elements, Ring
from mpc.rounds import ArrayMessage, Expect, Party, Program, Round


@dataclass(frozen=True, slots=True)
class Share(ArrayMessage):
    """An additive share: those of all parties sum to the value."""

    kind: ClassVar[str] = "share"


def zero_share(
    party: Party, peers: Mapping[Party, Stream], ring: Ring, name: bytes, count: int
) -> Elements:
    """Return this party's share of `count` zeros.

    Parameters
    ----------
    party : Party
        Whose share it is.
    peers : mapping of Party to Stream
        The keys it has with each other party of the sum.
    ring : Ring
    name : bytes
        The label, the same at all parties, used for nothing else.
    count : int

    Returns
    -------
    share : ndarray of shape (count,), dtype `ring.dtype`
    """
    share = np.zeros(count, ring.dtype)
    for peer, key in peers.items():
        add = np.add if peer > party else np.subtract
        add(share, key.elements(ring, name, (count,)), out=share)
    return ring.reduce(share)


def send_share(values: Elements, to: Party) -> Program[None]:
    """Hand one's share of a vector to the party that opens it."""
    yield Round({to: Share(values)}, {})


def open_sum(parties: Sequence[Party], ring: Ring, count: int) -> Program[Elements]:
    """Open a vector of `count` elements from the shares of `parties`.

    Raises
    ------
    MalformedMessageError
        If a share has another length or type; it names the party.
    """
    inbox = yield Round({}, {party: Expect(Share, count) for party in parties})
    total = np.zeros(count, ring.dtype)
    for party in parties:
        total = total + elements_of(inbox[party], party, ring, (count,))
    return ring.reduce(total)


def elements_of(message: object, sender: Party, ring: Ring, shape: tuple[int, ...]) -> Elements:
    """Return a message's elements, or blame its sender for a wrong shape, type or range."""
    assert isinstance(message, ArrayMessage)  # the transport has checked the kind
    values = message.values
    if values.shape != shape or values.dtype != ring.dtype:
        raise MalformedMessageError(
            sender,
            f"{type(message).__name__} of shape {values.shape} and type {values.dtype}, "
            f"wanted {shape} and {ring.dtype}",
        )
    return ring.reduce(values)
