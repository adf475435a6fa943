"""``vertibayes status --watch``, of runs and parties that are processes."""

import json
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.command import run
from tests.e2e.processes import LIMIT
from vertibayes_protocols.deployment.status import STOPPED, Status, kept_status, status_path

ROOT = Path(__file__).parents[2]
# A run: does what each line of its input says, until the input ends.
RUN = """
import sys
from pathlib import Path
from vertibayes_protocols.deployment.run_status import RunStatus, a_party, kept_run

parties = {"north": a_party("site")}
status = RunStatus("ana", "analyst", "0.2.0", "bayesian_network", parties=parties)
with kept_run(Path(sys.argv[1]), status, "results", lambda *_, **__: None) as watch:
    print("runs", flush=True)
    for line in sys.stdin:
        name, *given = line.split()
        getattr(watch, name)(*given)
        print("done", flush=True)
"""


class Run:
    """A run that is a process."""

    def __init__(self, study):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(status_path(study))],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "runs\n"

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=LIMIT) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=LIMIT)


@contextmanager
def running(study):
    ran = Run(study)
    try:
        yield ran
    finally:
        ran.kill()
        ran.process.stdin.close()
        ran.process.stdout.close()


@pytest.fixture
def study(tmp_path):
    return tmp_path / "study.toml"


@pytest.fixture(autouse=True)
def interruptible():
    """What a shell runs in the background ignores SIGINT, and so would a process of a test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def status(study, *options):
    """Start the command as a process; a test that fails does not wait for its end."""
    command = [sys.executable, "-m", "vertibayes", "status", str(study), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_watchers_show_the_changes_of_a_run_and_end_with_it(study):
    with running(study) as ran, ExitStack() as held:
        watchers = [held.enter_context(status(study, "--watch", "--interval", "0.1")) for _ in "ab"]
        first = [watcher.stdout.readline() for watcher in watchers]
        assert all("Now: connect to the parties." in line for line in first)
        ran.do("phase structure")
        second = [watcher.stdout.readline() for watcher in watchers]
        assert all("Now: learn the structure." in line for line in second)
        ran.end()
        for watcher in watchers:
            said, error = watcher.communicate(timeout=LIMIT)
            assert (watcher.returncode, error) == (0, "")
            assert said.splitlines()[-1].endswith("The results are in results.")


def test_a_run_that_is_killed_is_said_not_to_run(study, capsys):
    with running(study) as ran, status(study, "--watch", "--interval", "0.1") as watcher:
        watcher.stdout.readline()
        ran.do("phase structure")
        assert run(capsys, "status", study)[0] == 0
        ran.kill()
        said, _ = watcher.communicate(timeout=LIMIT)
        assert watcher.returncode == 3 and "because it was killed" in said
        code, printed, _ = run(capsys, "status", study)
        assert code == 3 and "does not run" in printed and "x Learn the structure" in printed
    with running(study):
        code, printed, _ = run(capsys, "status", study)
        assert code == 0 and "connect to the parties" in printed  # nothing of the earlier run


def test_a_watcher_can_be_stopped_and_says_why_it_cannot_read_a_status(study):
    path = status_path(study)
    with running(study), ExitStack() as held:
        one, other = (held.enter_context(status(study, "--watch")) for _ in "ab")
        assert "Now: connect to the parties." in one.stdout.readline() + other.stdout.readline()
        other.send_signal(signal.SIGINT)
        _, error = other.communicate(timeout=LIMIT)
        assert (other.returncode, error) == (130, "vertibayes: stopped\n")
        path.write_text('{"format": 9}')
        _, error = one.communicate(timeout=LIMIT)
        assert one.returncode == 2 and "has the format 9, this release reads 1" in error
    path.unlink()
    path.symlink_to("/etc/passwd")
    with status(study, "--watch") as linked:
        assert "symbolic link" in linked.communicate(timeout=LIMIT)[1]


def test_a_party_is_watched_until_it_stops(tmp_path, capsys, monkeypatch):
    file = tmp_path / "site.toml"
    lock = file.with_name("site.status.json.lock")
    # This process holds the lock and cannot end: without its file, the lock is nobody's.
    monkeypatch.setattr("vertibayes.cli.status.sleep", lambda _: lock.unlink())
    with kept_status(status_path(file), Status("clinic", "site", "0.2.0"), print) as tell:
        tell("connected")
        status_file = status_path(file)
        content = json.loads(status_file.read_text())
        status_file.write_text(json.dumps({**content, "connected": True}))
        code, printed, _ = run(capsys, "status", file, "--watch")
    assert code == 3 and "site clinic runs" in printed and "site clinic does not run" in printed
    assert "budgets      `vertibayes ledger site.toml` says what is used and left" in printed


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--interval", "2"], "--interval is for --watch: got --interval 2 without it"),
        (["--watch", "--interval", "0"], "--interval must be between 0.1 and 3600 seconds, got 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, capsys, options, reason):
    file = tmp_path / "site.toml"
    with kept_status(status_path(file), Status("clinic", "site", "0.2.0"), print):
        code, _, error = run(capsys, "status", file, *options)
    assert code == 2 and reason in error


def test_what_was_never_started_cannot_be_watched(tmp_path, capsys):
    study = tmp_path / "study.toml"
    study.touch()
    (tmp_path / "study.txt").touch()
    reasons = {
        study: "no run or party has been started with this file (study.status.json does not "
        "exist); start it first, as with `vertibayes learn study.toml --out RESULTS`",
        tmp_path: f"a folder; specify a file in it, as {study}",
        tmp_path / "other.toml": "no such file; specify study.toml, or the file of a party",
        tmp_path / "study.txt": "not a .toml file; specify study.toml, or the file of a party",
    }
    for file, reason in reasons.items():
        for options in ([], ["--watch"]):
            code, _, error = run(capsys, "status", file, *options)
            assert code == (STOPPED if file is study else 2)
            assert error == f"vertibayes: {file}: {reason}\n"


def test_a_file_that_is_no_status_is_refused(study, capsys):
    for content in ("[]", "3", ""):
        status_path(study).write_text(content)
        code, _, error = run(capsys, "status", study)
        assert code == 2 and "is not a valid status" in error and "interpreted" not in error
