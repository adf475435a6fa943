"""Small sites, their study, and a federation whose packets can be read and changed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from tests.randomness import SeededRandomness
from vertibayes_mpc.rounds import Expect
from vertibayes_protocols.effects import Noise, RecordStatistics, saying
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.queries import Commit, Meet
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.query import Query
from vertibayes_protocols.session import QUERY_CELLS
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.study import Study
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.variables import Family, Rows, Variable
from vertibayes_protocols.wire import ENVELOPE, decode, encode

STATES = ("no", "yes", "maybe")


def data_of(records=40, **sites):
    """Draw the sites' data: ``data_of(a="xy", b="z")`` are two sites with three columns."""
    generator = np.random.default_rng(7)
    drawn = {}
    for site, names in sites.items():
        codes = {name: generator.integers(0, 3, 100).astype(np.uint8)[:records] for name in names}
        drawn[site] = SiteData({name: Variable(name, STATES) for name in names}, codes)
    return drawn


def study_of(data, name=b"one study", **changes):
    """Return the study of all columns; `changes` replace parts of it."""
    variables = {name: v for site in data.values() for name, v in site.variables.items()}
    holders = {v: tuple(s for s in data if v in data[s].variables) for v in variables}
    records = next(iter(data.values())).records
    return replace(Study(name, variables, holders, records, DEALER, 16, 1 << 20), **changes)


def seeded(data, **options):
    """Start a repeatable federation."""
    return federate(data, randomness=SeededRandomness(), **options)


def memories(*sites):
    return {site: SiteMemory(randomness=SeededRandomness(site.encode())) for site in sites}


def committed(data, study=None, **options):
    """Start a federation and commit its study; return both."""
    federation = seeded(data, **options)
    if any(site.ids is not None for site in data.values()):
        meet(federation)
    return federation, federation.session.ask(Commit.of(study or study_of(data))).study


def meet(federation):
    """Have the parties of a federation meet."""
    federation.session.ask(Meet.of(federation.session.role, federation.sites, DEALER))


def count(federation, study, *families, rows=Rows(), missing=False):
    """Ask for the tables of families, as tuples of names; return them in their order."""
    asked = [Family(child, tuple(parents)) for child, *parents in families]
    query, places = ask_tables(federation.session.role.joined, asked, missing, rows)
    tables = federation.session.ask(query)
    return [tables[place] for place in places]


def refusal(federation, query):
    """Ask a query that a site refuses; return its reason."""
    with pytest.raises(QueryRefusedError) as caught:
        federation.session.ask(query)
    assert caught.value.site in federation.sites
    return caught.value.reason


def refusal_at(site, query):
    """Return why a site refuses a query that it considers."""
    with pytest.raises(QueryRefusedError) as caught:
        consider(site, query)
    assert caught.value.site == site.party
    return caught.value.reason


def refusal_of(federation, make):
    """Return why there is no such query, as its constructor says, or why a site refuses it."""
    try:
        query = make()
    except ValueError as error:
        return str(error)
    return refusal(federation, query)


def received(query):
    """Return a query as the party reads it that receives it."""
    return decode(encode(query), ANALYST, Expect(Query, QUERY_CELLS))


def costing(**changes):
    """Return the effects of a query that costs this, and shows nothing."""
    return replace(saying((), ()), **changes)


def noisy(cost):
    """Return the effects of a release that costs this of the privacy budget."""
    return costing(leaves=RecordStatistics(Noise(cost, ""), None))


def plain(data, *names, places=slice(None)):
    """Count a table from all sites' codes."""
    codes = {name: c for site in data.values() for name, c in site.codes.items()}
    table = np.zeros([3] * len(names), np.int64)
    np.add.at(table, tuple(codes[name][places] for name in names), 1)
    return table


def sealed(packet, message=None, **changes):
    """Seal a packet anew: with another message, or with a changed envelope."""
    names = "magic", "session", "sender", "receiver", "counter", "depth", "length"
    body = packet[1] if message is None else encode(message)
    parts = dict(zip(names, ENVELOPE.unpack(packet[0]), strict=True))
    return ENVELOPE.pack(*{**parts, "length": len(body), **changes}.values()), body


@contextmanager
def packets(monkeypatch, change=lambda sent, packet: packet):
    """Note every (message, packet) on its way, and deliver what `change` makes of the packet."""
    seen = []

    class Watched(EnvelopedPackets):
        def pack(self, sent):
            packet = super().pack(sent)
            seen.append((sent, packet))
            return change(sent, packet)

    with monkeypatch.context() as patch:
        patch.setattr("vertibayes_protocols.transports.local.EnvelopedPackets", Watched)
        yield seen


def change_first(monkeypatch, kind, sender, change, receiver=None):
    """Change the first message of a kind on its way; return what was changed."""
    changed, pack = [], EnvelopedPackets.pack

    def odd(packets, sent):
        of_link = sent.sender == sender and receiver in (None, sent.receiver)
        if isinstance(sent.message, kind) and of_link and not changed:
            changed.append(sent.message)
            sent = sent._replace(message=change(sent.message))
        return pack(packets, sent)

    monkeypatch.setattr(EnvelopedPackets, "pack", odd)
    return changed


def replay(monkeypatch, kind):
    """Send the first packet with a message of a kind again, in place of each later one."""
    kept, pack = {}, EnvelopedPackets.pack

    def replayed(packets, sent):
        packet = pack(packets, sent)
        if isinstance(sent.message, kind):
            return kept.setdefault((sent.sender, sent.receiver), packet)
        return packet

    monkeypatch.setattr(EnvelopedPackets, "pack", replayed)
