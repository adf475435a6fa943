"""The analyst, a process of its own, is killed in each phase of one study, and started again."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.e2e.analyst import learned
from tests.e2e.processes import LIMIT, Processes
from vertibayes.counting import PlainCounter
from vertibayes.splitting import split_columns
from vertibayes.study_files import TableFile
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.storage.ledger_entries import Tables, read_ledger

pytestmark = pytest.mark.machines

# In this order: each needs what the study had come to before. Who is about to send what, when.
PHASES = {
    "meet": ("site-1", "point"),
    "describe": ("site-1", "description"),
    "commit": ("site-1", "masked"),
    "tables": (DEALER, "correction"),
    "extension": ("site-1", "part"),
    "open": ("site-1", "share"),
}
HELD = 0.5  # seconds that the message waits: the analyst is dead when it leaves


@pytest.fixture
def processes(tmp_path, alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:9])
    patience = {"gone": 1.0, "probe": 0.3}
    options = {"patience": patience, "memory": True, "analyst_apart": True}
    with Processes(tmp_path, split_columns(data, 3), **options) as found:
        found.settings["order"] = list(data.variables)
        yield found, data


def kept(processes):
    """Return the families that the analyst's file has."""
    with TableFile(processes.folder / "study" / "tables") as file:
        return [tuple(sorted((t.family.child, *t.family.parents))) for t in file.tables]


def asked(processes, site):
    """Return the tables that a site's ledger has, in the order in which they were asked."""
    path = processes.folder / f"{site}.jsonl"
    notes = [entry.noted for entry in read_ledger(path).entries] if path.exists() else []
    tables = [table for note in notes if isinstance(note, Tables) for table in note.tables]
    return [tuple(sorted(table.variables)) for table in tables]


def kill_in(processes, phase):
    """Have the analyst learn, kill it in a phase; everyone left ends with its name in 30 s."""
    party, kind = PHASES[phase]
    processes.stop_at(party, kind, seconds=HELD)
    processes.start(ANALYST, "analyst")
    processes.running[party].wait_for("here")
    processes.running[ANALYST].kill()
    start = time.monotonic()
    for other in (*processes.sites, DEALER):
        told = processes.running[other].wait_for("ended")
        assert told.startswith(f"ended {ANALYST} "), (phase, told)
        assert processes.running[other].process.poll() is None
    assert time.monotonic() - start < 30


def finish(processes):
    processes.start(ANALYST, "analyst")
    processes.running[ANALYST].wait_for("learned")
    assert processes.running[ANALYST].process.wait(LIMIT) == 0
    for other in (*processes.sites, DEALER):
        assert processes.running[other].wait_for("ended") == "ended None None"
    with np.load(processes.folder / "model.npz") as file:
        return dict(file)


def test_the_analyst_is_killed_in_each_phase_and_goes_on(processes):
    """The model is that of pooled data; no table that was kept is asked again, no id drawn anew.

    A run whose file does not yet have the study begins another: the sites' mark comes first.
    """
    processes, data = processes
    before, had, promised = dict.fromkeys(processes.sites, 0), set(), {}
    for phase in (*PHASES, "none"):
        had = set(kept(processes))
        if phase in PHASES:
            kill_in(processes, phase)
        else:
            model = finish(processes)
        for site, count in before.items():
            tables = asked(processes, site)
            assert not had.intersection(tables[count:]), (phase, site)
            before[site] = len(tables)
            found, earlier = processes.promised(site), promised.get(site, {})
            assert found == (earlier if had else {**found, **earlier}), (phase, site)
            promised[site] = found
    assert all(promised.values())
    assert had, "nothing had been kept: there was nothing to ask again"
    wanted = learned(PlainCounter(data))
    assert len(wanted["edges"]) and model.keys() == wanted.keys()
    assert all(np.array_equal(model[name], wanted[name]) for name in wanted)
