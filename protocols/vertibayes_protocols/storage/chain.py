"""The chain of a ledger: each line has a head, which depends on all lines up to it.

    head of no line = empty          head of line n = HMAC-SHA256(key, head of line n - 1, line n)

The key is 32 random bytes. The line that begins the chain has it, and it never leaves the site. A
site's memory and other sites keep heads: a ledger that lost or changed a line before such a head
has this head no more, and neither has an older copy of the ledger that was continued.

A head shows nothing of the lines: without the key it cannot be distinguished from random bytes,
even by a site that knows an earlier head and guesses each line that followed. A plain hash from a
random beginning would not do: whoever knows the head of line n could test guesses of line n + 1.
"""

from __future__ import annotations

import hmac

from vertibayes_mpc.randomness import KEY_BYTES, SystemRandomness

HEAD_BYTES = 32
SHORT = 16  # characters of the head that each line repeats of the line before it


class Chain:
    """The heads of a ledger's lines, since the line that began the chain."""

    def __init__(self, key: bytes = b"") -> None:
        if len(key) not in (0, KEY_BYTES):
            raise ValueError(f"the key of a chain must have {KEY_BYTES} bytes")
        self.key = key  # empty: an older release wrote the ledger, which has no chain
        self.head = b""  # of the last line
        self.writes = 0  # of the memory, when the last line was written
        self._lines: dict[bytes, int] = {}  # head -> number of the line

    @classmethod
    def new(cls) -> Chain:
        """Begin a chain with a key of its own."""
        return cls(SystemRandomness().bytes(KEY_BYTES))

    @property
    def lines(self) -> int:
        """How many lines the chain has."""
        return len(self._lines)

    @property
    def short(self) -> str:
        """What the next line repeats of the last head: it tells which line is missing."""
        return self.head.hex()[:SHORT]

    def add(self, line: bytes) -> None:
        """Add a line, without its end; it must be on disk."""
        self.head = hmac.digest(self.key, self.head + line, "sha256")
        self._lines[self.head] = len(self._lines) + 1

    def line_of(self, head: bytes) -> int:
        """Return the number of the line that has a head; 0 if no line has it."""
        return self._lines.get(head, 0)
