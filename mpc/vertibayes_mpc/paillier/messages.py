"""Big integers on the wire: arrays of bytes, little-endian, all integers of one width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect, Message, Party
from vertibayes_mpc.sharing import checked

LABEL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Integers(Message):
    """Integers: an array of shape (count, width), dtype uint8, under the label of a step."""

    label: bytes
    values: NDArray[np.uint8] = field(repr=False)


class EncryptedColumns(Integers, kind="paillier columns"):
    """Encrypted columns, one after the other: a ciphertext for each record."""


class Answer(Integers, kind="paillier answer"):
    """Packed counts under masks, encrypted."""


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


def integers_of(
    message: Integers, sender: Party, label: bytes, count: int, width: int
) -> list[int]:
    """Return a message's integers, or blame its sender."""
    if message.label != label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another table or step")
    rows = checked(message.values, sender, (count, width), np.uint8, type(message).__name__)
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def checked_by(check: Callable[[list[int]], None], integers: list[int], sender: Party) -> list[int]:
    """Return integers that a key accepts as ciphertexts or plaintexts, or blame their sender."""
    try:
        check(integers)
    except ValueError as error:
        raise MalformedMessageError(sender, str(error)) from None
    return integers
