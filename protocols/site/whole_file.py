"""A file that is written whole or not at all, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InUseError(ValueError):
    """Another process holds a file."""


class WholeFile:
    """A file of its owner's alone; it is locked while this object is open.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InUseError
        If another process holds it.
    ValueError
        If others may write to its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        mode = path.parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ValueError(f"{path}: others may write to its folder: chmod o-w {path.parent}")
        self._lock = _open(path.with_name(path.name + ".lock"))
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise InUseError(f"{path} is in use by another process") from None

    def write(self, content: bytes) -> None:
        """Replace the content; it is on disk when this returns."""
        with naming(self.path):
            self._write(content)

    def _write(self, content: bytes) -> None:
        part = self.path.with_name(self.path.name + ".part")
        with os.fdopen(_open(part, os.O_TRUNC), "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # also if an old part was there
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def close(self) -> None:
        """Let another process use the file."""
        os.close(self._lock)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an OSError name the file: that of a full disk names none."""
    try:
        yield
    except OSError as error:
        if error.strerror is not None and error.filename is None:
            error.filename = str(path)
        raise


def _open(path: Path, flags: int = 0) -> int:
    """Open a file to write, and follow no link that somebody else has laid there."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)
