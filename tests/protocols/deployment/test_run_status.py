"""The status of an analyst's run: what it notes, and what it never has."""

import json
import os
import stat
from contextlib import nullcontext

import pytest

from tests.e2e.studies import learn_study, run_in_one_process
from tests.e2e.test_approved_study import approve
from tests.protocols.deployment.parties import COLUMNS, SITES, change, deployment, records
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment import run_status as module
from vertibayes_protocols.deployment.run_status import (
    MOST_NOTES,
    KeptRun,
    RunStatus,
    a_party,
    kept_run,
    read_any_status,
    reason_of,
)
from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    TROUBLED,
    StatusFile,
    locked,
    read_content,
)
from vertibayes_protocols.errors import (
    PeerAbortedError,
    PeerGoneError,
    QueryRefusedError,
    RecordsDifferError,
)
from vertibayes_protocols.events import AGAIN, WAITING
from vertibayes_protocols.run_watch import SessionView

FIELDS = {
    "format", "party", "release", "learner", "approved", "role", "protocol", "process", "started",
    "updated", "connected", "plan", "phase", "spent", "since", "stage", "step", "most_steps",
    "share", "left", "query", "queries", "sessions", "warnings", "parties", "waits", "waits_since",
    "waits_for", "sent", "rounds", "notes", "ended", "result",
}  # fmt: skip


def a_run(**fields):
    parties = {"north": a_party("site"), "south": a_party("site"), "dealer": a_party("dealer")}
    return RunStatus("ana", "analyst", "0.2.0", "bayesian_network", parties=parties, **fields)


def watched(clock=lambda: 0.0):
    return KeptRun(None, a_run(plan=["connecting", "structure", "writing"]), clock=clock)


def view(joined=(), gone=None, messages=None, awaited=(), sent=0, rounds=0):
    messages = messages or dict.fromkeys(("north", "south", "dealer"), 0)
    return SessionView(frozenset(joined), gone or {}, messages, tuple(awaited), sent, rounds)


def states(watch):
    return {name: known["state"] for name, known in watch.status.parties.items()}


# ---- what a run notes ----------------------------------------------------------------------------


def test_parties_connect_join_and_answer_a_query():
    watch = watched()
    watch.began(["north", "south", "dealer"])
    watch.saw(view(joined=["north"], awaited=["south", "dealer"]))
    assert states(watch) == {"north": "joined", "south": "connected", "dealer": "connected"}
    assert watch.status.waits == ["dealer", "south"]
    assert watch.status.waits_for == "to join the session"
    watch.saw(view(joined=["north", "south", "dealer"]))
    watch.asked("describe")
    watch.saw(view(["north", "south", "dealer"], None, {"north": 2, "south": 0}, ["south"], 70, 3))
    north, south = watch.status.parties["north"], watch.status.parties["south"]
    assert (north["query"], south["query"]) == ("describe", "") and north["at"] and not south["at"]
    assert (watch.status.waits, watch.status.waits_for) == (["south"], "to answer (describe)")
    watch.answered()
    assert (watch.status.queries, watch.status.query, watch.status.waits) == (1, "", [])


def test_a_party_that_is_late_and_one_that_is_killed_are_waited_for_by_name():
    watch = watched()
    watch.began(["north", "south"])
    watch.late(["south"], 57.5)
    assert (watch.status.waits, watch.status.waits_for) == (["south"], "to connect")
    assert watch.status.health(runs=True) == TROUBLED
    watch.saw(view(joined=["north", "south"]))
    watch.broke(PeerGoneError("south", "cannot be reached"), 1.0)
    assert watch.status.parties["south"]["state"] == "away"
    assert watch.status.parties["south"]["reason"] == "cannot be reached"
    assert (watch.status.waits, watch.status.waits_for) == (["south"], "to come back")
    assert watch.status.health(runs=True) == TROUBLED
    watch.began(["north", "south"])
    assert watch.status.health(runs=True) == TROUBLED, "a new try is under way, and nobody is back"
    watch.saw(view(joined=["north", "south"]))
    assert watch.status.health(runs=True) == HEALTHY
    assert states(watch)["south"] == "joined" and watch.status.sessions == 2


def test_bytes_and_rounds_add_up_over_sessions():
    watch = watched()
    for _ in range(2):
        watch.began(["north"])
        watch.saw(view(sent=100, rounds=7))
        watch.saw(view(sent=150, rounds=9))
    assert (watch.status.sent, watch.status.rounds) == (300, 18)


