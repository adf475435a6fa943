"""What a running party tells: one line an event, `time party event key=value`.

Only names, numbers and reasons that any party may read are passed on, never an object: so no line
can hold a key, a record, an identifier or a cell. The standard library's logging carries them,
since the transport's library writes there too and one level then rules both.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import TypeAlias

from mpc.rounds import Party
from protocols.parties import Considered
from protocols.session import Answer, AnyQuery

LOG = logging.getLogger("vertibayes")
TRANSPORT = logging.getLogger("nvflare")

Tell: TypeAlias = Callable[..., None]  # tell("event", name=value, ...)

FORMAT = "%(asctime)s %(message)s"


def start_log(party: Party, *, quiet: bool = False) -> None:
    """Write a party's events to standard error; of other libraries warnings alone."""
    logging.basicConfig(stream=sys.stderr, format=FORMAT, level=logging.WARNING, force=True)
    LOG.setLevel(logging.WARNING if quiet else logging.INFO)
    TRANSPORT.setLevel(logging.INFO)
    TRANSPORT.propagate, TRANSPORT.handlers = False, [_Connection(party)]


class _Connection(logging.Handler):
    """Says once that the relay is not there, and once that it is again.

    The transport's own words are for its makers, and come anew every few seconds; what they mean
    for a session is told by its error.
    """

    def __init__(self, party: Party) -> None:
        super().__init__()
        self.party, self._waiting = party, False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if " ACTIVE " in text and " failed " in text and not self._waiting:
            self._waiting = True
            LOG.warning("%s", line(self.party, "waiting for the relay"))
        elif text.startswith("Connection ") and " is created" in text and self._waiting:
            self._waiting = False
            LOG.warning("%s", line(self.party, "connected again"))


def teller(party: Party) -> Tell:
    """Return what writes a party's events."""

    def tell(event: str, **facts: str | int | tuple[str, ...]) -> None:
        LOG.info("%s", line(party, event, **facts))

    return tell


def line(party: Party, event: str, **facts: str | int | tuple[str, ...]) -> str:
    """Return an event as a line.

    Raises
    ------
    TypeError
        If a fact is no text, number or tuple of texts: other things may show what they hold.
    """
    return " ".join([party, event, *(f"{name}={_shown(value)}" for name, value in facts.items())])


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_shown(item) for item in value)
    if type(value) not in (str, int):
        raise TypeError(f"a {type(value).__name__} is not written to a log")
    text = str(value)
    return text if text.replace("-", "").replace("_", "").isalnum() else json.dumps(text)


def considered(tell: Tell) -> Considered:
    """Return what logs which queries were agreed to and which were refused, and why."""

    def note(query: AnyQuery, answer: Answer) -> None:
        if answer.agreed:
            tell("agreed", query=query.kind)
        else:
            tell("refused", query=query.kind, reason=answer.reason)

    return note
