"""`vertibayes learn study.toml` begins another session when one breaks; in one process here."""

import re

import pytest

from tests.e2e.studies import learn_study, run_in_one_process
from tests.e2e.test_approved_study import approve
from tests.protocols.deployment.parties import change, deployment
from tests.protocols.small import packets
from vertibayes import k2
from vertibayes.study import connect_study
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.open_study import Renewing

LINE = r"there is no session \(south: cannot be reached\): the next try is in [01]\.\d s\n"


@pytest.fixture(params=[True, False], ids=["tables", "approved"])
def study(request, tmp_path, monkeypatch, capsys):
    run_in_one_process(monkeypatch, tmp_path / "all")
    monkeypatch.setitem(Renewing.__init__.__kwdefaults__, "wait", lambda seconds: None)
    folder = deployment(tmp_path / "all", free=request.param)
    if not request.param:
        approve(capsys, folder)
    return folder


def broken_at(monkeypatch, place):
    """Break the session before the analyst's nth decision to run a query, once."""
    seen = []

    def change_(sent, packet):
        if sent.message.kind == "go" and sent.receiver == "south":
            seen.append(sent)
            if len(seen) == place:
                raise PeerGoneError("south", "cannot be reached")
        return packet

    return packets(monkeypatch, change_)


def test_a_run_continues_after_each_query_that_breaks(study, capsys, tmp_path, monkeypatch):
    with broken_at(monkeypatch, 5):
        code, _, error = learn_study(capsys, study, tmp_path / "out")
    assert code == 0 and len(re.findall(LINE, error)) == 1, error


def test_without_patience_the_run_ends_and_the_command_resumes_it(
    study, capsys, tmp_path, monkeypatch
):
    path = study / "analyst" / "study.toml"
    change(path, "# [run]", "[run]")
    change(path, '# patience = "10 min"', "patience = 0")
    is_approved = "\n[release] " in path.read_text()
    with broken_at(monkeypatch, 6 if is_approved else 5):  # the second step; the second query
        code, _, error = learn_study(capsys, study, tmp_path / "out")
    assert code == 2 and "south: cannot be reached" in error
    code, _, error = learn_study(capsys, study, tmp_path / "out")
    assert code == 0 and "resuming the" in error, error


def test_a_learner_in_python_waits_while_a_session_is_begun_again(study, monkeypatch):
    if "\n[release] " in (study / "analyst" / "study.toml").read_text():
        pytest.skip("learners in Python need tables")
    with broken_at(monkeypatch, 5), connect_study(study / "analyst" / "study.toml") as counter:
        assert k2(counter).nodes
