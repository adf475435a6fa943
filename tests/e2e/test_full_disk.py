"""A disk that is full before a run, or once its results are written."""

import errno
import json
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.e2e.command import FILES, learn, run
from vertibayes.cli import outputs
from vertibayes.network import read_model

SOME = ["structure.json", "model.json", "model.bif", "model.bifxml"]


@pytest.fixture
def aside(tmp_path, monkeypatch):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A full disk: of each folder, the names of the files that it still takes."""
    room = {}
    write_text = Path.write_text

    def write(path, text, **options):
        for folder, names in room.items():
            if folder in path.parents and path.name.removesuffix(".part") not in names:
                write_text(path, text[:10], **options)  # a part of it fits
                raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(path, text, **options)

    monkeypatch.setattr(Path, "write_text", write)
    return room


def test_a_full_disk_is_named_before_a_table_is_revealed(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 2000))
    monkeypatch.setattr("vertibayes.cli.learn.read_sites", None)  # nothing is read
    code, told, error = learn(
        capsys, tmp_path / "new" / "out", "--data", folder / "all.csv", "--sites", 3
    )
    assert code == 2 and told == "" and not (tmp_path / "new").exists()
    assert error == (
        f"vertibayes: --out {tmp_path}/new/out: the disk of {tmp_path} is full (2.0 kB free); "
        "free at least 1.0 MB\n"
    )


@pytest.mark.parametrize("room", [[], SOME])
def test_results_that_do_not_fit_are_written_whole_to_a_folder_for_temporary_files(
    folder, tmp_path, capsys, aside, disk, room
):
    out = tmp_path / "full" / "out"
    disk[out.parent] = room
    code, told, error = learn(capsys, out, "--data", folder / "all.csv", "--sites", 3)
    (kept,) = aside.iterdir()
    assert code == 2 and told == "" and not list(out.parent.iterdir())
    assert error.splitlines()[-1] == (
        f"vertibayes: --out {out}: No space left on device; the results are in {kept} instead"
    )
    assert {path.name for path in kept.iterdir()} == FILES
    assert kept.stat().st_mode & 0o077 == 0
    edges = json.loads((kept / "structure.json").read_text())["edges"]
    network = read_model(kept / "model.bif")
    assert sorted(network.structure.edges) == sorted(map(tuple, edges)) != []


def test_the_model_is_what_is_kept_where_there_is_room_for_little(
    folder, tmp_path, capsys, aside, disk
):
    disk[tmp_path / "full"], disk[aside] = [], SOME
    code, _, error = learn(
        capsys, tmp_path / "full" / "out", "--data", folder / "all.csv", "--sites", 3
    )
    (kept,) = aside.iterdir()
    assert code == 2 and {path.name for path in kept.iterdir()} == set(SOME)
    assert error.splitlines()[-1] == (
        f"vertibayes: --out {tmp_path}/full/out: No space left on device; {kept}/ledger.json: "
        f"No space left on device; {kept} has model.bif, model.bifxml, model.json, structure.json"
    )


def test_results_of_naive_bayes_are_kept_too(folder, tmp_path, capsys, aside, disk):
    out = tmp_path / "full" / "out"
    disk[out.parent] = []
    code, _, error = run(
        capsys, "nb", "--data", folder / "all.csv", "--target", "CVP", "--method", "vdpnb",
        "--parties", 2, "--noise", "none", "--out", out,
    )  # fmt: skip
    (kept,) = aside.iterdir()
    assert code == 2 and f"the results are in {kept} instead" in error
    assert {path.name for path in kept.iterdir()} == FILES and not list(out.parent.iterdir())


def test_files_that_came_into_the_folder_during_the_run_cost_no_results(tmp_path, aside):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept")
    with pytest.raises(outputs.UnwrittenError, match="put there during the run; the res"):
        outputs.write_folder(out, lambda part: outputs.write_text(part / "a", "results"))
    assert [path.name for path in out.iterdir()] == ["mine"]
    assert [path.read_text() for path in aside.glob("*/a")] == ["results"]


def test_a_run_that_fails_says_so_where_its_ledger_cannot_be_written(tmp_path, capsys, aside, disk):
    (tmp_path / "f.csv").write_text("a,b\n" + "0,x\n1,y\n1,x\n" * 30)
    disk[tmp_path / "full"] = []
    code, _, error = learn(
        capsys, tmp_path / "full" / "out", "--data", tmp_path / "f.csv", "--sites", 2,
        "--structure-records", 50, "--validate", "svdg", "--target", "a", "--folds", 2,
    )  # fmt: skip
    (kept,) = aside.iterdir()
    assert code == 2 and [path.name for path in kept.iterdir()] == ["ledger.json"]
    warning, reason = error.splitlines()[-2:]
    assert warning.startswith("warning: --out") and f"the results are in {kept}" in warning
    assert "refuses: " in reason
