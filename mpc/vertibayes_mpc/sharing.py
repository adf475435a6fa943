"""Additive shares: a sum revealed to one party, and the zero shares that hide its summands.

    P -> analyst    v_P + Z_P    Z_P = sum_{Q > P} F(k_PQ, label) - sum_{Q < P} F(k_PQ, label)
    analyst         sum_P (v_P + Z_P) = sum_P v_P,  since the Z_P add up to zero

Security: honest-but-curious. A set of parties and the analyst learn the sum of the values of the
other parties, as long as these share keys that the set does not know. Each label is for one vector:
a label used for two vectors shows the difference of a party's values.
Leakage: the sum, its length.
Cost: 1 round, one vector from each party.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.ring import Elements, Packed, Ring
from vertibayes_mpc.rounds import ArrayMessage, Expect, Party, Program, exchange, send

A = TypeVar("A", bound=NDArray[Any])


class Share(ArrayMessage, kind="share"):
    """An additive share: those of all parties sum to the value."""


def zero_share(
    party: Party, peers: Mapping[Party, Stream], ring: Ring, label: bytes, count: int
) -> Elements:
    """Return this party's share of `count` zeros."""
    share = np.zeros(count, ring.dtype)
    for peer, key in peers.items():
        add = np.add if peer > party else np.subtract
        add(share, key.elements(ring, label, (count,)), out=share)
    return ring.reduce(share)


def send_share(values: Elements, ring: Ring, to: Party) -> Program[None]:
    """Send this party's share of a vector to the party that opens it."""
    yield from send({to: Share(ring.pack(values))})


def open_sum(parties: Sequence[Party], ring: Ring, count: int) -> Program[Elements]:
    """Collect the shares of `parties` and add them up."""
    shares = yield from exchange(
        {}, dict.fromkeys(parties, Expect(Share, max(ring.packed_size(count), 1)))
    )
    total = np.zeros(count, ring.dtype)
    for party in parties:
        total = total + elements_of(shares[party], party, ring, (count,))
    return ring.reduce(total)


def elements_of(
    message: ArrayMessage, sender: Party, ring: Ring, shape: tuple[int, ...]
) -> Elements:
    """Return a message's elements, or blame its sender for bytes that `Ring.pack` does not give."""
    count, what = math.prod(shape), type(message).__name__
    packed = checked(message.values, sender, (ring.packed_size(count),), np.uint8, what)
    return unpacked_from(sender, ring, packed, count).reshape(shape)


def unpacked_from(sender: Party, ring: Ring, packed: Packed, count: int) -> Elements:
    """Unpack elements, or blame the sender of the bytes."""
    try:
        return ring.unpack(packed, count)
    except ValueError as error:
        raise MalformedMessageError(sender, str(error)) from None


def checked(
    array: A, sender: Party, shape: tuple[int, ...], dtype: DTypeLike, what: str = "an array"
) -> A:
    """Return an array, or blame its sender for another shape or type."""
    if array.shape != shape or array.dtype != dtype:
        came, expected = f"{array.shape} and type {array.dtype}", f"{shape} and {np.dtype(dtype)}"
        raise MalformedMessageError(sender, f"{what} of shape {came}; expected {expected}")
    return array
