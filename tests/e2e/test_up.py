"""All parties of a study as processes, over the real transport."""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.processes import LIMIT, free_address, until
from tests.protocols.deployment.parties import SITES, change, count_by, deployment, pooled, records
from vertibayes.bif import write_bif
from vertibayes.counting import PlainCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.deployment.certificates import provision

HERE = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(not Path("/proc").exists(), reason="processes are counted in /proc"),
]


@pytest.fixture
def folder(tmp_path):
    folder = deployment(tmp_path / "all", address=free_address())
    yield folder
    assert processes_of(folder) == []


def start(folder, out, *options):
    """Start a study; what is said goes to a file beside the results."""
    study = folder / "analyst" / "study.toml"
    command = [sys.executable, "-m", "vertibayes", "up", str(study), "--out", str(out), *options]
    with out.with_suffix(".log").open("w") as file:
        return subprocess.Popen(command, cwd=HERE, stdout=file, stderr=subprocess.STDOUT)


def up(folder, out, *options):
    """Run a study; return its exit status and all that was said."""
    process = start(folder, out, *options)
    try:
        return process.wait(timeout=LIMIT), out.with_suffix(".log").read_text()
    finally:
        process.kill()
        process.wait()


def processes_of(folder):
    """Return the command lines of all processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def test_five_processes_and_a_relay_learn_the_model_of_the_pooled_records(folder, tmp_path):
    """With certificates; then again, from the tables that were opened."""
    provision(folder, [*SITES, "dealer", "analyst"], "127.0.0.1")
    for path in folder.glob("*/*.toml"):
        for key in ("root", "certificate", "key"):
            path.write_text(path.read_text().replace(f"# {key} =", f"{key} ="))
    code, said = up(folder, tmp_path / "out")
    assert code == 0, said
    plain = learn(PlainCounter(pooled(folder)), Options())
    assert (tmp_path / "out" / "model.bif").read_text() == write_bif(plain.network)
    assert not any(ident in said for ident in records()[0])
    code, said = up(folder, tmp_path / "again", "--quiet")
    assert code == 0 and said == ""
    assert json.loads((tmp_path / "again" / "summary.json").read_text())["calls"] == 0
    assert (tmp_path / "again" / "model.bif").read_text() == write_bif(plain.network)


def test_sites_count_by_paillier_without_the_dealers_process(folder, tmp_path):
    shutil.rmtree(folder / "dealer")
    count_by(folder, "paillier")
    code, said = up(folder, tmp_path / "out")
    assert code == 0, said
    plain = learn(PlainCounter(pooled(folder)), Options())
    assert (tmp_path / "out" / "model.bif").read_text() == write_bif(plain.network)


@pytest.mark.parametrize(
    ("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_stopped_it_leaves_no_process_behind(folder, tmp_path, how, status):
    process = start(folder, tmp_path / "out")
    said = (tmp_path / "out.log").read_text
    try:
        until(lambda: "south connected" in said())
        assert len(processes_of(folder)) >= 5
        process.send_signal(how)
        assert process.wait(timeout=LIMIT) == status
        assert said().endswith("vertibayes: stopped\n")
    finally:
        process.kill()
        process.wait()
    assert processes_of(folder) == [] and not (tmp_path / "out").exists()


def test_killed_it_leaves_no_process_behind(folder, tmp_path):
    process = start(folder, tmp_path / "out")
    said = (tmp_path / "out.log").read_text
    until(lambda: "south connected" in said())
    assert len(processes_of(folder)) >= 5
    process.kill()
    process.wait()
    until(lambda: processes_of(folder) == [])
    assert not (tmp_path / "out").exists()


def test_other_people_at_one_site_stop_the_run(folder, tmp_path):
    path = folder / "east" / "records.csv"
    path.write_text(path.read_text().replace(records()[0][0], "somebody-else"))
    code, said = up(folder, tmp_path / "out", "--quiet")
    assert code == 2
    assert "at north and east, at south and east; they are the same at north and south" in said


def test_a_folder_named_vertibayes_in_the_working_folder_is_not_run(folder, tmp_path):
    """The control: without -P Python finds it before the installed package."""
    path = tmp_path / "here" / "vertibayes"
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("raise SystemExit('a folder of the user')")
    study, out = folder / "analyst" / "study.toml", tmp_path / "out"
    code = "from vertibayes.cli import main; main()"
    command = ["-P", "-c", code, "up", str(study), "--out", str(out), "--quiet"]
    run = partial(subprocess.run, cwd=path.parent, capture_output=True, text=True)
    done = run([sys.executable, *command], env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.returncode == 0, done.stderr
    assert (out / "model.bif").exists()
    control = run([sys.executable, "-m", "vertibayes.cli.child", "check", str(study)])
    assert control.returncode and "a folder of the user" in control.stderr


def test_a_party_that_does_not_start_is_named_and_the_others_are_ended(folder, tmp_path):
    change(folder / "south" / "site.toml", "[policy]", "[polici]")
    code, said = up(folder, tmp_path / "out", "--quiet")
    assert code == 2 and "polici: unknown table" in said
    assert said.splitlines()[-1] == "vertibayes: south ended before it was connected"
