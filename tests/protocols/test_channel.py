"""Channels over a network in memory: the same results as in one process; what goes wrong is named."""

from __future__ import annotations

import numpy as np
import pytest

from protocols.federation import ANALYST, DEALER, federate
from protocols.variables import Family
from tests.protocols.network import Network, Parties, same_tables
from tests.protocols.small import data_of
from vertibayes.counting import SecureCounter
from vertibayes.structure.k2 import k2
from vertibayes.splitting import split_columns

DATA = data_of(a="xy", b="z", c="w")
FAMILIES = [Family("x", ("z",)), Family("w", ("x", "y", "z")), Family("y")]


def counter_of(parties, **options):
    session = parties.session()
    return session, SecureCounter(session, parties.sites, DEALER, block_rows=16, **options)


def test_tables_are_those_of_one_process():
    with federate(DATA) as federation:
        local = SecureCounter.of(federation, block_rows=16)
        wanted = local.tables(FAMILIES)
        rounds = federation.traffic.rounds
        links = federation.traffic.bytes_sent
    with Parties(DATA) as parties:
        session, counter = counter_of(parties)
        assert same_tables(counter.tables(FAMILIES), wanted)
        session.close()
        assert set(parties.errors("a", "b", "c", DEALER).values()) == {None}
        traffic = session.transport.traffic
    assert traffic.rounds == rounds
    sent = {p: traffic.bytes_sent[ANALYST, p] - links[ANALYST, p] for p in ("a", "b", "c")}
    assert all(0 < more < 5000 for more in sent.values())
