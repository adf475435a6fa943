"""The status of a running party."""

import json
from time import monotonic, sleep
from types import SimpleNamespace

import pytest

from tests.e2e.command import run
from tests.protocols.network import Parties
from tests.protocols.small import data_of
from tests.protocols.test_contract import CONTRACT
from vertibayes.counting.secure import SecureCounter
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.log import SessionLog, line
from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    TROUBLED,
    Status,
    StatusFile,
    kept_status,
    read_status,
    status_path,
)
from vertibayes_protocols.events import AGAIN, CONNECTED, WAITING
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.parties import Watch
from vertibayes_protocols.queries import Begin
from vertibayes_protocols.session import Answer
from vertibayes_protocols.storage.whole_file import InUseError
from vertibayes_protocols.variables import Family


def a_status():
    return Status("clinic", "site", "0.2.0")


def nothing(event, **facts):
    pass


@pytest.fixture
def at_once(monkeypatch):
    """Write at each event."""
    monkeypatch.setattr("vertibayes_protocols.deployment.status.SECONDS", 0.0)


def health_of(path):
    status, runs = read_status(path)
    return status.health(runs=runs)


def test_a_status_follows_the_events_of_the_log(tmp_path, at_once):
    path = status_path(tmp_path / "site.toml")
    with kept_status(path, a_status(), nothing) as tell:
        tell(CONNECTED, relay="127.0.0.1:8102")
        tell("session begun", session="ab12", analyst="carol")
        tell("agreed", session="ab12", query="choose")
        tell("refused", session="ab12", query="tables", reason="too many cells")
        status, runs = read_status(path)
        assert runs and status.health(runs=runs) == HEALTHY
        assert status.sessions["ab12"]["analyst"] == "carol"
        assert status.sessions["ab12"]["last"] == "refused tables"
        assert status.last_error["reason"] == "too many cells"
        tell("session ended", session="ab12", reason="hospital cannot be reached")
    status, runs = read_status(path)
    assert not runs and status.health(runs=runs) == STOPPED and status.sessions == {}
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
    file.take("listing", {})
    assert file.path.read_text() == written
    now[0] = 1.5
    file.take("agreed", {})
    assert json.loads(file.path.read_text())["last"] == "agreed"


def test_what_stays_for_hours_is_written_at_once(tmp_path):
    """Before: a healthy site to which no analyst came was "not connected" for good."""
    file = StatusFile(tmp_path / "site.status.json", a_status(), lambda: 0.0)
    for event, connected, sessions in (
        ("ready", False, []), (CONNECTED, True, []), (WAITING, False, []), (AGAIN, True, []),
        ("session begun", True, ["ab12"]), ("session ended", True, []),
    ):  # fmt: skip
        file.take(event, {"session": "ab12"})
        content = json.loads(file.path.read_text())
        assert (content["connected"], list(content["sessions"])) == (connected, sessions)


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


def test_the_command_says_whether_a_party_runs(tmp_path, capsys):
    file = tmp_path / "site.toml"
    for role in ("dealer", "site"):
        file.write_text(f"[{role}]")
        code, _, error = run(capsys, "status", file)
        assert code == STOPPED and "has been started with this file" in error
        assert f"as with `vertibayes {role} site.toml`" in error
    with kept_status(status_path(file), a_status(), nothing):
        code, printed, _ = run(capsys, "status", file)
        assert code == TROUBLED and "not connected to the relay" in printed
    code, printed, _ = run(capsys, "status", file)
    assert code == STOPPED and printed.startswith("site clinic does not run")


# ---- with a serving loop -------------------------------------------------------------------------


def test_the_status_of_a_site_that_serves_names_session_study_and_query(tmp_path, at_once, capsys):
    """Before: no party logged that a session began, and the status never listed one."""
    file, lines = tmp_path / "site.toml", []
    sessions = lambda: list(read_status(status_path(file))[0].sessions.values())  # noqa: E731
    log = lambda event, **facts: lines.append(line("a", event, **facts))  # noqa: E731
    with kept_status(status_path(file), a_status(), log) as tell:
        tell(CONNECTED)
        watches = lambda role, name: (  # noqa: E731
            SessionLog(tell, role, name) if role.party == "a" else Watch()
        )
        with Parties(data_of(a="xy", b="z"), watches=watches) as parties:
            session = parties.session()
            study = open_study(session, parties.sites, DEALER, block_rows=16)
            SecureCounter(study).tables([Family("x", ("z",))])
            until(lambda: [s["last"] for s in sessions()] == ["answered tables"])
            code, printed, _ = run(capsys, "status", file)
            session.close()
            until(lambda: not sessions())
            _, after, _ = run(capsys, "status", file)
    number = grouped_digest(study.study.id[:8])
    name = lines[1].partition("session=")[2][:8]
    assert lines[1] == f"a session begun session={name} analyst=analyst"
    assert f'a agreed query=commit session={name} analyst=analyst study="{number}"' in lines
    assert code == HEALTHY and f"  session {name} of analyst since " in printed
    assert f"    study      {number}\n    queries    4 answered; the latest event: " in printed
    assert "answered tables, at " in printed and name not in after


def test_the_log_says_who_has_approved_the_study_that_begins():
    lines, contract = [], CONTRACT
    role = SimpleNamespace(analyst="ann", run=None, joined=None)
    watch = SessionLog(lambda *event, **facts: lines.append(line("a", *event, **facts)), role, b"1")
    begin = Begin.of(contract)
    watch.considered(begin, Answer(False, "it is not approved here"), "")
    watch.considered(begin, Answer(True, ""), "")
    role.run = SimpleNamespace(approved=Approved(contract, "A. Owner", "2026-11-01", ()))
    watch.finished(begin, 0.0, 50)
    watch.ended(None)
    of = f'session=31 analyst=ann study="{grouped_digest(contract.digest[:8])}"'
    assert lines == [
        f'a refused query=begin {of} reason="it is not approved here"',
        f"a agreed query=begin {of}",
        f'a answered query=begin {of} seconds="0.0" bytes=50 approved="A. Owner on 2026-11-01"',
        f"a session ended {of}",
    ]


def until(done):
    end = monotonic() + 5
    while not done():
        assert monotonic() < end
        sleep(0.01)
