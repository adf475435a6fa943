"""The messages of lookups: arrays of ring elements, of all batches of a part, packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.ring import Elements, Ring

Packed: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Masked(Labelled):
    """What a site sends in a round of lookups: counts, factors or products under masks."""

    kind: ClassVar[str] = "lookup"


@dataclass(frozen=True, slots=True)
class Dealt(Labelled):
    """From the dealer: one-hot vectors and products of masks, of all lookups of a part."""

    kind: ClassVar[str] = "lookup masks"


class Piece(NamedTuple):
    """An array within a message."""

    ring: Ring
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its number of bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.ring.bytes


Layout: TypeAlias = tuple[Piece, ...]  # arrays, one after the other


def size_of(layout: Layout) -> int:
    """Return the number of bytes of all arrays of a layout."""
    return sum(piece.size for piece in layout)


def packed(layout: Layout, arrays: Sequence[Elements]) -> Packed:
    """Pack the arrays of a layout, one after the other."""
    pieces = [p.ring.pack(array) for p, array in zip(layout, arrays, strict=True)]
    return np.concatenate(pieces)


def unpacked(layout: Layout, values: Packed) -> list[Elements]:
    """Take packed arrays apart: the inverse of `packed`, of as many bytes as `size_of`."""
    arrays, at = [], 0
    for piece in layout:
        arrays.append(piece.ring.unpack(values[at : at + piece.size]).reshape(piece.shape))
        at += piece.size
    return arrays
