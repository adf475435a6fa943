"""The messages of a shuffle: vectors of ring elements, packed one after the other into bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.labelled import LABEL_BYTES, Labelled, labelled_bytes
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import ArrayMessage, Expect, Party


@dataclass(frozen=True, slots=True)
class Noise(Labelled):
    """A holder's noise on the flags of missing values, for the first of the chain."""

    kind: ClassVar[str] = "noise"


@dataclass(frozen=True, slots=True)
class Shuffled(Labelled):
    """Codes and tags, in a holder's order, for the next of the chain."""

    kind: ClassVar[str] = "shuffled"


@dataclass(frozen=True, slots=True)
class Masks(Labelled):
    """From the dealer: what the masks add to the codes, and to the tags, at the chain's end."""

    kind: ClassVar[str] = "shuffled masks"


@dataclass(frozen=True, slots=True)
class Tags(Labelled):
    """The masked tags at the chain's end, for all holders."""

    kind: ClassVar[str] = "tags"


@dataclass(frozen=True, slots=True)
class Codes(ArrayMessage):
    """A holder's shares of the codes, or the cells of a table that it counted by itself.

    `complete` has the number of revealed records of each table in which records drop out. Zeros pad
    the shares of these tables, so that the size of the message does not reveal this number.
    """

    kind: ClassVar[str] = "codes"
    complete: NDArray[np.uint32] = field(repr=False)


L = TypeVar("L", bound=Labelled)


def packed(vectors: Iterable[tuple[Ring, Elements]]) -> NDArray[np.uint8]:
    """Pack vectors, each in its ring, one after the other."""
    pieces = [ring.pack(vector) for ring, vector in vectors]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)


def expected(kind: type[L], rings: Sequence[Ring], records: int) -> Expect[L]:
    """Return the bounds of a message of vectors."""
    return Expect(kind, sum(ring.bytes for ring in rings) * records + LABEL_BYTES)


def vectors_of(
    message: Labelled, sender: Party, rings: Sequence[Ring], records: int, label: bytes
) -> Iterator[Elements]:
    """Unpack the vectors of a message, or blame its sender."""
    size = sum(ring.bytes for ring in rings) * records
    values, at = labelled_bytes(message, sender, size, label), 0
    for ring in rings:
        yield ring.unpack(values[at : at + ring.bytes * records])
        at += ring.bytes * records
