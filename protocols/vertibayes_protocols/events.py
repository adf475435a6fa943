"""Events of a running party: a name, with facts that any party may read. The log has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Fact: TypeAlias = str | int | tuple[str, ...]
Tell: TypeAlias = Callable[..., None]  # tell("event", name=value, ...)

CONNECTED = "connected"  # a party to the relay,
WAITING, AGAIN = "waiting for the relay", "connected again"  # which is away, and is back


def silent(*_: object, **__: object) -> None:
    """Log nothing."""
