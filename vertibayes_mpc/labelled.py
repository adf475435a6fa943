"""Messages that say which commitment or query they are for.

Without the label, an analyst who asks the dealer for one table and the sites for another could make
a site subtract two corrections, and read the mask of another site's column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import UnexpectedMessageError
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import ArrayMessage, Party
from vertibayes_mpc.sharing import elements_of

LABEL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Labelled(ArrayMessage):
    """Elements for one commitment or query: a party that runs another one refuses them."""

    label: bytes


def labelled_elements(
    message: Labelled, sender: Party, ring: Ring, shape: tuple[int, ...], label: bytes
) -> Elements:
    """Return a message's elements, or blame its sender for another label, shape or type."""
    if message.label != label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another query")
    return elements_of(message, sender, ring, shape)


def labelled_bytes(message: Labelled, sender: Party, size: int, label: bytes) -> NDArray[np.uint8]:
    """Return a message's packed elements, `size` bytes; see `labelled_elements`."""
    packed = labelled_elements(message, sender, Ring(8), (size,), label)
    return packed.astype(np.uint8, copy=False)
