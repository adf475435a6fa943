"""Big integers on the wire: arrays of bytes, little-endian, all integers of one width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.paillier.keys import PublicKey
from vertibayes_mpc.rounds import Expect, Message, Party
from vertibayes_mpc.sharing import checked

LABEL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Integers(Message):
    """Integers: an array of shape (count, width), dtype uint8, under the plan's digest."""

    label: bytes
    values: NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, slots=True)
class EncryptedBlock(Integers, kind="paillier block"):
    """The encrypted column of a block of records, of which `start` is the first."""

    start: int


class Answer(Integers, kind="paillier answer"):
    """Packed counts under masks, encrypted: one ciphertext for each of the sender's states."""


class MaskedCounts(Integers, kind="paillier counts"):
    """Packed counts under masks modulo N."""


class Masks(Integers, kind="paillier masks"):
    """The masks."""


def to_bytes(integers: Sequence[int], width: int) -> NDArray[np.uint8]:
    """Return integers as an array of shape (count, width), dtype uint8."""
    joined = b"".join(int(value).to_bytes(width, "little") for value in integers)
    return np.frombuffer(joined, np.uint8).reshape(len(integers), width)


N = TypeVar("N", bound=Integers)


def expect(kind: type[N], count: int, width: int) -> Expect[N]:
    """Return what may come: a label, and integers."""
    return Expect(kind, LABEL_BYTES + max(count * width, 1))


def ciphertexts_of(
    message: Integers, sender: Party, label: bytes, count: int, public: PublicKey
) -> list[int]:
    """Return a message's ciphertexts, below N^2 and coprime to N, or blame its sender."""
    ciphertexts = _integers(message, sender, label, count, public.ciphertext_bytes)
    return _checked(public.check_ciphertexts, ciphertexts, sender)


def plaintexts_of(
    message: Integers, sender: Party, label: bytes, count: int, public: PublicKey
) -> list[int]:
    """Return a message's integers modulo N, or blame its sender."""
    plaintexts = _integers(message, sender, label, count, public.plaintext_bytes)
    return _checked(public.check_plaintexts, plaintexts, sender)


def _checked(check: Callable[[list[int]], None], integers: list[int], sender: Party) -> list[int]:
    try:
        check(integers)
    except ValueError as error:
        raise MalformedMessageError(sender, str(error)) from None
    return integers


def _integers(message: Integers, sender: Party, label: bytes, count: int, width: int) -> list[int]:
    if message.label != label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another table")
    rows = checked(message.values, sender, (count, width), np.uint8, type(message).__name__)
    return [int.from_bytes(row.tobytes(), "little") for row in rows]
