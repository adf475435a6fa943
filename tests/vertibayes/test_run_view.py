"""What is said of a run, on the terminal and on its page."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vertibayes.report.live.view import changes_of, lines_of, unreadable, view_of
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
    return RunStatus("ana", "0.2.0", "bayesian_network", **{**given, **fields})


def said(status, runs=True):
    return view_of(status, runs=runs, now=AT)


def test_a_run_in_progress_says_its_phase_its_step_and_what_is_left():
    view = said(a_run())
    assert view["title"] == "Bayesian network, run by ana" and view["state"] == "runs"
    assert view["headline"] == "The run is in progress. Now: learn the structure."
    step = "hill climbing: step 3 of at most 4, 50% of this step, about 1 min left in this step"
    assert view["progress"] == step and view["share"] == 0.625 and view["well"]
    phases = [(phase["name"], phase["state"], phase["took"]) for phase in view["phases"]]
    assert phases == [
        ("Connect to the parties", "done", "2 s"),
        ("Learn the structure", "now", "2 min"),
        ("Write the results", "to come", ""),
    ]
    says = [party["says"] for party in view["parties"]]
    assert says == ["has joined; its last message came 8 s ago (choose)", "has joined"]
    assert [party["role"] for party in view["parties"]] == ["site", ""]


@pytest.mark.parametrize(
    ("fields", "runs", "state", "headline"),
    [
        ({"ended": "written", "result": "out"}, False, "ended", "The results are in out."),
        ({"ended": "failed", "result": "north refuses"}, False, "ended", "failed: north refuses"),
        ({"ended": "stopped"}, False, "ended", "was stopped"),
        ({}, False, "does not run", "has left no reason, for example because it was killed"),
        ({"connected": False}, True, "waits", "waits for the relay"),
        (
            {"waits": ["south"], "waits_for": "to come back"},
            True,
            "waits",
            "The run waits for south to come back.",
        ),
    ],
)
def test_each_state_has_its_sentence(fields, runs, state, headline):
    view = said(a_run(**fields), runs)
    assert view["state"] == state and headline in view["headline"]
    assert view["over"] == (not runs) and view["well"] == (fields.get("ended") == "written")


def test_a_run_that_failed_shows_the_phase_in_which_it_ended():
    states = [phase["state"] for phase in said(a_run(ended="failed"), False)["phases"]]
    assert states == ["done", "ended here", "to come"]


def test_the_headline_is_the_same_from_second_to_second():
    """A screen reader reads each change of it."""
    waits = {"waits": ["north"], "waits_for": "to answer (choose)", "waits_since": before(3)}
    status = a_run(**waits)
    later = view_of(status, runs=True, now=AT + timedelta(seconds=5))
    assert later["headline"] == said(status)["headline"] and later["facts"] != said(status)["facts"]
    assert changes_of(later) == changes_of(said(status))


def test_the_lines_have_what_the_page_has_and_nothing_that_a_terminal_acts_on():
    status = a_run(waits=["\x1b]0;north\x07"], notes=[{"at": before(0), "text": "a\x1b[31mb"}])
    text = "\n".join(lines_of(said(status)))
    assert text.startswith("Bayesian network, run by ana: The run waits for ?]0;north?")
    assert "> Learn the structure (2 min)" in text and "north (site) has joined" in text
    assert "\x1b" not in text and "a?[31mb" in text


@pytest.mark.parametrize("time", ["", "yesterday", "2026-01-02T12:00:00", "9999-99-99"])
def test_a_status_whose_times_are_not_times_is_shown(time):
    status = replace(a_run(), since=time, started=time, updated=time, waits_since=time)
    assert said(status)["headline"].startswith("The run is in progress")


def test_a_status_that_cannot_be_read_is_not_over():
    view = unreadable("it has the format 9")
    assert "it has the format 9" in view["headline"] and not view["over"] and not view["well"]
