"""Parties in one process whose answers, memories and ledgers can be read at each point of a query.

A world has sites with memories in files, a dealer, and any number of sessions of one analyst. Of a
query it notes what each party answers, and what each site has on disk and in its ledger when all
have agreed (`AGREED`), when its first byte leaves (`FIRST`) and when the query has ended (`AFTER`).
"""

from __future__ import annotations

import io
import json
import re
from unittest.mock import patch

import numpy as np

from tests.protocols.golden.data import LIMITS
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair
from vertibayes_mpc.rounds import Expect, exchange, send
from vertibayes_mpc.signing import SigningKey
from vertibayes_protocols.approval import nothing_approved
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.parties import Watch, serve
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import REASON_BYTES, Answer, Go, Session
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports import local
from vertibayes_protocols.variables import Rows

AGREED, FIRST, AFTER = POINTS = "when all have agreed", "at the first byte", "after the query"


class Crash(Exception):
    """A process that ends at a point of a query."""


class Noted(Ledger):
    """A ledger that keeps refusals too, as the ledger of a deployed site does."""

    def __init__(self):
        super().__init__()
        self.refused = []

    def refuse(self, kind, reason, detail=""):
        self.refused.append(f"{kind}: {reason}" + f" ({detail})" * bool(detail))


class World:
    """Sites, a dealer, and the sessions of one analyst.

    held: {site: its SiteData}; batches: {site: its LocalData}, of sites that hold other records.
    """

    def __init__(self, held, folder, batches=None, policy=ALLOW_ALL, **options):
        self.sites, self.folder, self.seed = tuple(held), folder, SeededRandomness(b"golden")
        keys = {p: KeyPair.generate(SeededRandomness(p.encode())) for p in (*held, DEALER, ANALYST)}
        public = {party: pair.public for party, pair in keys.items() if party != ANALYST}
        signing = {site: SigningKey.of(keys[site]).public for site in held}
        self.analyst = lambda: AnalystRole(
            ANALYST, self.seed, Noted(), public_keys=public, signing_keys=signing,
            keys=keys[ANALYST], policy=ALLOW_ALL,
        )  # fmt: skip
        self.roles = {
            site: SiteRole(
                site, data, keys[site], {p: k for p, k in public.items() if p != site},
                analyst_key=keys[ANALYST].public, signing_keys=signing, policy=policy,
                memory=SiteMemory(folder / site, SeededRandomness(site.encode())),
                randomness=SeededRandomness(b"of " + site.encode()), ledger=Noted(),
                batches=[batches[site]] if batches else (), limits=LIMITS, **options,
            )
            for site, data in held.items()
        }  # fmt: skip
        known = {site: public[site] for site in held}
        self.dealer = DealerRole(DEALER, keys[DEALER], known, policy, randomness=self.seed)

    def approve(self, *contracts):
        """Have all owners approve contracts, {digest: Approved}; nothing without any."""
        for role in self.roles.values():
            role.approvals = dict(*contracts).get if contracts else nothing_approved

    def session(self):
        return Opened(self)

    def close(self):
        for role in self.roles.values():
            role.memory.close()


class Opened:
    """One session, and what its parties answer, keep and note."""

    def __init__(self, world):
        self.world, self.analyst = world, world.analyst()
        self.roles = {p: r.for_session(ANALYST, r.analyst_key) for p, r in world.roles.items()}
        self.roles[DEALER] = world.dealer.for_session(ANALYST, b"")
        self.answers, self.points, self.hooks, self.asked = {}, {}, {}, ()
        programs = {p: serve(r, ANALYST, KINDS, _Notes(self, p)) for p, r in self.roles.items()}
        opened = self

        class Watched(local.EnvelopedPackets):
            def pack(self, sent):
                opened._sends(sent)
                return super().pack(sent)

        with patch.object(local, "EnvelopedPackets", Watched):
            transport = local.LocalTransport(ANALYST, programs, world.seed)
        self.session = Session(self.analyst, transport)

    def ask(self, query, hooks=None):
        """Run a query; return the result. hooks: {point: what is called there}."""
        self.asked, self.answers, self.points = query.parties, {}, {}
        self.hooks, self.query = hooks or {}, query
        try:
            return self.session.ask(query)
        finally:
            self._reach(AFTER, self.world.sites)

    def look(self, query, to=None):
        """Return each party's answer to a query that is dropped: empty if it agrees."""
        parties = to or query.parties
        self.asked, self.answers, self.hooks = (), {}, {}
        self.session.transport.run(_looked(query, parties))
        return {party: self.answers[party] for party in parties}

    def considered(self, party, answer, detail):
        agreed = "" if answer.agreed else answer.reason + f" [{detail}]" * bool(detail)
        self.answers[party] = agreed
        if len(self.answers) == len(self.asked) and not any(self.answers.values()):
            self._reach(AGREED, self.world.sites)

    def _sends(self, sent):
        point = self.points.get(FIRST, {})
        is_ours = AGREED in self.points and sent.sender in self.world.sites
        if is_ours and type(sent.message) is not Answer and sent.sender not in point:
            self._reach(FIRST, [sent.sender])

    def _reach(self, point, sites):
        for site in sites:
            self.points.setdefault(point, {})[site] = self.state(site)
        if point in self.hooks:
            self.hooks[point]()

    def state(self, site):
        """Return what a site has on disk, and in its ledger."""
        role, query = self.roles[site], self.query
        kept = kept_by(self.world.folder / site, getattr(query, "number", None))
        return kept, entries(role.ledger)


