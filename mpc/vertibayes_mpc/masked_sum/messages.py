"""The messages of a sum. Each carries the label of its plan; other sums refuse it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.masked_sum.plan import SumPlan
from vertibayes_mpc.randomness import KEY_BYTES
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Expect, Message, Party
from vertibayes_mpc.shamir import SHARE_BYTES
from vertibayes_mpc.signing import SIGNATURE_BYTES

Places: TypeAlias = NDArray[np.uint32]
Rows: TypeAlias = NDArray[np.uint8]

DIGEST_BYTES = 32
KEYS_BYTES = 2 * KEY_BYTES
DIGESTS_BYTES = 2 * DIGEST_BYTES
SEALED_BYTES = 2 * SHARE_BYTES + 16
OTHER_CELLS = 64  # the label, and one each for arrays that are empty


@dataclass(frozen=True, slots=True)
class SumMessage(Message):
    """A message of the sum whose plan has the label `context`."""

    context: bytes


@dataclass(frozen=True, slots=True)
class Advertisement(SumMessage, kind="sum-advertisement"):
    """A party's public keys for this sum, signed: for masks, and for sealing shares."""

    mask_key: bytes
    seal_key: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Keys(SumMessage, kind="sum-keys"):
    """All advertised keys: row by row, of the parties at these places."""

    places: Places
    keys: Rows
    signatures: Rows


@dataclass(frozen=True, slots=True)
class Shared(SumMessage, kind="sum-shared"):
    """Shares of a party's seeds sealed for each member of its neighbourhood, and their digests."""

    sealed: Rows
    digests: Rows


@dataclass(frozen=True, slots=True)
class Delivered(SumMessage, kind="sum-delivered"):
    """Who shared, and what those in the receiver's neighbourhood sealed for it."""

    sharers: Places
    sealed: Rows
    digests: Rows


@dataclass(frozen=True, slots=True)
class MaskedVector(SumMessage, kind="sum-masked"):
    """A party's vector under its masks."""

    values: Elements = field(repr=False)


@dataclass(frozen=True, slots=True)
class Survivors(SumMessage, kind="sum-survivors"):
    """Whose masked vectors arrived: whose sum it will be."""

    survivors: Places


@dataclass(frozen=True, slots=True)
class Confirmation(SumMessage, kind="sum-confirmation"):
    """A survivor's signature on all lists that it received."""

    signature: bytes


@dataclass(frozen=True, slots=True)
class Confirmations(SumMessage, kind="sum-confirmations"):
    """The signatures of the survivors."""

    signers: Places
    signatures: Rows


@dataclass(frozen=True, slots=True)
class Revealed(SumMessage, kind="sum-revealed"):
    """One share of each sharer in a party's neighbourhood: of its self-mask's seed, or its key."""

    shares: Rows = field(repr=False)


M = TypeVar("M", bound=SumMessage)


def expected(kind: type[M], plan: SumPlan) -> Expect[M]:
    """Return the bounds of a message of a sum."""
    parties, members, keys = len(plan.parties), plan.neighbourhood.degree + 1, 2 * KEY_BYTES
    cells: dict[type[SumMessage], int] = {
        Advertisement: keys + SIGNATURE_BYTES,
        Keys: parties * (1 + keys + SIGNATURE_BYTES),
        Shared: members * (SEALED_BYTES + DIGESTS_BYTES),
        Delivered: parties + members * (SEALED_BYTES + DIGESTS_BYTES),
        MaskedVector: plan.length,
        Survivors: parties,
        Confirmation: SIGNATURE_BYTES,
        Confirmations: parties * (1 + SIGNATURE_BYTES),
        Revealed: members * SHARE_BYTES,
    }
    return Expect(kind, OTHER_CELLS + cells[kind])


def of_sum(message: M, sender: Party, plan: SumPlan) -> M:
    """Return a message, or blame its sender if it is of another sum."""
    if message.context != plan.label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another sum")
    return message


def list_of(places: Places, sender: Party, within: Places) -> Places:
    """Return a list of parties, or blame its sender for a wrong one."""
    if places.ndim != 1 or places.dtype != np.uint32 or np.any(places[1:] <= places[:-1]):
        raise MalformedMessageError(sender, "a list of parties does not have ascending places")
    if not np.isin(places, within).all():
        raise MalformedMessageError(sender, "a list names parties who were not in the last list")
    return places


def as_rows(rows: list[bytes], width: int) -> Rows:
    """Return byte strings of one width as an array."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)


def places_of(by_place: Iterable[int]) -> Places:
    """Return ascending places as an array."""
    return np.fromiter(by_place, np.uint32)
