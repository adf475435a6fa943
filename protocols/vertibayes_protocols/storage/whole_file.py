"""A party's files: written whole or not at all, for one process at a time, and of a known format.

No other module of the packages locks files. Windows has neither `fcntl` nor `O_NOFOLLOW`: this
module can be imported there, but `lock` fails.

A file that grows (`GrowingFile`) does so by whole entries. A disk that fills in the middle of an
entry would otherwise keep its first half, and the next entry would continue it. A failed write is
therefore cut back to the last whole entry. If the cut fails too, the next write repeats it before
it writes.

Each file says its format, as a number. A file without a number is of release 0.1.0 or older, and
has format 0. It is read, and has the current format from its next write on. No copy of the old file
is kept: a party that went back to it would have forgotten what it has answered for since. A format
rises with each change that an older release must not ignore; an older release refuses the file and
asks for the newer release.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

OLDEST = 0  # the format of a file that does not say it
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)  # a symbolic link may be another user's


class InUseError(ValueError):
    """Another process uses a file."""


class NewerFormatError(ValueError):
    """A file was written by a newer release."""


def check_format(path: Path, given: object, newest: int) -> int:
    """Return the format of a file, or refuse it."""
    if type(given) is not int or given < OLDEST:
        raise ValueError(f"the format of {path} must be a whole number, got {given!r:.20}")
    if given > newest:
        raise NewerFormatError(
            f"{path} was written by a newer release of vertibayes (format {given}, this release "
            f"reads formats up to {newest}): install the newer release again"
        )
    return given


def noted(notes: Mapping[str, Any], **arrays: Any) -> bytes:
    """Return the content of a file of arrays, with notes that are JSON data."""
    buffer = io.BytesIO()
    np.savez(buffer, notes=np.frombuffer(json.dumps(notes).encode(), np.uint8), **arrays)
    return buffer.getvalue()


@contextmanager
def read_noted(path: Path, newest: int, fault: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the notes and the arrays of a file; what the block cannot read is a ValueError."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            notes = json.loads(file["notes"].tobytes())
            check_format(path, notes.get("format", OLDEST), newest)
            yield notes, file
    except NewerFormatError:
        raise
    except Exception as error:  # a damaged file can raise any error
        raise ValueError(f"{path} {fault}: {error}") from None


class WholeFile:
    """A file that only its owner can read; it is locked while this object is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        mode = path.parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ValueError(f"{path}: others may write to its folder: chmod o-w {path.parent}")
        self._lock = open_own(path.with_name(path.name + ".lock"))
        try:
            lock(self._lock, path)
        except BaseException:
            os.close(self._lock)
            raise

    def write(self, content: bytes) -> None:
        """Replace the content; it is on disk when this returns."""
        write_whole(self.path, content)

    def close(self) -> None:
        """Unlock the file for other processes."""
        os.close(self._lock)


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


def check_own(path: Path) -> None:
    """Refuse, with a ValueError, a file that other users may write, or replace in its folder."""
    for own in (path, path.parent):
        if own.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError(f"{own}: other users may write to it: chmod go-w {own}")


def lock(descriptor: int, path: Path) -> None:
    """Lock an open file for this process until the file is closed."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        raise ValueError(f"{path} cannot be locked on this system: use Linux or macOS") from None
    except OSError:
        raise InUseError(f"{path} is in use by another process") from None


def is_locked(descriptor: int) -> bool:
    """Whether another process has locked an open file; several may ask at the same time."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def write_whole(path: Path, content: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Replace a file, which others may read if `mode` says so; if `durable`, it is then on disk."""
    with naming(path):
        with replacing(path) as part, os.fdopen(open_own(part, os.O_TRUNC), "wb") as file:
            os.fchmod(file.fileno(), mode)  # also if an old part exists
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if durable:
            sync(path.parent)


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_study(descriptor: int, path: Path) -> None:
    """Lock a file of an analyst's study; raises as `lock`, and says what to do."""
    try:
        lock(descriptor, path)
    except InUseError as error:
        raise InUseError(f"{error}, which runs this study: wait until it has ended") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a new file, which replaces `path` when the block has written it.

    If the block fails, the new file is removed and `path` is unchanged. An OSError names `path`.
    What has the name of the new file before is removed: a link may lead to any file.
    """
    part = path.with_name(path.name + ".part")
    try:
        with naming(path):
            part.unlink(missing_ok=True)
            yield part
            part.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in {part, str(part)}:
            error.filename, error.filename2 = str(path), None
        with suppress(OSError):  # the error of the block says more
            part.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError without one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.strerror is not None and error.filename is None:
            error.filename = str(path)
        raise


def create_own(path: Path) -> BinaryIO:
    """Create a file that only its owner can read; raises FileExistsError for a file or a link."""
    return path.open("xb") if os.name == "nt" else os.fdopen(open_own(path, os.O_EXCL), "wb")


def open_own(path: Path, flags: int = 0) -> int:
    """Open a file to write, and do not follow a symbolic link that another user may have made."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | NOFOLLOW | flags, 0o600)
