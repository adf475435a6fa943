"""What `vertibayes status` says of a run."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vertibayes.cli.run_lines import changes_of_run, headline, lines_of_run
from vertibayes_protocols.deployment.run_status import RunStatus, a_party

AT = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def before(seconds):
    return (AT - timedelta(seconds=seconds)).isoformat()


def a_run(**fields):
    north = {**a_party("site"), "state": "joined", "at": before(8), "query": "choose"}
    given = {
        "plan": ["connecting", "structure", "writing"],
        "phase": "structure",
        "spent": {"connecting": 2.0},
        "since": before(90),
        "started": before(92),
        "updated": before(1),
        "parties": {"north": north, "dealer": {**a_party("dealer"), "state": "joined"}},
        "stage": "hill_climbing",
        "step": 3,
        "most_steps": 4,
        "share": 0.5,
        "left": 65.0,
    }
    return RunStatus("ana", "analyst", "0.2.0", "bayesian_network", **{**given, **fields})


def said(status, runs=True, at=AT):
    return lines_of_run(status, runs=runs, now=at)


def test_a_run_in_progress_says_its_phase_its_step_and_what_is_left():
    lines = said(a_run())
    assert lines[:3] == [
        "Bayesian network, run by ana: The run is in progress. Now: learn the structure.",
        "  hill climbing: step 3 of at most 4, 50% of this step, about 1 min left in this step",
        "  [###################...........] 62% of the steps",
    ]
    assert lines[3:8] == [
        "  + Connect to the parties (2 s)",
        "  > Learn the structure (2 min)",
        "    Write the results",
        "  north (site) has joined; its last message came 8 s ago (choose)",
        "  dealer has joined",
    ]


@pytest.mark.parametrize(
    ("fields", "runs", "expected"),
    [
        ({"ended": "written", "result": "out"}, False, "has ended. The results are in out."),
        ({"ended": "failed", "result": "north refuses"}, False, "failed: north refuses"),
        ({"ended": "stopped"}, False, "was stopped. The same command resumes it."),
        ({}, False, "has left no reason, for example because it was killed"),
        ({"connected": False}, True, "The run waits for the relay, which cannot be reached."),
        ({"waits": ["south"], "waits_for": "to come back"}, True,
         "The run waits for south to come back."),
    ],
)  # fmt: skip
def test_each_state_has_its_sentence(fields, runs, expected):
    status = a_run(**fields)
    assert expected in headline(status, runs=runs) and expected in said(status, runs)[0]
    assert any("hill climbing" in line for line in said(status, runs)) == runs


def test_a_run_that_failed_shows_the_phase_in_which_it_ended():
    marks = [line[2] for line in said(a_run(ended="failed"), False)[1:4]]
    assert marks == ["+", "x", " "]


def test_a_party_that_is_waited_for_is_named_with_the_command_that_starts_it():
    south = {**a_party("site"), "state": "away", "reason": "it hung up"}
    parties = {"south": south, "dealer": a_party("dealer"), "east": a_party("site")}
    lines = said(a_run(parties=parties, waits=["south", "dealer"]))
    remedy = "its owner starts it with `vertibayes"
    assert f"  south (site) is away: it hung up; {remedy} site site.toml`" in lines
    assert f"  dealer is not connected; {remedy} dealer dealer.toml`" in lines
    assert "  east (site) is not connected" in lines


def test_a_log_repeats_nothing_that_changes_with_the_clock_alone():
    waits = {"waits": ["north"], "waits_for": "to answer (choose)", "waits_since": before(3)}
    status = a_run(**waits)
    assert said(status, at=AT + timedelta(seconds=5)) != said(status)
    changed = replace(status, share=0.7, left=3.0, updated=before(0))
    assert changes_of_run(changed, runs=True) == changes_of_run(status, runs=True)
    assert changes_of_run(status, runs=True)[-1] == "hill climbing: step 3 of at most 4"


def test_the_lines_have_nothing_that_a_terminal_acts_on():
    status = a_run(waits=["\x1b]0;north\x07"], notes=[{"at": before(0), "text": "a\x1b[31mb"}])
    for text in ("\n".join(said(status)), "\n".join(changes_of_run(status, runs=True))):
        assert "The run waits for ?]0;north?" in text
        assert "\x1b" not in text and "\x07" not in text and "a?[31mb" in text


@pytest.mark.parametrize("time", ["", "yesterday", "2026-01-02T12:00:00", "9999-99-99"])
def test_a_status_whose_times_are_not_times_is_shown(time):
    status = replace(a_run(), since=time, started=time, updated=time, waits_since=time)
    assert "The run is in progress" in said(status)[0]
