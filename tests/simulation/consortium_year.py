"""A consortium over months: owners, extracts, keys and disks, as the year of a study goes.

Every release is compared with tables that are counted from the sites' extracts, without a protocol.
"""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import numpy as np

from tests.simulation.parties import NAMED, Analyst, Dealer, Relay, Site, key_pairs
from tests.simulation.schedule import ANALYST, DEALER, RULE, release_alone
from tests.simulation.world import Killed
from vertibayes_protocols.approval import Approved, today
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.seal import Identity
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import accept
from vertibayes_protocols.storage.whole_file import noted, read_noted
from vertibayes_protocols.variables import Variable

STATES = "no", "yes", "so"
PEOPLE = 60
MONTH = 30 * 86_400.0
COLUMNS = {"a": "x", "b": "y", "c": "z"}
POLICY = Policy(most_released_tables=200)


class Year:
    """Sites a and b, later c, with a dealer and an analyst; time passes in months."""

    def __init__(self, world, system, policy=POLICY):
        self.world, self.system, self.policy = world, system, policy
        self.draw, self.studies = Random(f"year {world.seed}"), 0
        generator = np.random.default_rng(5)
        self.codes = {n: generator.integers(0, 3, PEOPLE).astype(np.uint8) for n in "xyz"}
        self.pairs = key_pairs(self.draw, (*COLUMNS, DEALER, ANALYST))
        self.sites = {}
        known = self.identities("a", "b")
        analysts = {ANALYST: known[ANALYST].keys.public}
        Relay(world)
        self.dealer = Dealer(world, DEALER, known[DEALER], ("a", "b"), analysts)
        self.analyst = Analyst(world, ANALYST, known[ANALYST], system, ("a", "b", DEALER))
        for name in "ab":
            self.add(name, known)
        self.dealer.start()

    # ---- parties ---------------------------------------------------------------------------------

    def identities(self, *sites):
        """Return what each party pins: the keys of all others."""
        names = (*sites, DEALER, ANALYST)
        public = {name: self.pairs[name].public for name in names}
        return {
            n: Identity(n, self.pairs[n], {p: k for p, k in public.items() if p != n})
            for n in names
        }

    def add(self, name, known):
        analysts = {ANALYST: known[ANALYST].keys.public}
        site = self.sites[name] = Site(
            self.world, name, known[name], self.system, self.data(name), DEALER, analysts,
            policy=self.policy,
        )  # fmt: skip
        site.start()

    def pin(self, *sites):
        """Have all parties pin the keys as they are now, and start again."""
        known = self.identities(*sites)
        self.dealer.sites, self.analyst.asks = sites, (*sites, DEALER)
        for name in sites:
            if name not in self.sites:
                self.add(name, known)
        for party in (*self.sites.values(), self.dealer, self.analyst):
            party.identity = known[party.name]
        self.restart(*sites)
        self.dealer.crash()
        self.world.pass_(10)

    def rotate(self, name):
        """Give a party another key, which all pin, and which its old key has signed."""
        for site in self.sites.values():
            site.former_keys.setdefault(name, []).append(self.pairs[name].public)
        self.pairs[name] = key_pairs(self.draw, [name])[name]
        self.pin(*self.sites)

    def restart(self, *names):
        for name in names:
            self.sites[name].crash()
        self.world.pass_(10)

    # ---- data ------------------------------------------------------------------------------------

    def data(self, name):
        """Return the extract of a site."""
        column = COLUMNS[name]
        people = TextColumn.of([f"p{place:03}" for place in range(PEOPLE)])
        return SiteData({column: Variable(column, STATES)}, {column: self.codes[column]}, people)

    def correct(self, name, people):
        """Change the value of some people; the site reads its new extract."""
        codes = self.codes[COLUMNS[name]] = self.codes[COLUMNS[name]].copy()
        codes[:people] = (codes[:people] + 1) % 3
        self.extract(name)

    def extract(self, name):
        self.sites[name].data = self.data(name)
        self.restart(name)

    # ---- owners ----------------------------------------------------------------------------------

    def study(self, *, until="", unaware=""):
        """Write a new study and have all owners approve it; all but one see how data changed."""
        self.studies += 1
        public = {name: pair.public for name, pair in self.pairs.items()}
        contract = Contract(
            sites=tuple((site, public[site]) for site in self.sites),
            dealer=(DEALER, public[DEALER]),
            analyst=(ANALYST, public[ANALYST]),
            variables=tuple(COLUMNS[site] for site in self.sites),
            learner="a simulation",
            options={"study": self.studies},
            rule=RULE,
        )
        for site in self.sites.values():
            data = b"" if site.name == unaware else self._beside(site)
            approved = Approved(
                contract, "A. Owner", today(), release_alone, data=data, until=until
            )
            site.approved[contract.digest] = approved
        return approved

    def _beside(self, site):
        if not (path := site.folder / "memory").exists():
            return b""
        memory = SiteMemory.read(path)
        found = memory.beside_earlier(site.data, RULE.name, self.policy.fewest_records)
        return found.data if found.differences else b""

    def allow(self, name, tables):
        """Have a site release so many tables in all."""
        self.sites[name].policy = replace(self.policy, most_released_tables=tables)
        self.restart(name)

    def accept(self, *names):
        """Accept what sites have forgotten, as `vertibayes meets --older-memory` does."""
        for name in names:
            path = self.sites[name].folder / "memory"
            together = SiteMemory.read(path).together
            alarms = [*together.unknown.values(), *together.lost.values()]
            accept(path.with_name("memory.accepted"), [alarm.head for alarm in alarms])

    # ---- disks -----------------------------------------------------------------------------------

    def back_up(self, name):
        self.sites[name].disk.keep_backup()
        return self.sites[name].disk.backups[-1]

    def restore(self, name, files):
        """Put a backup, or nothing, in the place of a site's folder."""
        self.sites[name].crash(away=5)
        self.sites[name].disk.restore(files)
        self.world.pass_(10)

    def as_older_release(self, name):
        """Leave a site's files as a release without chains would have left them."""
        site = self.sites[name]
        site.crash(away=5)
        names = {n: bytes(i.content) for n, i in site.disk.names.items()}
        with read_noted(site.folder / "memory", 9, "is not a memory") as (notes, file):
            notes = {k: v for k, v in notes.items() if k not in ("writes", "ledger")}
            older = {"format": 2, "together": {"sent": {}, "seen": {}, "unknown": {}}}
            arrays = {"records": file["records"], "atoms": file["atoms"]}
            names["memory"] = noted({**notes, **older}, **arrays)
        lines = [json.loads(line) for line in names["ledger"].splitlines()]
        plain = [{k: v for k, v in line.items() if k not in ("after", "memory")} for line in lines]
        head = [{"format": 1}, *(line for line in plain if "format" not in line)]
        names["ledger"] = b"".join(json.dumps(line).encode() + b"\n" for line in head)
        site.disk.restore(names)
        self.world.pass_(10)

    # ---- releases --------------------------------------------------------------------------------

    def run(self, approved):
        """Run a study until its release; check the tables against the extracts."""
        self.analyst.results = None
        for _ in range(8):
            try:
                self.analyst.command(lambda process: process.learn(approved))
            except (*NAMED, OSError, Killed) as error:  # the command is given again
                if isinstance(error, QueryRefusedError):
                    raise
                self.world.note(ANALYST, f"{error}")
                self.world.pass_(100)
            if self.analyst.results is not None:
                break
        _, tables = self.analyst.results
        assert tables == self.counted(), "the release is not that of the extracts"
        return tables

    def refusal(self, approved):
        """Return why a study is refused."""
        try:
            self.run(approved)
        except QueryRefusedError as error:
            return str(error)
        raise AssertionError("the study is released")

    def counted(self):
        """Count the released families from the extracts; counts below the rule's are 0."""
        names, tables = [COLUMNS[site] for site in self.sites], []
        for place, name in enumerate(names):
            members = [self.codes[name], *(self.codes[p] for p in names[max(place - 1, 0) : place])]
            table = np.zeros((3,) * len(members), np.int64)
            np.add.at(table, tuple(members), 1)
            tables.append(np.where(table < RULE.fewest, 0, table).tolist())
        return tables
