"""The messages between sites, and from the dealer: elements that say what they are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mpc.errors import UnexpectedMessageError
from mpc.ring import Elements, Ring
from mpc.rounds import ArrayMessage, Message, Party
from mpc.sharing import elements_of

LABEL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Labelled(ArrayMessage):
    """Elements for one commitment or query: who runs another does not take them.

    Else an analyst who asks the dealer for one table and the sites for another would have a site
    subtract two corrections, and read the mask of another site's column.
    """

    label: bytes


@dataclass(frozen=True, slots=True)
class Masked(Labelled):
    """Columns under their masks: commitments, or terms put together."""

    kind: ClassVar[str] = "masked"


@dataclass(frozen=True, slots=True)
class Part(Labelled):
    """A holder's or the dealer's part of terms that another site puts together."""

    kind: ClassVar[str] = "part"


@dataclass(frozen=True, slots=True)
class Correction(Labelled):
    """The dealer's part of the correction of products."""

    kind: ClassVar[str] = "correction"


def labelled_elements(
    message: Message, sender: Party, ring: Ring, shape: tuple[int, ...], label: bytes
) -> Elements:
    """Return a message's elements, or blame its sender if they are not for this label.

    Raises
    ------
    UnexpectedMessageError, MalformedMessageError
        If they are for another commitment or query, or of a wrong shape.
    """
    assert isinstance(message, Labelled)  # the transport has checked the kind
    if message.label != label:
        raise UnexpectedMessageError(sender, f"{type(message).__name__} of another query")
    return elements_of(message, sender, ring, shape)
