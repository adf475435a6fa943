"""The disks of a simulation: what is written, what is synced, and what a crash leaves of it.

The parties' files lie in memory-backed folders, so that the product reads them as it reads any. All
calls of the system by which it changes them go through `Disk`. A process that is killed loses
nothing that it has written. A machine that loses its power keeps what was synced; of the rest, it
keeps some: names up to any point, and of a file's end any part.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

REAL = {
    name: getattr(os, name)
    for name in ("open", "close", "fstat", "fchmod", "fdopen", "fsync", "ftruncate", "pwrite",
                 "replace", "unlink", "write")
}  # fmt: skip
REAL_FLOCK = fcntl.flock
FIRST = 1 << 30
DESCRIPTORS = count(FIRST)  # none comes again, in any world


class Inode:
    """A file, whatever its name."""

    def __init__(self):
        self.content = bytearray()
        self.durable = b""


class Open:
    """An open file."""

    def __init__(self, disk, name, inode, real):
        self.disk, self.name, self.inode, self.real = disk, name, inode, real


class Disk:
    """The folder of one party."""

    def __init__(self, folder, party):
        self.folder, self.party = folder, party
        folder.mkdir(mode=0o700)
        self.names, self.synced, self.pending = {}, {}, []
        self.open, self.locks = {}, {}
        self.full, self.torn = 0.0, None  # until when; how much of the next write is kept
        self.backups = []

    @property
    def process(self):
        return self.party.process

    def act(self, what):
        """Come to a point; refuse the files of a process that is dead."""
        if self.process is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.process.world.point(self.process, what)

    # ---- files -----------------------------------------------------------------------------------

    def open_file(self, name, flags):
        inode = self.names.get(name)
        if inode is not None and flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        if inode is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            self.act(f"creates {name}")
            inode = self.names[name] = Inode()
            self.pending.append((name, inode))
        if flags & os.O_TRUNC:
            inode.content.clear()
        how = os.O_RDWR | os.O_CREAT | flags & os.O_TRUNC
        real = REAL["open"](self.folder / name, how, 0o600)
        return Open(self, name, inode, real)

    def write(self, file, data, at):
        self.act(f"writes {len(data)} bytes of {file.name}")
        fits = len(data)
        if self.process.world.time < self.full:
            fits = len(data) // 3
        if self.torn is not None:
            fits = int(len(data) * self.torn)
        file.inode.content[at : at + fits] = data[:fits]
        REAL["pwrite"](file.real, bytes(data[:fits]), at)
        if self.torn is not None:
            self.torn, process = None, self.process
            self.party.crash(power=True)
            process.check()
        if fits < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return fits

    def truncate(self, file, length):
        self.act(f"cuts {file.name}")
        del file.inode.content[length:]
        REAL["ftruncate"](file.real, length)

    def sync(self, file):
        if file.inode is None:
            self.act("syncs names")
            self.synced, self.pending = dict(self.names), []
        else:
            self.act(f"syncs {file.name}")
            file.inode.durable = bytes(file.inode.content)
            self.party.synced(file.name)

    def replace(self, old, new):
        self.act(f"renames {old} to {new}")
        inode = self.names.pop(old)
        self.names[new] = inode
        self.pending.append((old, None))
        self.pending.append((new, inode))
        REAL["replace"](self.folder / old, self.folder / new)

    def unlink(self, name):
        if name not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        self.act(f"removes {name}")
        del self.names[name]
        self.pending.append((name, None))
        REAL["unlink"](self.folder / name)

    # ---- crashes ---------------------------------------------------------------------------------

    def crash(self, power, draw):
        """Close the files of a process that ended; a loss of power takes what was not synced."""
        for file in self.open.values():
            REAL["close"](file.real)
        self.open, self.locks, self.torn = {}, {}, None
        if not power:
            return
        names = dict(self.synced)
        for name, inode in self.pending[: draw.randint(0, len(self.pending))]:
            names.pop(name, None)
            if inode is not None:
                names[name] = inode
        self._put({name: self._left(inode, draw) for name, inode in names.items()})

    @staticmethod
    def _left(inode, draw):
        """Return what a loss of power leaves of a file."""
        written, synced = bytes(inode.content), inode.durable
        if not written.startswith(synced):
            return draw.choice((written, synced))
        return written[: draw.randint(len(synced), len(written))]

    def keep_backup(self):
        """Copy the files, as a backup of a running party's folder does."""
        self.backups.append({name: bytes(i.content) for name, i in self.names.items()})

    def restore(self, files):
        """Put the files of a backup in place of those that are there."""
        self._put(files)

    def lasting(self, name):
        """Return what a loss of power at this moment would certainly leave of a file."""
        inode = self.synced.get(name)
        return b"" if inode is None else inode.durable

    def _put(self, files):
        for path in self.folder.iterdir():
            REAL["unlink"](path)
        self.names, self.pending = {}, []
        for name, content in files.items():
            inode = self.names[name] = Inode()
            inode.content, inode.durable = bytearray(content), content
            (self.folder / name).write_bytes(content)
            (self.folder / name).chmod(0o600)
        self.synced = dict(self.names)


