"""Calibration over a network in memory: sites that are killed at any message, and come back."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from tests.calibration_worlds import agree, chain, parties, ring, simulated
from tests.protocols.network import QUICK, Network, Parties
from vertibayes.calibration.between_machines import calibrate_sites
from vertibayes_mpc.signing import SigningKey
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.transports.network import session_of_those_there

HELD = parties(4)


def site_data(data):
    codes = {name: column.astype(np.uint8) for name, column in data.codes.items()}
    return SiteData(data.variables, codes, numerics=data.numerics, numbers=data.numbers)


class Sites(Parties):
    """Sites that allow everything, and the analyst's sessions with those that are there."""

    def __init__(self, network):
        data = {name: site_data(part) for name, part in HELD.items()}
        super().__init__(data, network, QUICK._replace(hello=1.0))
        self.signing = {p: SigningKey.of(self.known[p].keys).public for p in HELD}
        self.role = AnalystRole(
            public_keys=self.mailbox.identity.peers,
            signing_keys=self.signing,
            keys=self.mailbox.identity.keys,
        )
        for site in HELD:
            self.prepare(site)

    def prepare(self, site):
        self.roles[site].policy, self.roles[site].signing_keys = ALLOW_ALL, self.signing

    def start_again(self, site):
        self.start(site, site_data(HELD[site]))
        self.prepare(site)

    @contextmanager
    def open_session(self):
        transport, absent = session_of_those_there(self.mailbox, self.sites)
        with Session(self.role, transport) as session:
            yield session, absent


def killing(site, message):
    """Return a network on which a site is killed as it sends a packet to s2, counted from 1."""
    sent = []

    def change(sender, receiver, packet):
        if (sender, receiver) == (site, "s2"):
            sent.append(packet)
            if len(sent) == message:
                network.kill(site)
        return packet

    network = Network(change)
    return network


@pytest.mark.parametrize(
    ("network", "shown", "message"),
    [(chain(4), True, m) for m in (1, 2, 3)] + [(ring(4), False, m) for m in (2, 9)],
)
def test_a_site_that_is_killed_is_left_out_and_takes_part_again(network, shown, message):
    with Sites(killing("s1", message)) as sites:

        def restart(part):
            if part.absent:
                sites.start_again("s1")

        reached = calibrate_sites(
            sites.open_session,
            agree(network, HELD, shown=shown),
            8,
            rounds_per_part=2,
            finished=restart,
        )
    others = ("s0", "s2", "s3")
    absences = [part.absent for part in reached.parts]
    gone = absences.index(("s1",))
    assert reached.parts[gone].parties == others
    assert reached.parts[gone - 1].parties in (others, tuple(HELD)), "or killed between two parts"
    assert reached.parts[gone + 1].back == ("s1",)
    assert reached.parts[-1].parties == tuple(HELD)
    assert np.isfinite(reached.statistics).all()


def test_a_site_that_is_absent_from_the_start_is_not_waited_for():
    with Sites(Network()) as sites:
        sites.network.kill("s3")
        agreed = agree(chain(4), HELD, mixing="relay")
        reached = calibrate_sites(sites.open_session, agreed, 2)
    (part,) = reached.parts
    assert (part.absent, part.parties) == (("s3",), ("s0", "s1", "s2"))
    expected = simulated(agreed, HELD, 2, lambda _: {"s3"})[-1]
    mean = expected.statistics[expected.present].mean(axis=0)
    assert np.abs(reached.statistics - mean).max() < 1e-9
