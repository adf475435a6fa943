"""A file that grows by whole entries: an entry that cannot be written leaves nothing behind.

A disk that fills in the middle of an entry would otherwise keep its first half, and the next entry
would continue it. A failed write is therefore cut back to the last whole entry. If the cut fails
too, the next write repeats it before it writes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from vertibayes_protocols.storage.whole_file import naming, sync


class GrowingFile:
    """An open file of whole entries."""

    def __init__(
        self, descriptor: int, path: Path, whole: int | None = None, head: bytes = b""
    ) -> None:
        self.path = path
        self._head = head
        self._descriptor = descriptor
        self._whole = os.fstat(descriptor).st_size if whole is None else whole

    def append(self, entry: bytes) -> None:
        """Write an entry, which is on disk when this returns."""
        with naming(self.path):
            self.cut()
            try:
                self._write(self._head + entry)
                os.fsync(self._descriptor)
                if self._whole == 0:  # the name of a new file, too
                    sync(self.path.parent)
            except BaseException:
                with suppress(OSError):  # the next entry repeats the cut
                    self.cut()
                raise
        self._whole += len(self._head + entry)
        self._head = b""

    def cut(self) -> None:
        """Cut off what follows the last whole entry."""
        size = os.fstat(self._descriptor).st_size
        if size < self._whole:
            raise ValueError(
                f"{self.path} has {size:,} bytes, and had {self._whole:,}: another program has "
                "shortened it; restore it and start again"
            )
        if size > self._whole:
            os.ftruncate(self._descriptor, self._whole)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _write(self, entry: bytes) -> None:
        at, rest = self._whole, memoryview(entry)
        while rest:
            count = os.pwrite(self._descriptor, rest, at)
            at, rest = at + count, rest[count:]
