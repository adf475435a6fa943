"""Files that are replaced whole, and locks of files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from vertibayes_protocols.storage.whole_file import InUseError, lock, replacing


def test_a_file_is_replaced_when_the_new_one_is_written(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_file_is_as_before_when_the_new_one_cannot_be_written(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")

    def fail():
        with replacing(path) as part:
            part.write_text("n")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as caught:
        fail()
    assert caught.value.filename == str(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_and_not_its_part(tmp_path):
    path = tmp_path / "absent" / "x"

    def fail():
        with replacing(path) as part:
            part.write_text("n")

    with pytest.raises(FileNotFoundError) as caught:
        fail()
    assert caught.value.filename == str(path)


def test_a_lock_is_for_one_open_file_at_a_time(tmp_path):
    first, second = (os.open(tmp_path / "x", os.O_RDWR | os.O_CREAT) for _ in range(2))
    lock(first, tmp_path / "x")
    with pytest.raises(InUseError, match="x is in use by another process"):
        lock(second, tmp_path / "x")
    os.close(first)
    lock(second, tmp_path / "x")
    os.close(second)


def test_without_fcntl_modules_are_imported_and_a_lock_says_what_to_do(tmp_path):
    """As on Windows, which has no fcntl."""
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import vertibayes_protocols.storage.memory, vertibayes_protocols.storage.ledger_file\n"
        "import vertibayes.model_file\n"
        "from vertibayes.study_files import TableFile; from pathlib import Path\n"
        f"TableFile(Path({str(tmp_path / 'tables')!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.endswith("tables cannot be locked on this system: use Linux or macOS")