def test_phases_follow_queries_and_learners_and_return_after_a_break():
    now = [0.0]
    watch = watched(lambda: now[0])
    for step in ("describe", "commit"):
        now[0] += 2
        watch.asked(step)
    watch.phase("structure")
    watch.progressed("hill_climbing", 2, 9, 0.25, 8.0)
    watch.asked("choose")
    assert watch.status.phase == "structure" and watch.status.step == 3
    now[0] += 5
    watch.broke(PeerGoneError("north", "cannot be reached"), 1.0)
    assert watch.status.phase == "connecting"
    watch.asked("commit")
    watch.asked("choose")
    assert watch.status.phase == "structure" and watch.status.step == 3
    now[0] += 1
    watch.asked("release")
    assert watch.status.phase == "release"
    assert watch.status.plan == [
        "connecting", "describing", "committing", "structure", "release", "writing",
    ]  # fmt: skip
    assert watch.status.spent["structure"] == 6.0 and watch.status.spent["connecting"] == 2.0


def test_the_relay_that_is_away_is_noted_from_another_thread_without_a_race():
    watch = watched()
    watch.told(WAITING, reason="Connection refused")
    assert watch.status.connected  # not yet: the run's own thread writes
    watch.saw(view())
    assert not watch.status.connected and watch.status.health(runs=True) == TROUBLED
    watch.told(AGAIN)
    watch.saw(view())
    assert watch.status.connected


def test_events_are_bounded_and_hostile_texts_lose_what_a_terminal_acts_on():
    watch = watched()
    for number in range(3 * MOST_NOTES):
        watch.broke(PeerGoneError("north", f"\x1b[2J{'x' * 10_000}"), number)
    assert len(watch.status.notes) == MOST_NOTES
    text = json.dumps(vars(watch.status))
    assert "\\u001b" not in text and len(text) < 20_000


@pytest.mark.parametrize(
    ("error", "how"),
    [(None, "written"), (ValueError("pulse"), "failed"), (SystemExit(143), "stopped")],
)
def test_the_end_is_written(tmp_path, error, how):
    path = tmp_path / "study.status.json"
    raised = nullcontext() if error is None else pytest.raises(type(error))
    with raised, kept_run(path, a_run(), "results", lambda *_, **__: None):
        assert read_any_status(path)[1]
        if error is not None:
            raise error
    status, runs = read_any_status(path)
    assert not runs and status.ended == how
    assert status.health(runs=runs) == (HEALTHY if error is None else STOPPED)
    assert "pulse" not in path.read_text()


def test_a_second_run_of_the_study_leaves_the_status_of_the_first_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.deployment.status.PROBED", 1)
    path = tmp_path / "study.status.json"
    with kept_run(path, a_run(), "first", lambda *_, **__: None):
        before = path.read_text()
        with kept_run(path, a_run(), "second", lambda *_, **__: None) as watch:
            watch.phase("structure")
        assert path.read_text() == before and read_any_status(path)[1]


# ---- what it never has ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (QueryRefusedError("north", "it has 97 records of 1,204"), "it has ... records of ..."),
        (PeerAbortedError("north", "north: shape (300,) expected"), "north: shape (...) expected"),
        (MalformedMessageError("north", "expected 300 values"), "north: expected ... values"),
        (PeerGoneError("north", "is silent (600 s)"), "north: is silent (600 s)"),
        (RecordsDifferError("north has 300 records"), "RecordsDifferError: the command has"),
        (ValueError("`fewest` must be at most 300"), "ValueError: the command has printed"),
    ],
)
def test_an_error_keeps_no_number_that_may_count_records(error, text):
    assert text in reason_of(error)
    if not isinstance(error, PeerGoneError) or isinstance(error, PeerAbortedError):
        assert not any(char.isdigit() for char in reason_of(error))


def test_names_of_parties_keep_their_digits():
    """Before: the status said "s..." of the site s1."""
    status = a_run()
    status.parties |= {"s1": a_party("site"), "12": a_party("site")}
    watch = KeptRun(None, status)
    watch.failed(QueryRefusedError("s1", "s10 has 97 records, s1-2 has 12, s1: 12."))
    assert status.result == "s1 refuses: s... has ... records, s...-... has ... s1: ..."
    watch.failed(PeerAbortedError("s1", "waits for s1 since 12"))
    assert status.parties["s1"]["reason"] == "waits for s1 since ..."


def test_digests_and_dates_stay_whole():
    """Before: the status said "...e... d...d..." and "until ...-...-..."."""
    digest = grouped_digest(bytes(range(0x60, 0xA0, 2)))
    text = f"approved {digest} until 2027-01-31, since 2026-03-02T10:11:12+00:00"
    assert reason_of(QueryRefusedError("s1", text)) == f"s... refuses: {text}"
    text = "1200 1300 of 2025-99-99 2026-03-021"
    assert not any(map(str.isdigit, reason_of(QueryRefusedError("north", text))))


