"""Party programs: protocols as generators that perform no input or output.

A program is deterministic in (private input, randomness, inbox). It yields a `Round`, sleeps until
the messages it expects have come, and returns the party's output. Programs compose with
``yield from``; a transport moves the messages and knows nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Party: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Message:
    """What travels: a frozen dataclass of int, bool, str, bytes, ndarray and tuples of these.

    `kind` is the class's name on the wire. Values that may be secret are declared with
    ``field(repr=False)`` by the subclasses.
    """

    kind: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class ArrayMessage(Message):
    """Ring elements, one array; the subclasses say what they are."""

    values: NDArray[np.unsignedinteger] = field(repr=False)


class Expect(NamedTuple):
    """What may come from a peer: the kind, and at most `cells` array elements and characters."""

    kind: type[Message]
    cells: int = 64


@dataclass(frozen=True, slots=True)
class Round:
    """Deliver `outbox` now; resume once every party in `expect` was heard.

    Parameters
    ----------
    outbox : mapping of Party to Message
        At most one message a receiver and round.
    expect : mapping of Party to Expect
        Who must be heard, and what may come.
    need : int, optional
        None, all of `expect`: a party that is gone is an error. Else go on without the gone, once
        all others, and at least `need`, were heard: the inbox has those alone.
    idle : bool, default=False
        No time-out: a site between two queries. Every other wait has the transport's time-out.
    """

    outbox: Mapping[Party, Message]
    expect: Mapping[Party, Expect]
    need: int | None = None
    idle: bool = False

    @property
    def needed(self) -> int:
        """How many must be heard."""
        return len(self.expect) if self.need is None else self.need


R = TypeVar("R")
Inbox: TypeAlias = Mapping[Party, Message]
Program: TypeAlias = Generator[Round, Inbox, R]
