"""Three processes of two analysts at the same parties at the same time, by way of a relay.

A party once served one session at a time, and each process of an analyst connected under the same
name: of five pairs of runs at the same time, all five ended with an error that blamed a party that
had done nothing ("was started again", "packet 12, wanted 11").
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.e2e.analyst import learned
from tests.e2e.processes import Processes
from vertibayes.counting import PlainCounter
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import DEALER

pytestmark = pytest.mark.machines

ANALYSTS = "alice", "bob"
ROUNDS = 5


@pytest.fixture(scope="module", params=[False, True], ids=["clear", "mutual TLS"])
def federation(request, tmp_path_factory, alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:6])
    options = {"analysts": ANALYSTS, "analyst_apart": True, "memory": True}
    folder = tmp_path_factory.mktemp("analysts")
    split = split_columns(data, 3)
    with Processes(folder, split, secure=request.param, **options) as processes:
        yield processes, data


def begin(processes, data, analyst, name, **changes):
    out = processes.folder / name
    out.mkdir(exist_ok=True)
    settings = {"out": str(out), "order": list(data.variables), **changes}
    processes.start(analyst, "analyst", name=name, **settings)
    return out


def assert_learned(data, out):
    """The model is that of the pooled data, to the last bit."""
    wanted = learned(PlainCounter(data))
    with np.load(out / "model.npz") as ours:
        assert set(ours) == set(wanted)
        assert all(np.array_equal(ours[name], wanted[name]) for name in wanted)


def test_two_processes_of_one_analyst_and_one_of_another_learn_at_the_same_time(federation):
    processes, data = federation
    for number in range(ROUNDS if processes.authority is None else 1):
        names = {f"alice-{number}": "alice", f"again-{number}": "alice", f"bob-{number}": "bob"}
        outs = [begin(processes, data, analyst, name) for name, analyst in names.items()]
        for name in names:
            processes.running[name].wait_for("learned")
        for out in outs:
            assert_learned(data, out)
        for party in (*processes.sites, DEALER):
            for _ in names:
                assert processes.running[party].wait_for("ended") == "ended None None"


def test_an_analyst_that_is_killed_and_started_again_gets_in_within_seconds(federation):
    """Its study goes on; the parties ask the relay whether the process that was killed is away."""
    processes, data = federation
    processes.stop_at("site-1", "part", seconds=0.5)
    out = begin(processes, data, "alice", "killed")
    processes.running["site-1"].wait_for("here")
    processes.running["killed"].kill()
    begin(processes, data, "alice", "killed")
    processes.running["killed"].wait_for("ready")
    begun = time.monotonic()
    processes.running["killed"].wait_for("learned")
    assert time.monotonic() - begun < 3.0 + 2.0  # and it learns
    assert_learned(data, out)