class _Written:
    """What `os.fdopen` returns for a file that is written."""

    def __init__(self, system, descriptor):
        self.system, self.descriptor, self.at = system, descriptor, 0
        self.waiting = bytearray()

    def fileno(self):
        return self.descriptor

    def write(self, data):
        self.waiting += data
        return len(data)

    def flush(self):
        if self.waiting:
            data, self.waiting = bytes(self.waiting), bytearray()
            self.system.pwrite(self.descriptor, data, self.at)
            self.at += len(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.flush()
        finally:
            self.system.close(self.descriptor)


class System:
    """The calls of the operating system that change files; those of other folders go through."""

    def __init__(self, root):
        self.root, self.disks, self.files = str(root) + "/", {}, {}

    def _place(self, path):
        """Return the disk and the name of a path; None if it is in another folder."""
        text = os.fspath(path) if isinstance(path, str | Path) else ""
        if not text.startswith(self.root):
            return None
        party, _, name = text[len(self.root) :].partition("/")
        return self.disks[party], name

    def open(self, path, flags, mode=0o777, **more):
        place = self._place(path)
        if place is None:
            return REAL["open"](path, flags, mode, **more)
        disk, name = place
        file = Open(disk, "", None, REAL["open"](path, flags)) if not name else (
            disk.open_file(name, flags)
        )  # fmt: skip
        descriptor = next(DESCRIPTORS)
        self.files[descriptor] = disk.open[descriptor] = file
        return descriptor

    def _file(self, descriptor):
        """Return an open file; None if it is another's."""
        if not isinstance(descriptor, int) or descriptor < FIRST:
            return None
        file = self.files.get(descriptor)
        if file is None or descriptor not in file.disk.open:  # its process was killed
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return file

    def close(self, descriptor):
        if not isinstance(descriptor, int) or descriptor < FIRST:
            return REAL["close"](descriptor)
        file = self.files.pop(descriptor, None)
        if file is not None and file.disk.open.pop(descriptor, None) is not None:
            file.disk.locks = {n: d for n, d in file.disk.locks.items() if d != descriptor}
            REAL["close"](file.real)
        return None

    def fstat(self, descriptor):
        file = self._file(descriptor)
        if file is None:
            return REAL["fstat"](descriptor)
        return SimpleNamespace(st_size=len(file.inode.content))

    def fchmod(self, descriptor, mode):
        return None if self._file(descriptor) else REAL["fchmod"](descriptor, mode)

    def fdopen(self, descriptor, *more, **named):
        if self._file(descriptor) is None:
            return REAL["fdopen"](descriptor, *more, **named)
        return _Written(self, descriptor)

    def fsync(self, descriptor):
        file = self._file(descriptor)
        return REAL["fsync"](descriptor) if file is None else file.disk.sync(file)

    def ftruncate(self, descriptor, length):
        file = self._file(descriptor)
        if file is None:
            return REAL["ftruncate"](descriptor, length)
        return file.disk.truncate(file, length)

    def pwrite(self, descriptor, data, at):
        file = self._file(descriptor)
        return (REAL["pwrite"](descriptor, data, at) if file is None
                else file.disk.write(file, data, at))  # fmt: skip

    def replace(self, old, new, **more):
        place = self._place(old)
        if place is None:
            return REAL["replace"](old, new, **more)
        return place[0].replace(place[1], self._place(new)[1])

    def unlink(self, path, **more):
        place = self._place(path)
        return REAL["unlink"](path, **more) if place is None else place[0].unlink(place[1])

    def flock(self, descriptor, operation):
        file = self._file(descriptor)
        if file is None:
            return REAL_FLOCK(descriptor, operation)
        holder = file.disk.locks.setdefault(file.name, descriptor)
        if holder != descriptor:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        return None

    @contextmanager
    def simulated(self):
        """Let these calls take the place of the system's, in a block."""
        names = [name for name in REAL if hasattr(self, name)]
        for name in names:
            setattr(os, name, getattr(self, name))
        fcntl.flock = self.flock
        try:
            yield self
        finally:
            for name in names:
                setattr(os, name, REAL[name])
            fcntl.flock = REAL_FLOCK
