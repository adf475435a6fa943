"""The status of a running party."""

import json

import pytest

from protocols.deployment.log import AGAIN, CONNECTED, WAITING
from protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    TROUBLED,
    Status,
    StatusFile,
    health,
    kept_status,
    prometheus,
    read_status,
    status_path,
)
from protocols.site.whole_file import InUseError
from tests.e2e.command import run


def a_status():
    return Status("clinic", "site", "0.2.0")


def nothing(event, **facts):
    pass


@pytest.fixture
def at_once(monkeypatch):
    """Write at each event."""
    monkeypatch.setattr("protocols.deployment.status.SECONDS", 0.0)


def health_of(path):
    status, runs = read_status(path)
    return health(status, runs=runs)


def test_a_status_follows_the_events_of_the_log(tmp_path, at_once):
    path = status_path(tmp_path / "site.toml")
    with kept_status(path, a_status(), nothing) as tell:
        tell(CONNECTED, relay="127.0.0.1:8102")
        tell("session begun", session="ab12", analyst="carol")
        tell("agreed", session="ab12", query="choose")
        tell("refused", session="ab12", query="tables", reason="too many cells")
        status, runs = read_status(path)
        assert runs and health(status, runs=runs) == HEALTHY
        assert status.sessions["ab12"]["analyst"] == "carol"
        assert status.sessions["ab12"]["last"] == "refused tables"
        assert status.last_error["reason"] == "too many cells"
        tell("session ended", session="ab12", reason="hospital cannot be reached")
    status, runs = read_status(path)
    assert not runs and health(status, runs=runs) == STOPPED and status.sessions == {}
    assert status.last_error["reason"] == "hospital cannot be reached"


def test_a_party_without_its_relay_is_in_trouble(tmp_path, at_once):
    path = status_path(tmp_path / "site.toml")
    with kept_status(path, a_status(), nothing) as tell:
        tell(CONNECTED)
        tell(WAITING)
        assert health_of(path) == TROUBLED
        tell(AGAIN)
        assert health_of(path) == HEALTHY


def test_events_in_one_second_are_written_once(tmp_path):
    now = [0.0]
    file = StatusFile(tmp_path / "site.status.json", a_status(), lambda: now[0])
    file.take("ready", {})
    written = file.path.read_text()
    file.take("connected", {})
    assert file.path.read_text() == written
    now[0] = 1.5
    file.take("agreed", {})
    assert json.loads(file.path.read_text())["connected"]


def test_a_second_process_in_the_same_folder_is_refused(tmp_path):
    path = status_path(tmp_path / "dealer.toml")
    with kept_status(path, a_status(), nothing):
        with pytest.raises(InUseError, match="in use by another process"):
            with kept_status(path, a_status(), nothing):
                pass


def test_a_party_that_cannot_write_its_status_goes_on(tmp_path):
    path = tmp_path / "missing" / "site.status.json"
    with kept_status(path, a_status(), nothing) as tell:
        tell("ready")
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "is not a valid status"),
        ("[]", "is not a valid status"),
        ("", "is not a valid status"),
        ('{"format": 9}', "has the format 9, this release reads 1"),
    ],
)
def test_a_file_that_is_not_a_status_is_refused(tmp_path, text, reason):
    (tmp_path / "site.status.json").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read_status(tmp_path / "site.status.json")


def test_prometheus_reads_numbers_and_labels(tmp_path):
    status = a_status()
    status.started = "2026-01-02T03:04:05+00:00"
    status.take(CONNECTED, {}, status.started)
    lines = prometheus(status, runs=True).splitlines()
    who = 'party="clinic",role="site"'
    assert f"vertibayes_up{{{who}}} 1" in lines
    assert f"vertibayes_started_seconds{{{who}}} 1767323045" in lines
    assert f'vertibayes_events_total{{{who},event="connected"}} 1' in lines
    assert all(line.startswith(("#", "vertibayes_")) for line in lines)


def test_the_command_says_whether_a_party_runs(tmp_path, capsys):
    file = tmp_path / "site.toml"
    code, _, error = run(capsys, "status", file)
    assert code == 2 and "has not been started here" in error
    with kept_status(status_path(file), a_status(), nothing):
        code, printed, _ = run(capsys, "status", file)
        assert code == TROUBLED and "not connected to the relay" in printed
    code, printed, _ = run(capsys, "status", file)
    assert code == STOPPED and printed.startswith("site clinic does not run")
    code, printed, _ = run(capsys, "status", file, "--prometheus")
    assert code == STOPPED and 'vertibayes_up{party="clinic",role="site"} 0' in printed
