"""Messages that say which commitment or query they are for, and arrays that are packed into one.

Without the label, an analyst who asks the dealer for one table and the sites for another could make
a site subtract two corrections, and read the mask of another site's column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from vertibayes_mpc.errors import UnexpectedMessageError
from vertibayes_mpc.ring import Elements, Packed, Ring
from vertibayes_mpc.rounds import ArrayMessage, Expect, Party, Program, exchange
from vertibayes_mpc.sharing import checked, elements_of, unpacked_from

LABEL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Labelled(ArrayMessage):
    """Elements for one commitment or query: a party that runs another one refuses them."""

    label: bytes


L = TypeVar("L", bound=Labelled)


def check_label(message: Labelled, sender: Party, label: bytes) -> None:
    """Blame the sender of a message for another query."""
    if message.label != label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another query")


def labelled_elements(
    message: Labelled, sender: Party, ring: Ring, shape: tuple[int, ...], label: bytes
) -> Elements:
    """Return a message's elements, or blame its sender for another label or bytes."""
    check_label(message, sender, label)
    return elements_of(message, sender, ring, shape)


def expected(kind: type[L], ring: Ring, count: int) -> Expect[L]:
    """Return the bounds of a message of `count` elements and a label."""
    return Expect(kind, ring.packed_size(count) + LABEL_BYTES)


def receive(
    kind: type[Labelled], sender: Party, ring: Ring, shape: tuple[int, ...], label: bytes
) -> Program[Elements]:
    """Receive elements from one party."""
    expect = {sender: expected(kind, ring, math.prod(shape))}
    message = (yield from exchange({}, expect))[sender]
    return labelled_elements(message, sender, ring, shape, label)


def labelled_bytes(message: Labelled, sender: Party, size: int, label: bytes) -> Packed:
    """Return a message's packed elements, `size` bytes; see `labelled_elements`."""
    check_label(message, sender, label)
    return checked(message.values, sender, (size,), np.uint8, type(message).__name__)


class Piece(NamedTuple):
    """An array within a message: the ring of its elements, and its shape."""

    ring: Ring
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its number of bytes."""
        return self.ring.packed_size(math.prod(self.shape))


Layout: TypeAlias = Sequence[Piece]  # arrays, one after the other


def size_of(layout: Layout) -> int:
    """Return the number of bytes of all arrays of a layout."""
    return sum(piece.size for piece in layout)


def packed(layout: Layout, arrays: Iterable[Elements]) -> Packed:
    """Pack the arrays of a layout, one after the other."""
    pieces = [piece.ring.pack(array) for piece, array in zip(layout, arrays, strict=True)]
    return np.concatenate([np.zeros(0, np.uint8), *pieces])


def unpacked(layout: Layout, values: Packed, sender: Party) -> Iterator[Elements]:
    """Take packed arrays apart, one by one: the inverse of `packed`; blame the sender of others."""
    at = 0
    for ring, shape in layout:
        count = math.prod(shape)
        end = at + ring.packed_size(count)
        yield unpacked_from(sender, ring, values[at:end], count).reshape(shape)
        at = end


def exchange_arrays(
    kind: type[Labelled],
    label: bytes,
    outbox: Mapping[Party, Packed],
    layouts: Mapping[Party, Layout],
) -> Program[dict[Party, Iterator[Elements]]]:
    """Send packed arrays under a label, and return those that come: none in a round of nobody."""
    if not outbox and not layouts:
        return {}
    sizes = {sender: size_of(layout) for sender, layout in layouts.items()}
    expect = {sender: Expect(kind, size + LABEL_BYTES) for sender, size in sizes.items()}
    received = yield from exchange({to: kind(v, label) for to, v in outbox.items()}, expect)
    texts = {s: labelled_bytes(m, s, sizes[s], label) for s, m in received.items()}
    return {s: unpacked(layouts[s], text, s) for s, text in texts.items()}
