"""What must hold in every schedule, while it runs and after it.

While it runs: nothing leaves a site that its disk would not remember after a loss of power, and no
mask hides two things. After it: the tables are those of the undisturbed run; what the memory of a
site, its ledger and what left it say is the same, and nothing is charged twice.
"""

from __future__ import annotations

import io
import json
from contextlib import contextmanager

import numpy as np

from tests.simulation.world import Failure
from vertibayes_mpc.randomness import StreamKey
from vertibayes_protocols.storage.ledger_entries import Tables, read_ledger
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.connection import Connection

SHARES = "share", "kept share"  # kinds of messages by which tables leave a site


class Watched:
    """What has left the sites of a world."""

    def __init__(self, world):
        self.world = world
        self.masks = {}  # (party, key, label, place) -> the session that used it
        self.left = {}  # site -> digests of the shares that it has sent

    def sending(self, connection, outbox):
        """Look at messages before they leave."""
        site = self.world.parties.get(connection.party)
        for receiver, message in outbox.items():
            if message.kind in SHARES and receiver == connection.analyst:
                self.left.setdefault(site.name, set()).add(bytes(message.values))
                self._is_remembered(site)

    def _is_remembered(self, site):
        """Check that what leaves now is in the memory and in the ledger, whatever happens."""
        ledger, memory = site.disk.lasting("ledger"), notes_of(site.disk.lasting("memory"))
        if not tables_of(ledger):
            raise Failure(f"tables leave {site.name} that its ledger does not have on disk")
        if not memory.get("released", [0])[0]:
            raise Failure(f"tables leave {site.name} that its memory does not have on disk")

    def expanding(self, key, label, start):
        """Look at a mask before it is used."""
        place = self.world.current.party.name, key.secret, label, start
        session = self.masks.setdefault(place, self.world.session)
        if session != self.world.session:
            raise Failure(f"a mask of {place[0]} is used in two sessions")


@contextmanager
def watching(world):
    """Watch what leaves the parties of a world, in a block."""
    watched = world.watched = Watched(world)
    send, expand = Connection.send, StreamKey.expand

    def sending(self, outbox):
        watched.sending(self, outbox)
        send(self, outbox)

    def expanding(self, label, count, start=0):
        watched.expanding(self, label, start)
        return expand(self, label, count, start)

    Connection.send, StreamKey.expand = sending, expanding
    try:
        yield
    finally:
        Connection.send, StreamKey.expand = send, expand


def notes_of(content):
    """Return the notes of a memory's file; nothing of an empty one."""
    if not content:
        return {}
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return json.loads(file["notes"].tobytes())


def tables_of(content):
    """Return how many released tables the whole lines of a ledger have."""
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    groups = [group for line in map(json.loads, lines) for group in line.get("released", ())]
    return sum(len(group["tables"]) for group in groups)


def check(consortium, kind, what, expected):
    """Check what a schedule has left."""
    if kind == "identical" and what != expected:
        raise Failure(f"another result: {what}, expected {expected}")
    went_back = any(p.went_back for p in consortium.world.parties.values())
    if kind != "identical" and not went_back:
        raise Failure(f"no result, although all faults are over: {what}")
    tables = len(expected[0])
    for site in consortium.sites:
        released, noted = charged(site), noted_tables(site)
        went_back = site.went_back
        if kind == "identical" and not went_back and released != tables:
            raise Failure(f"{site.name} has charged {released} tables of {tables}")
        if released not in (0, tables):
            raise Failure(f"{site.name} has charged {released} tables of {tables}")
        if noted != released and not went_back:
            raise Failure(f"{site.name} has noted {noted} tables, and charged {released}")
        shares = consortium.world.watched.left.get(site.name, ())
        if len(shares) > 1:
            raise Failure(f"{site.name} has sent {len(shares)} different shares of one release")


def charged(site):
    """Return how many tables a site's memory has charged."""
    path = site.folder / "memory"
    return SiteMemory.read(path).released.tables if path.exists() else 0


def noted_tables(site):
    """Return how many released tables a site's ledger has."""
    path = site.folder / "ledger"
    if not path.exists():
        return 0
    noted = [entry.noted for entry in read_ledger(path).entries]
    return sum(len(tables.tables) for tables in noted if isinstance(tables, Tables))
