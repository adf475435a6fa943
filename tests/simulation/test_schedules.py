"""Schedules of faults: all end as they must, equal seeds are equal, planted mistakes are found."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.documents import ROOT
from tests.simulation import schedule
from tests.simulation.faults import KINDS
from tests.simulation.planted import PLANTED

SCHEDULES, A_TEST = 120, 10
FOUND = {  # a seed that finds a planted mistake, as the product is now; else one of the first does
    "note_after_the_first_byte": (0, "its ledger does not have on disk"),
    "charged_twice_on_resume": (71, "has charged 6 tables of 3"),
    "mask_kept_over_a_restart": (0, "is used in two sessions"),
    "release_lost_to_the_ledger": (79, "its ledger does not have on disk"),
    "name_before_content": (0, "its memory does not have on disk"),
}


@pytest.mark.parametrize("first", range(0, SCHEDULES, A_TEST))
def test_each_schedule_ends_as_without_faults_or_is_refused_after_a_backup(first):
    for seed in range(first, first + A_TEST):
        outcome = schedule.run(seed)
        assert outcome.kind == "identical" or "backup" in outcome.faults, seed


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_within_so_many_schedules(name):
    """Each of these schedules ends well without the mistake: see above."""
    likely, reason = FOUND[name]
    with PLANTED[name]():
        found = next(filter(None, map(failure, (likely, *range(SCHEDULES)))), "")
    assert reason in found


def failure(seed):
    """Return what fails in a schedule, or nothing."""
    try:
        schedule.run(seed)
    except AssertionError as error:
        return str(error)
    return ""


def test_a_seed_replays_its_schedule_in_another_process():
    """Event by event, whatever the order in which that process has its sets."""
    words = [sys.executable, str(ROOT / "benchmarks" / "simulation.py"), "--seed", "9", "--trace"]
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=ROOT)
    lines = []
    outcome = schedule.run(9, trace=lines)
    assert ran.stdout.splitlines() == [*lines, str(outcome)], ran.stderr
    assert any("FAULT" in line for line in lines)
    assert outcome.digest != schedule.run(19).digest


def test_all_kinds_of_faults_strike():
    struck = {f.kind for seed in range(300) for f in schedule.drawn(seed, 300)}
    assert struck == set(KINDS)
