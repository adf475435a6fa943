"""Calibration over sites that are processes of their own, on loopback."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from tests.calibration_worlds import STATES, agree, chain, parties, ring, simulated
from tests.e2e.party import signing_of
from tests.e2e.processes import Processes
from vertibayes.calibration.between_machines import calibrate_sites
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.transports.network import session_of_those_there

pytestmark = pytest.mark.machines

PATIENCE = {"gone": 2.0, "probe": 0.5, "hello": 20.0}
POLICY = {"exact_sums": True, "exact_neighbours": True}
HELD = parties(8, numbers=False)


def site_data(data):
    return SiteData(data.variables, {n: c.astype(np.uint8) for n, c in data.codes.items()})


def opening(processes):
    known = processes.mailbox.identity
    signing = signing_of(processes.settings)
    role = AnalystRole(public_keys=dict(known.peers), signing_keys=signing, keys=known.keys)

    @contextmanager
    def open_session():
        mailbox, sites = processes.mailbox, processes.sites
        transport, absent = session_of_those_there(mailbox, sites, hello=6.0)
        with Session(role, transport) as session:
            yield session, absent

    return open_session


def away(*numbers):
    return lambda number: {"s3"} if number in numbers else set()


def test_eight_sites_on_a_chain_and_on_a_ring_reach_the_simulated_model_while_one_is_killed(
    tmp_path,
):
    data = {name: site_data(part) for name, part in HELD.items()}
    with Processes(tmp_path, data, patience=PATIENCE, policy=POLICY) as processes:

        def kill_and_start(part):
            if part.first == 1:
                processes.running["s3"].kill()
            elif part.first == 3:
                processes.start("s3")
                processes.running["s3"].wait_for("ready")

        on_chain = agree(chain(8), HELD, STATES, "metropolis", "uniform")
        reached = calibrate_sites(
            opening(processes), on_chain, 6, rounds_per_part=2, finished=kill_and_start
        )
        on_ring = agree(ring(8), HELD, STATES, shown=False)
        summed = calibrate_sites(opening(processes), on_ring, 2)
    assert [(part.absent, part.back) for part in reached.parts] == [
        ((), ()), (("s3",), ()), ((), ("s3",))
    ]  # fmt: skip
    expected = simulated(on_chain, HELD, 6, away(3, 4))
    assert np.abs(reached.statistics - expected[-1].statistics.mean(axis=0)).max() < 1e-9
    assert reached.errors.tolist() == [step.errors.sum() for step in expected]
    expected = simulated(on_ring, HELD, 2)
    assert np.abs(summed.statistics - expected[-1].statistics.mean(axis=0)).max() < 1e-9
    assert summed.records.tolist() == [sum(d.records for d in HELD.values())] * 2