@pytest.fixture
def written(monkeypatch):
    """Return all versions of the status that a run writes, each at once."""
    versions = []

    class Noting(StatusFile):
        def write(self, *, if_due=False):
            super().write()
            versions.append(json.loads(self.path.read_text()))

    monkeypatch.setattr(module, "StatusFile", Noting)
    return versions


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def check_nothing_of_the_data(versions, folder, out):
    """No version has a variable, a state or an identifier, or a field that is not described."""
    ids, columns = records()
    states = {text for column in columns.values() for text in column if not text.isdigit()}
    secret = {name for names in COLUMNS.values() for name in names} | states | {"patient"}
    for version in versions:
        assert version.keys() == FIELDS
        words = set()
        for text in texts_in({**version, "approved": "", "result": ""}):
            words |= set(text.replace("(", " ").replace(")", " ").replace("'", " ").split())
            assert ids[0] not in text
        assert not words & secret
    assert versions[-1]["result"] == str(out) and versions[-1]["ended"] == "written"
    mode = stat.S_IMODE((folder / "analyst" / "study.status.json").stat().st_mode)
    assert mode == 0o600


@pytest.mark.parametrize("free", [True, False], ids=["free", "approved"])
def test_a_study_shows_its_phases_and_nothing_of_its_data(
    capsys, tmp_path, monkeypatch, written, free
):
    folder = deployment(tmp_path / "all", free=free)
    run_in_one_process(monkeypatch, folder)
    if not free:
        approve(capsys, folder, *SITES)
    out = tmp_path / "out"
    code, _, error = learn_study(capsys, folder, out)
    assert code == 0, error
    check_nothing_of_the_data(written, folder, out)
    passed = list(dict.fromkeys(version["phase"] for version in written))
    learned = ["structure", *([] if free else ["release"]), "CPTs", "strengths", "writing"]
    begun = [] if free else ["beginning"]
    assert passed == ["connecting", *begun, "comparing", "describing", "committing", *learned]
    assert written[0]["plan"] == passed
    assert {version["stage"] for version in written} >= {"", "CPTs"}
    assert max(version["step"] for version in written) > 1 and written[-1]["queries"] >= 4


def test_a_refused_study_names_the_site_and_no_count(capsys, tmp_path, monkeypatch, written):
    folder = deployment(tmp_path / "all")
    change(folder / "north" / "site.toml", "fewest_records = 10 ", "fewest_records = 301 ")
    run_in_one_process(monkeypatch, folder)
    code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 2 and "300" in error
    assert written[-1]["ended"] == "failed" and "north refuses" in written[-1]["result"]
    assert not any(char.isdigit() for char in written[-1]["result"])


# ---- files that are not in order -----------------------------------------------------------------


def kept(tmp_path, **changes):
    path = tmp_path / "study.status.json"
    StatusFile(path, a_run()).write()
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 2}, "has the format 2, this release reads 1"),
        ({"parties": ["north"]}, "parties must be dict, got list"),
        ({"parties": {"north": {"role": "site"}}}, "north has no at"),
        ({"spent": {"structure": "long"}}, "structure must be float, got str"),
        ({"notes": [{"at": 1, "text": ""}]}, "at must be str, got int"),
        ({"further": 1}, "unexpected keyword argument 'further'"),
    ],
)
def test_a_status_of_another_release_or_shape_is_refused(tmp_path, changes, reason):
    with pytest.raises(ValueError, match=reason):
        read_any_status(kept(tmp_path, **changes))


def test_a_symbolic_link_a_pipe_and_a_large_file_are_refused(tmp_path):
    target, path = kept(tmp_path), tmp_path / "link.status.json"
    path.symlink_to(target)
    with pytest.raises(ValueError, match="symbolic link"):
        read_any_status(path)
    pipe = tmp_path / "pipe.status.json"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="not a regular file"):
        read_any_status(pipe)
    large = tmp_path / "large.status.json"
    large.write_bytes(b" " * (1 << 21))
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        read_any_status(large)
    deep = tmp_path / "deep.status.json"
    deep.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="is not a valid status"):
        read_any_status(deep)


def test_a_link_in_place_of_the_status_is_replaced_and_its_target_unchanged(tmp_path):
    target, path = tmp_path / "precious", tmp_path / "study.status.json"
    for name in ("study.status.json", "study.status.json.part"):
        target.write_text("precious")
        (tmp_path / name).symlink_to(target)
        file = StatusFile(path, a_run())
        file.write()  # of the part: the link is removed,
        file.write()  # and the next one is written
        assert target.read_text() == "precious"
        assert not path.is_symlink() and read_any_status(path)[0].party == "ana"
        path.unlink()


def test_many_monitors_do_not_keep_a_party_from_starting(tmp_path, monkeypatch):
    """Each looks at the lock; none reports another monitor as a process that runs."""
    path = kept(tmp_path)
    with locked(path):
        assert read_content(path)[1]
    fcntl = pytest.importorskip("fcntl")
    monitor = os.open(path.with_name(path.name + ".lock"), os.O_RDONLY)
    fcntl.flock(monitor, fcntl.LOCK_SH)  # a monitor that looks just now
    assert not read_content(path)[1]
    waits = []
    monkeypatch.setattr(
        "vertibayes_protocols.deployment.status.sleep",
        lambda seconds: waits.append(seconds) or os.close(monitor),
    )
    with locked(path):
        assert len(waits) == 1 and read_content(path)[1]
