"""The machine's calendar: it dates what is written into files and what machines compare.

How long a party waits is not its matter: that is the clock of a `Mailbox`, which nobody can set. A
simulation replaces `time_ns` here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from time import time_ns as time_ns


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.fromtimestamp(time_ns() / 1e9, UTC)
