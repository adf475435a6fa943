"""A disk that is full at any write: nothing is torn, and nothing leaves that is not noted."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from contextlib import closing, suppress

import numpy as np
import pytest

from tests.protocols.small import committed, count, data_of, packets, study_of
from tests.protocols.test_contract import CONTRACT
from vertibayes.study_files import TableFile
from vertibayes_protocols.deployment.approvals import (
    Approval,
    approvals_in,
    read_approval,
    write_approval,
)
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.open_study import Revealed
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.whole_file import GrowingFile
from vertibayes_protocols.variables import Family, Rows

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
CALLS = "pwrite", "write", "fsync", "ftruncate"


class Disk:
    """Fails at one call of the system, or from that call on; a write then takes only some bytes."""

    def __init__(self, monkeypatch, bytes_that_fit=None):
        self.calls, self.fails_at, self.stays = 0, None, False
        self.fits = bytes_that_fit
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))

    def fail_at(self, call, *, stays=False):
        self.calls, self.fails_at, self.stays = 0, call, stays

    def mend(self):
        self.fails_at = None

    def _failing(self, name, real):
        def call(descriptor, *arguments):
            self.calls += 1
            is_due = self.fails_at is not None and (
                self.calls >= self.fails_at if self.stays else self.calls == self.fails_at
            )
            if not is_due:
                return real(descriptor, *arguments)
            if name in ("pwrite", "write") and self.fits:
                data, *at = arguments
                fits, self.fits = self.fits, None  # the rest of the entry does not fit
                self.fails_at = self.calls + 1
                return real(descriptor, bytes(data)[:fits], *at)
            raise OSError(FULL.errno, FULL.strerror)

        return call


def attempt(action, *arguments):
    """Do something; return the error of the system, if there was one."""
    try:
        action(*arguments)
    except OSError as error:
        return error
    return None


# ---- torn entries --------------------------------------------------------------------------------


class AsBefore:
    """How release 0.1.0 added an entry: the half of one that does not fit stays."""

    def __init__(self, path):
        self._file = path.open("ab", buffering=0)

    def append(self, entry):
        rest = memoryview(entry)
        while rest:
            rest = rest[
                os.pwrite(self._file.fileno(), rest, os.fstat(self._file.fileno()).st_size) :
            ]
        os.fsync(self._file.fileno())

    def close(self):
        self._file.close()


def grown(path):
    return GrowingFile(os.open(path, os.O_RDWR | os.O_CREAT), path)


def after_a_full_disk(open_file, path, monkeypatch, fits, *, stays=False):
    """Write three entries, the second on a disk that takes only its first bytes."""
    first, second, third = b'{"n": 1}\n', b'{"n": 2}\n', b'{"n": 3}\n'
    with monkeypatch.context() as patch:
        disk = Disk(patch, fits)
        with closing(open_file(path)) as file:
            file.append(first)
            disk.fail_at(1, stays=stays)
            with pytest.raises(OSError, match="No space left"):
                file.append(second)
            disk.mend()
            file.append(third)
    return path.read_bytes().splitlines()


@pytest.mark.parametrize("fits", range(9))
@pytest.mark.parametrize("stays", [False, True])
def test_an_entry_that_does_not_fit_leaves_nothing_behind(tmp_path, monkeypatch, fits, stays):
    """Also if it cannot be cut off at once."""
    lines = after_a_full_disk(grown, tmp_path / "x", monkeypatch, fits, stays=stays)
    assert lines == [b'{"n": 1}', b'{"n": 3}']


def test_the_next_entry_was_once_joined_to_the_half_of_one(tmp_path, monkeypatch):
    lines = after_a_full_disk(AsBefore, tmp_path / "x", monkeypatch, 5)
    assert lines == [b'{"n": 1}', b'{"n":{"n": 3}']


def test_a_file_that_another_program_has_shortened_is_not_continued(tmp_path):
    with closing(grown(tmp_path / "x")) as file:
        file.append(b"one\n")
        os.truncate(tmp_path / "x", 1)
        with pytest.raises(ValueError, match="x has 1 bytes, and had 4: another program has short"):
            file.append(b"two\n")


def test_a_ledger_survives_a_disk_that_is_full_at_each_call_in_turn(tmp_path, monkeypatch):
    failed = 0
    for call in range(1, 12):
        path = tmp_path / f"ledger{call}"
        with monkeypatch.context() as patch:
            disk = Disk(patch, bytes_that_fit=call)
            disk.fail_at(call, stays=call % 2 == 0)
            with closing(LedgerFile(path)) as ledger:
                noted = []
                for number in range(3):
                    error = attempt(ledger.note, f"fact {number}", "a", ())
                    if error is None:
                        noted.append(f"fact {number}")
                    else:
                        assert error.filename == str(path)
                        failed += 1
                        disk.mend()
        with closing(LedgerFile(path)) as again:
            assert [fact.what for fact in again.facts] == noted
    assert failed > 5


def test_an_unfinished_last_entry_is_reported_once(tmp_path):
    path = tmp_path / "ledger"
    with closing(LedgerFile(path)) as ledger:
        ledger.note("first", "a", ())
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at": "2026')
    with closing(LedgerFile(path)) as ledger:
        ((what, facts),) = ledger.recovered()
        assert what.startswith("unfinished entry") and facts == {"file": str(path), "bytes": 12}
    with closing(LedgerFile(path)) as ledger:
        assert not list(ledger.recovered()) and path.read_bytes() == whole


def test_a_ledger_that_release_0_1_0_tore_is_read_and_reported(tmp_path):
    """That release refuses to start with "line 2: not a valid entry of a ledger"."""
    path = tmp_path / "ledger"
    first, second = (
        json.dumps({"at": "2026-10-01T10:00:00+00:00", "what": what, "about": "a", "to": []})
        for what in ("first", "second")
    )
    path.write_text(f"{first}\n{first[:40]}{second}\n")
    with closing(LedgerFile(path)) as ledger:
        assert [fact.what for fact in ledger.facts] == ["first", "second"]
        assert [facts["line"] for _, facts in ledger.recovered()] == [2]


# ---- memory, tables, approvals -------------------------------------------------------------------


def write_memory(path, number):
    with closing(SiteMemory(path)) as memory:
        memory.commit(bytes([number]), {"x": np.zeros(3, np.uint8)})


def read_memory(path):
    with closing(SiteMemory(path)) as memory:
        return [n for n in range(2) if memory._committed.get(bytes([n]).hex())]


def write_tables(path, number):
    with closing(TableFile(path)) as file:
        if file.study is None:
            file.join(study_of(data_of(a="xy", b="z")), b"mark")
        file.add([Revealed(Family("x"), False, Rows(), np.full(3, number))])


def read_tables(path):
    with closing(TableFile(path)) as file:
        return [int(table[0]) for *_, table in file.tables]


@pytest.mark.parametrize(
    ("write", "read"), [(write_memory, read_memory), (write_tables, read_tables)]
)
def test_a_file_is_as_before_or_complete_if_the_disk_is_full_at_any_call(
    tmp_path, monkeypatch, write, read
):
    failures = 0
    for call in range(1, 9):
        path = tmp_path / str(call)
        path.mkdir()
        path /= "file"
        write(path, 0)
        with monkeypatch.context() as patch:
            disk = Disk(patch, bytes_that_fit=7 * call)
            disk.fail_at(call, stays=call % 2 == 0)
            error = attempt(write, path, 1)
        failures += error is not None
        assert error is None or error.filename == str(path)
        assert read(path) in ([0], [0, 1])
        write(path, 1)
        assert read(path)[:2] == [0, 1] and not path.with_name("file.part").exists()
    assert failures > 1


def test_an_approval_is_there_whole_or_not_at_all(tmp_path, monkeypatch):

    approval = Approval(CONTRACT, "A. Owner", "2026-11-01")
    for call in (1, 2):
        disk = Disk(monkeypatch)
        disk.fail_at(call)
        with suppress(OSError):
            write_approval(tmp_path / "approved", approval)
        disk.mend()
        assert all(read_approval(path) == approval for path in approvals_in(tmp_path / "approved"))
    assert read_approval(write_approval(tmp_path / "approved", approval)) == approval


# ---- nothing leaves ------------------------------------------------------------------------------


def test_nothing_of_a_query_leaves_a_site_whose_notes_do_not_reach_the_disk(tmp_path, monkeypatch):
    """For each call of the system that notes the query: if it fails, no share is sent."""
    data, failed = data_of(a="xy", b="z", c="w"), 0
    for call in range(1, 20):
        folder = tmp_path / str(call)
        folder.mkdir()
        with packets(monkeypatch) as seen, closing(LedgerFile(folder / "ledger")) as ledger:
            memory = SiteMemory(folder / "memory")
            federation, study = committed(data)
            federation.roles["a"].ledger, federation.roles["a"].memory = ledger, memory
            before = len(seen)
            with monkeypatch.context() as patch:
                disk = Disk(patch)
                disk.fail_at(call)
                error = attempt(count, federation, study, "xz")
            memory.close()
        if error is None:
            break
        assert str(folder) in error.filename
        failed += 1
        kinds = [s.message.kind for s, _ in seen[before:] if s.sender == "a"]
        assert kinds == ["answer"], call
    assert failed == call - 1 >= 6


# ---- a real disk ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not permitted")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_ledger_on_a_disk_that_fills_again_and_again_loses_nothing(small_disk):
    path, filler = small_disk / "ledger", small_disk / "filler"
    noted, failed = [], 0
    with closing(LedgerFile(path)) as ledger:
        for number in range(60):
            names = tuple(f"{number}-{place}" for place in range(150))  # more than a page
            if number % 3 == 0:
                with suppress(OSError):
                    filler.write_bytes(bytes(1 << 16))
            elif number % 3 == 1:
                filler.unlink()
            error = attempt(ledger.open, [RevealedTable(names, 2, "analyst", Rows())])
            if error is None:
                noted.append(names)
            else:
                assert (error.errno, error.filename) == (errno.ENOSPC, str(path))
                failed += 1
    assert failed > 20 and len(noted) > 10
    filler.unlink(missing_ok=True)
    with closing(LedgerFile(path)) as again:
        assert [table.variables for table in again.tables] == noted and not again.cut
