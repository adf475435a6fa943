"""Files that are written whole or not at all, and files that one process at a time may use.

No other module of the packages locks files. Windows has neither `fcntl` nor `O_NOFOLLOW`: this
module can be imported there, but `lock` fails.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)  # a symbolic link may be another user's


class InUseError(ValueError):
    """Another process uses a file."""


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


def check_own(path: Path) -> None:
    """Refuse, with a ValueError, a file that other users may write, or replace in its folder."""
    for own in (path, path.parent):
        if own.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError(f"{own}: other users may write to it: chmod go-w {own}")


def lock(descriptor: int, path: Path) -> None:
    """Lock an open file for this process until the file is closed."""
    try:
        import fcntl
    except ImportError:
        raise ValueError(f"{path} cannot be locked on this system: use Linux or macOS") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InUseError(f"{path} is in use by another process") from None


def is_locked(descriptor: int) -> bool:
    """Whether another process has locked an open file; several may ask at the same time."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file, which only its owner can read; it is on disk when this returns."""
    with naming(path):
        with replacing(path) as part, os.fdopen(open_own(part, os.O_TRUNC), "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # also if an old part exists
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
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