class _Notes(Watch):
    def __init__(self, opened, party):
        self.opened, self.party = opened, party

    def considered(self, query, answer, detail):
        self.opened.considered(self.party, answer, detail)


def _looked(query, parties):
    """Put a query to parties, and drop it."""
    expect = dict.fromkeys(parties, Expect(Answer, REASON_BYTES))
    yield from exchange(dict.fromkeys(parties, query), expect)
    yield from send(dict.fromkeys(parties, Go(False)))


# ---- what a site keeps and notes, as texts ------------------------------------------------------

NUMBER = re.compile(r"\d{13,}")  # a time in microseconds
SINCE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
KEY = re.compile(r"vb1:[\w-]+")
DIGEST = re.compile(r"\b[0-9a-f]{4}(?: [0-9a-f]{4})+\b")


def plain(text):
    """Return a text without the numbers that time and keys give."""
    for pattern, word in ((KEY, "KEY"), (SINCE, "TIME"), (NUMBER, "NUMBER"), (DIGEST, "DIGEST")):
        text = pattern.sub(word, text)
    return text


def entries(ledger):
    """Return the entries of a ledger as texts."""
    facts = [f"{f.what} | about {f.about} | to {', '.join(f.to) or 'nobody'}" for f in ledger.facts]
    tables = [
        f"table {', '.join(t.variables)}: {t.cells} cells{_of(t.rows)} | to {t.to}"
        + f" | {t.rule}" * bool(t.rule)
        for t in ledger.tables
    ]
    return [plain(text) for text in (*facts, *tables, *(f"refused {r}" for r in ledger.refused))]


def _of(rows):
    return "" if rows == Rows() else f" of {rows}"


def kept_by(path, number=None):
    """Return what a site's memory has on disk, as short texts; {} of a new memory."""
    if not path.exists():
        return {}
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
        notes = json.loads(file["notes"].tobytes())
        records = len(file["records"])
    studies = {bytes.fromhex(s).decode(): sorted(c) for s, c in notes["committed"].items()}
    steps = [
        f"{step['begun']} begun, {len(step['shown'])} shown, state {step['state']}"
        for step in notes["steps"].values()
    ]
    _, eps, delta, scored = notes["sums"]
    found = {
        "committed": studies,
        "seeds": len(notes["seeds"]),
        "columns without identifiers": sorted(notes["frame"]),
        "record sets": [len(notes["sets"]), records],
        "meets": [notes["failed"], notes["unanswered"]],
        "runs": [*notes["runs"].values()],
        "steps": steps,
        "eps, delta, rho, slack": ", ".join(f"{x:.6g}" for x in (eps, delta, *notes["zcdp"])),
        "numbers": ["this" if n == number else "another" for n in notes["numbers"].values()],
        "scored": scored,
        "released": notes["released"],
        "chosen": notes["chosen"],
        "without noise": notes["plain"],
        "values": notes["values"],
        "hidden": {bytes.fromhex(s).decode(): n for s, n in notes["hidden"].items()},
        "sizes": notes["sizes"],
        "alignment": sorted(p.name.split(".")[-1] for p in path.parent.glob(f"{path.name}.align*")),
    }
    return {name: str(value) for name, value in found.items()}


NEW = {
    "committed": "{}", "seeds": "0", "columns without identifiers": "[]", "record sets": "[0, 0]",
    "meets": "[{}, {}]", "runs": "[]", "steps": "[]", "numbers": "[]", "scored": "0",
    "eps, delta, rho, slack": "0, 0, 0, 0", "released": "[0, 0, 0, 0]", "chosen": "0",
    "without noise": "0",
    "values": "False", "hidden": "{}", "sizes": "[]", "alignment": "[]",
}  # fmt: skip


def changes(before, after):
    """Return what differs between two states of a memory, as texts."""
    old, new = NEW | before, NEW | after
    return [f"{name}: {old[name]} -> {new[name]}" for name in new if old[name] != new[name]]


def outcome(call):
    """Return the class and text of the error that a call ends with; "answered" if none."""
    try:
        call()
    except Exception as error:
        return plain(f"{type(error).__name__}: {error}")
    return "answered"
