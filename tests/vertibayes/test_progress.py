"""How far a run is: a line on a terminal, lines of a log otherwise."""

from __future__ import annotations

import os
import pty
import sys
from threading import Event

import pytest

from tests.e2e.command import run
from tests.protocols.test_masked_costs import drawn
from vertibayes.cli.progress import Lines, Progress, duration, progress_shown
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.queries.tables.counting import grouped
from vertibayes_protocols.queries.tables.ways import costs_of
from vertibayes_protocols.variables import Family, Rows


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def test_the_time_that_is_left_follows_from_the_speed_of_the_step():
    clock, shown = Clock(), []
    progress = Progress(shown.append, clock)
    progress("K2", 1, 3)
    progress.watch(0, 400)
    clock.seconds = 20
    progress.watch(100, 400)
    progress.watch(400, 400)
    assert shown == [
        "K2: step 2 of at most 3",
        "K2: step 2 of at most 3, 0% of this step",
        "K2: step 2 of at most 3, 25% of this step, about 1 min left in this step",
        "K2: step 2 of at most 3, 100% of this step",
    ]


def test_a_log_has_a_line_every_half_minute_or_tenth_and_a_short_run_has_none():
    clock, written = Clock(), []
    lines = Lines(written.append, clock)
    progress = Progress(lines, clock)
    lines.share = lambda: progress.share
    progress("K2", 0, 1)
    for second, done in ((9, 1), (11, 2), (13, 3), (41, 4), (43, 5), (47, 15), (48, 40)):
        clock.seconds = second
        progress.watch(done, 100)
    assert [line.split(", ")[1] for line in written] == [
        "2% of this step",  # after ten seconds
        "4% of this step",  # half a minute later
        "15% of this step",  # a tenth later
    ]
    assert all(line.endswith(" left in this step\n") for line in written)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (59, "60 s"), (100, "2 min"), (9000, "2.5 h")]
)
def test_durations_are_short(seconds, words):
    assert duration(seconds) == words


def shown_on_a_terminal(monkeypatch, *, quiet):
    """Return what a pseudo-terminal shows of a run."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress_shown(quiet) as progress:
            progress("K2", 0, 3)
            progress.watch(1, 4)
        terminal.write("end")
        terminal.flush()
        text = b""
        while not text.endswith(b"end"):
            text += os.read(ours, 4096)
    os.close(ours)
    return text.decode()


def test_a_terminal_shows_the_progress_unless_it_is_quiet(monkeypatch):
    assert "K2: step 1 of at most 3, 25% of this step" in shown_on_a_terminal(
        monkeypatch, quiet=False
    )
    assert shown_on_a_terminal(monkeypatch, quiet=True) == "end"


def test_a_short_run_writes_nothing_to_a_pipe(capsys):
    with progress_shown(quiet=False) as progress:
        progress("K2", 0, 3)
        progress.watch(1, 4)
    assert capsys.readouterr().err == ""


def test_a_step_without_a_share_shows_how_long_it_has_lasted():
    clock, shown = Clock(), []
    progress = Progress(shown.append, clock)
    progress("learning", 0, 2)
    clock.seconds = 70
    progress.tick()
    assert shown[1:] == ["learning: step 1 of at most 2, since 1 min"]


def each_step_lasts_until_a_tick(monkeypatch):
    ticked, step, tick = Event(), Progress.__call__, Progress.tick

    def wait(self, *stage):
        step(self, *stage)
        ticked.clear()
        assert ticked.wait(60)

    def tell(self):
        tick(self)
        ticked.set()

    monkeypatch.setattr(Progress, "__call__", wait)
    monkeypatch.setattr(Progress, "tick", tell)


def test_a_long_run_of_naive_bayes_logs_its_step(capsys, tmp_path, monkeypatch):
    """Before: `vertibayes nb` showed nothing until its end."""
    rows = [f"{i % 2},{i % 3},{'y' if i % 5 else 'n'}" for i in range(40)]
    (tmp_path / "r.csv").write_text("\n".join(["a,b,c", *rows]))
    asked = "nb", "--data", tmp_path / "r.csv", "--target", "c", "--parties", "2"
    asked = *asked, "--noise", "none", "--holdout", "0.3"
    columns, records = ("--method", "vdpnb"), ("--method", "hdpnb", "--via", "masked")
    monkeypatch.setattr("vertibayes.cli.progress.TICK_SECONDS", 0.01)
    for seconds in ("QUIET_SECONDS", "LINE_SECONDS"):
        monkeypatch.setattr(f"vertibayes.cli.progress.{seconds}", 0.0)
    each_step_lasts_until_a_tick(monkeypatch)
    for method in (columns, records):
        code, _, error = run(capsys, *asked, *method, "--out", tmp_path / method[1])
        assert code == 0 and "learning: step 1 of at most 2, since 1 s\n" in error
        assert "prediction: step 2 of at most 2\n" in error


def test_a_study_notifies_its_watchers_of_each_query_by_its_weight():
    data = drawn([12] * 5, 500)
    with federate(split_columns(data, 2)) as federation:
        session, sites, dealer = federation.session, federation.sites, federation.dealer
        study = open_study(session, sites, dealer, memory=50_000)
        names = list(study.study.variables)
        families = [Family(a, (b,)) for a in names for b in names if a < b]
        seen = []
        with progress_shown(quiet=True, watchers=study.watchers):
            study.watchers.append(lambda *counted: seen.append(counted))
            asked = list(study.reveal(families, missing=False, rows=Rows()))
        assert len(study.watchers) == 1  # the progress has left
    costs = costs_of(study.study, 500, missing=False)
    whole = costs.picoseconds(costs.total(grouped(families)))
    assert len(seen) == len(asked) + 1 > 2
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[0] == (0, whole) and seen[-1] == (whole, whole)
