"""The file of a run keeps what its steps have shown, over kills."""

import errno
import os

import pytest

from vertibayes.study_files import RunFile
from vertibayes_protocols.storage.run_record import Shown
from vertibayes_protocols.storage.whole_file import NewerFormatError

DIGEST, SHOWN = bytes(32), Shown((1, 0), (True, False))


def written(path, *shown):
    with RunFile(path, DIGEST) as file:
        for one in shown:
            file.add(one)
        return file.study


def test_a_run_is_resumed_with_its_steps(tmp_path):
    study = written(tmp_path / "study" / "run", SHOWN, SHOWN)
    with RunFile(tmp_path / "study" / "run", DIGEST) as file:
        assert file.study == study and len(study) == 16
        assert file.seen == [SHOWN, SHOWN]


def test_a_line_that_was_cut_short_is_dropped(tmp_path):
    path = tmp_path / "run"
    study = written(path, SHOWN, SHOWN)
    path.write_bytes(path.read_bytes()[:-9])
    with RunFile(path, DIGEST) as file:
        assert file.study == study and file.seen == [SHOWN]
        file.add(SHOWN)
    with RunFile(path, DIGEST) as file:
        assert file.seen == [SHOWN, SHOWN]


def test_a_run_that_is_over_or_of_another_contract_is_followed_by_a_new_one(tmp_path):
    study = written(tmp_path / "run", SHOWN)
    with RunFile(tmp_path / "run", bytes(31) + b"1") as file:
        assert file.study != study and not file.seen
        file.finish()
        other = file.study
    with RunFile(tmp_path / "run", bytes(31) + b"1") as file:
        assert file.study not in (study, other) and not file.seen


RUN = b'{"format": 1, "contract": "%s", "study": ""}' % DIGEST.hex().encode()


@pytest.mark.parametrize("content", [b"tables\n", b"{}\n", b'{"format": "1"}\n', RUN + b"\n{}\n"])
def test_another_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "run"
    path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="run is not a file of a run"):
        RunFile(path, DIGEST)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_release_is_refused_and_kept(tmp_path):
    path = tmp_path / "run"
    path.write_bytes(b'{"format": 9}\n')
    with pytest.raises(NewerFormatError, match="install the newer release again"):
        RunFile(path, DIGEST)
    assert path.read_bytes() == b'{"format": 9}\n'


def test_a_failed_write_leaves_no_part_of_a_line(tmp_path, monkeypatch):
    def full(descriptor, content, at):
        write(descriptor, content[: len(content) // 2], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    path, write = tmp_path / "run", os.pwrite
    with RunFile(path, DIGEST) as file:
        file.add(SHOWN)
        before = path.read_bytes()
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            file.add(SHOWN)
        assert path.read_bytes() == before and file.seen == [SHOWN]


def test_one_process_uses_the_file(tmp_path):
    with RunFile(tmp_path / "run", DIGEST), pytest.raises(ValueError, match="another process"):
        RunFile(tmp_path / "run", DIGEST)
