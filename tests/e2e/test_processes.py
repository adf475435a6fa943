"""Analyst, dealer, three sites and a relay, each a process of its own, on loopback."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tests.e2e.processes import Processes
from tests.protocols.test_star import collects
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.transports.network import NetworkTransport

pytestmark = pytest.mark.machines


def counter_of(processes, **options):
    session = processes.session()
    return session, SecureCounter(open_study(session, processes.sites, DEALER, **options))


def assert_same_model(counter, data):
    """Structure and CPTs are those of pooled data, to the last bit."""
    plain = PlainCounter(data)
    wanted = k2(plain)
    assert k2(counter) == wanted and wanted.edges
    ours, theirs = fit_cpts(counter, wanted), fit_cpts(plain, wanted)
    assert all(np.array_equal(ours.cpts[name], theirs.cpts[name]) for name in wanted.nodes)


@pytest.mark.parametrize("secure", [False, True], ids=["clear", "mutual TLS"])
def test_alarm_over_processes(tmp_path, alarm_data, secure):
    order = list(alarm_data.variables)
    with Processes(tmp_path, split_columns(alarm_data, 3), secure=secure) as processes:
        session, counter = counter_of(processes, order=order)
        assert_same_model(counter, alarm_data)
        session.close()
        for party in (*processes.sites, DEALER):
            assert processes.running[party].wait_for("ended") == "ended None None"


KILLED = {  # who, and before which of its messages: the kind, and how many of it went before
    "a site, describe": ("site-1", "description", 0),
    "a site, commit": ("site-1", "columns", 0),
    "a site, extension": ("site-1", "part", 0),
    "a site, open": ("site-1", "share", 0),
    "the dealer, meet": (DEALER, "answer", 0),
    "the dealer, commit": (DEALER, "answer", 1),
    "the dealer, extension": (DEALER, "part", 0),
    "the dealer, tables": (DEALER, "correction", 0),
}


@pytest.mark.parametrize("phase", KILLED)
def test_a_party_is_killed(tmp_path, alarm_data, phase):
    """Everyone left ends within 30 s with its name; started again, the study goes on."""
    data = alarm_data.take(list(alarm_data.variables)[:9])
    split = split_columns(data, 3)
    victim, *message = KILLED[phase]
    stop, study = {victim: message}, bytes(range(16))
    patience = {"gone": 2.0, "probe": 0.5}
    with Processes(tmp_path, split, stop=stop, memory=True, patience=patience) as processes:
        killed = []

        def kill():
            processes.running[victim].wait_for("here")
            processes.running[victim].kill()
            killed.append(time.monotonic())

        thread = threading.Thread(target=kill)
        thread.start()
        with pytest.raises(PeerGoneError) as caught:
            k2(counter_of(processes, order=list(data.variables), study=study)[1])
        thread.join()
        assert caught.value.party == victim
        for party in {*split, DEALER} - {victim}:
            assert processes.running[party].wait_for("ended").startswith(f"ended {victim} ")
        assert time.monotonic() - killed[0] < 30
        promised = {site: processes.promised(site) for site in split}
        processes.start(victim)
        processes.running[victim].wait_for("ready")
        session, counter = counter_of(processes, order=list(data.variables), study=study)
        assert_same_model(counter, data)
        session.close()
        for site, found in promised.items():
            assert processes.promised(site).keys() == {study.hex()}
            assert found in ({}, processes.promised(site)), "something else was promised"


def test_a_star_goes_on_when_a_party_is_killed_and_begins_without_it(tmp_path, alarm_data):
    split = split_columns(alarm_data.take(list(alarm_data.variables)[:6]), 3)
    killed, *left = split
    patience = {"gone": 2.0, "probe": 0.5, "hello": 5.0}
    with Processes(tmp_path, split, patience=patience) as processes:
        transport = NetworkTransport(processes.mailbox, processes.sites, star=True)
        assert transport.run(collects(processes.sites, need=2)) == [killed, *left]
        processes.running[killed].kill()
        assert transport.run(collects(processes.sites, need=2)) == left
        transport.close()
        transport = NetworkTransport(processes.mailbox, processes.sites, star=True, most_absent=1)
        assert transport.absent == {killed}
        assert transport.run(collects(processes.sites, need=2)) == left
        transport.close()
        for party in left:
            for _ in range(2):
                assert processes.running[party].wait_for("ended") == "ended None None"


PHASES = {"commit": "columns", "extension": "part", "tables": "correction", "open": "share"}


def test_the_relay_is_killed_in_each_phase(tmp_path, alarm_data):
    """While a site, or the dealer, is about to send a message."""
    data = alarm_data.take(list(alarm_data.variables)[:9])
    split, patience = split_columns(data, 3), {"gone": 2.0, "probe": 0.5}
    with Processes(tmp_path, split, patience=patience) as processes:
        for phase, kind in PHASES.items():
            sender = DEALER if kind == "correction" else "site-1"
            processes.stop_at(sender, kind, seconds=0.5)
            kill = threading.Thread(target=killed_when_here, args=(processes, sender))
            kill.start()
            start = time.monotonic()
            with pytest.raises(PeerGoneError) as caught:
                k2(counter_of(processes, order=list(data.variables))[1])
            kill.join()
            assert caught.value.party == "relay", phase
            for party in (*split, DEALER):
                assert processes.running[party].wait_for("ended").startswith("ended relay ")
            assert time.monotonic() - start < 30
            processes.start("relay")
            processes.running["relay"].wait_for("ready")
        session, counter = counter_of(processes, order=list(data.variables))
        assert_same_model(counter, data)
        session.close()


def killed_when_here(processes, sender):
    processes.running[sender].wait_for("here")
    processes.running["relay"].kill()
