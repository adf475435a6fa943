"""The configuration of each party: `site.toml`, `dealer.toml`, `study.toml`, `relay.toml`.

Each party writes its own file, and pins in it the public keys of the parties with which it works.
The file of one party binds no other party: an analyst's study can only match what the sites and the
dealer have pinned. A dealer that is also a site, the analyst or the relay is refused, by its name
and by its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from vertibayes_mpc.randomness import KeyPair
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignmentRequest
from vertibayes_protocols.deployment.keys import read_private
from vertibayes_protocols.deployment.parts import (
    SECOND,
    DataSource,
    Matching,
    VariableSpec,
    alignment_of,
    data_of,
    listening_of,
    matching_of,
    metrics_of,
    own_party,
    patience_of,
    policy_of,
    relay_of,
    second_of,
    variables_of,
)
from vertibayes_protocols.deployment.pins import Pins, pins_of
from vertibayes_protocols.deployment.roster.roster import Roster, RosterRole
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.public_keys import decode_signing, public_text
from vertibayes_protocols.settings import COUNT_BY, PAILLIER, CountBy, Setting
from vertibayes_protocols.transports.mailbox import RELAY, Patience
from vertibayes_protocols.transports.route import Route
from vertibayes_protocols.transports.tls import Certificates

VARIABLES = Setting("variables", "texts", default=())  # of the study; all offered ones if empty
MEMORY = Setting("memory", "size")  # of one query at a party; as much as the sites allow if None
SITES = Setting("sites", "texts", default=())  # of the study, as the roster names them
RUN = (Setting("patience", "seconds", default=600.0, least=0),)  # a run that breaks begins again
STATES = Setting("", "texts", least=2)  # of a variable, in order
BOUNDS = Setting("", "bounds")  # of a variable that stays a number
COUNT = Setting("", "whole", least=0)  # of the records of a class


@dataclass(frozen=True, kw_only=True)
class _OwnFile:
    """What the files of a site, the dealer and the analyst have in common."""

    source: TomlFile = field(repr=False)
    party: Party
    key: Path
    pinned: Mapping[Party, bytes]
    relay: Route | None  # None if a job of NVIDIA FLARE carries the packets
    roster: Roster | None
    waits: Patience

    @property
    def certificates(self) -> Certificates | None:
        """What it shows the relay; None without a relay, or if the relay asks for none."""
        return None if self.relay is None else self.relay.certificates


def _own(
    file: TomlFile, role: RosterRole, chosen: Sequence[Party] | None = None, **paths: str
) -> tuple[dict[str, Any], Pins]:
    """Return what a file says about its own party, with further paths, and whom it pins."""
    with file.table(role) as table:
        party, key = own_party(table)
        others: dict[str, Any] = {name: table.path(name, place) for name, place in paths.items()}
    with file.table("relay") as table:
        relay = relay_of(table) if "relay" in file.values else None
    others |= {"relay": relay, "waits": patience_of(file)}
    pins = pins_of(file, role, party, chosen)
    own = {"source": file, "party": party, "key": key, "pinned": pins.all, "roster": pins.roster}
    return {**own, **others}, pins


@dataclass(frozen=True, kw_only=True)
class _ServingFile(_OwnFile):
    """What the files of a site and of the dealer have in common."""

    metrics: str | None  # where it answers a monitor
    policy: Policy
    analysts: Mapping[Party, bytes]  # whose sessions are served, with their public keys

    @property
    def analyst(self) -> Party:
        """The first of its analysts."""
        return next(iter(self.analysts))


@dataclass(frozen=True, kw_only=True)
class SiteFile(_ServingFile):
    """A site's configuration; `pinned` are the keys of dealer, analysts and the other sites."""

    kind: ClassVar[str] = "site"
    folder: Path
    data: DataSource
    matching: Matching | None  # None if the site aligns its list of people with nobody
    variables: Mapping[str, VariableSpec]
    dealer: Party
    signing: Mapping[Party, bytes]
    second: bytes  # the key of who must consent to each approval; empty if nobody must

    @classmethod
    def read(cls, path: Path) -> SiteFile:
        """Read and check a site's file; ValueError names file, line and key."""
        file = _site_tables(path)
        return cls._of(file, *_own(file, "site", folder="memory"))

    @classmethod
    def unfetched(cls, path: Path) -> SiteFile | None:
        """Read the file that `enrol` wrote, without relay and other parties; None if it has them.

        Only the data of such a file can be checked: nobody can start it.
        """
        file = _site_tables(path)
        others = "roster", "dealer", "peers", "analyst", "analysts"
        if "address" in file.values.get("relay", ("address",)) or file.values.keys() & others:
            return None
        with file.table("site") as table:
            party, key = own_party(table)
            folder = table.path("folder", "memory")
        own = {"source": file, "party": party, "key": key, "folder": folder, "pinned": {}}
        own |= {"relay": None, "roster": None, "waits": patience_of(file)}
        return cls._of(file, own, Pins(sites={}, dealer={"": b""}, analysts={}))

    @classmethod
    def _of(cls, file: TomlFile, own: dict[str, Any], pins: Pins) -> SiteFile:
        variables = variables_of(file)
        data = data_of(file, variables)
        sites = {own["party"], *pins.all} - {*pins.dealer, *pins.analysts} if own["pinned"] else ()
        return cls(
            **own,
            policy=policy_of(file, tuple(variables)),
            data=data,
            matching=matching_of(file, data, sites),
            variables=variables,
            dealer=next(iter(pins.dealer)),
            analysts=pins.analysts,
            signing=pins.signing,
            metrics=metrics_of(file),
            second=second_of(file),
        )

    @property
    def memory(self) -> Path:
        """The file of what the site has promised."""
        return self.folder / "memory"

    @property
    def approved(self) -> Path:
        """The folder of the studies that the site's owner has approved."""
        return self.folder / "approved"

    @property
    def ledger(self) -> Path:
        """The file in which the site records what was revealed."""
        return self.folder / "ledger.jsonl"


def _site_tables(path: Path) -> TomlFile:
    """Read the file of a site; refuse tables that it does not have."""
    file = TomlFile.read(path)
    known = "site", "data", "alignment", "variables", "policy", "dealer", "peers"
    file.check((*known, "analyst", "analysts", "roster", "relay", "patience", "metrics"))
    return file


@dataclass(frozen=True, kw_only=True)
class DealerFile(_ServingFile):
    """The dealer's configuration; `pinned` are the keys of the sites and the analysts."""

    kind: ClassVar[str] = "dealer"

    @classmethod
    def read(cls, path: Path) -> DealerFile:
        """Read and check the dealer's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        known = "dealer", "sites", "analyst", "analysts", "policy"
        file.check((*known, "roster", "relay", "patience", "metrics"))
        own, pins = _own(file, "dealer")
        policy, metrics = policy_of(file, None), metrics_of(file)
        return cls(**own, policy=policy, analysts=pins.analysts, metrics=metrics)


@dataclass(frozen=True, kw_only=True)
class StudyFile(_OwnFile):
    """An analyst's study; the learners read [learning], [validation], [network] and [release]."""

    kind: ClassVar[str] = "study"
    folder: Path
    sites: tuple[Party, ...]
    dealer: Party  # empty: nobody, if tables are counted by paillier
    signing: Mapping[Party, bytes]
    # Of variables, the states, and the bounds of those that stay numbers. Of each class, the number
    # of records. Naive Bayes needs them where the sites' data must not tell them.
    states: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[float, float]]
    class_counts: Mapping[str, int]
    variables: tuple[str, ...]
    memory: int | None
    count_by: CountBy
    patience: float  # seconds in which a run that breaks is begun again
    alignment: AlignmentRequest | None  # None if the sites hold the same people

    @classmethod
    def read(cls, path: Path) -> StudyFile:
        """Read and check a study's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        known = "study", "analyst", "dealer", "sites", "alignment", "learning", "validation"
        declared = "relay", "run", "states", "numbers", "class_counts"
        file.check((*known, *declared, "network", "release", "roster", "patience"))
        states, numbers, counts = map(file.table, declared[2:])
        if twice := [name for name in numbers.values if name in states.values]:
            raise numbers.error(twice[0], "it is also in [states]: declare states or bounds")
        with file.table("study") as study:
            folder = study.path("folder", "study")
            values = study.take_all((VARIABLES, MEMORY, COUNT_BY))
            chosen = study.take(SITES)
        values |= file.taken("run", RUN)
        own, pins = _own(file, "analyst", chosen)
        return cls(
            **own,
            **values,
            folder=folder,
            sites=tuple(pins.sites),
            dealer="" if values["count_by"] == PAILLIER else next(iter(pins.dealer)),
            signing=pins.signing,
            states=states.take_each(STATES),
            numbers=numbers.take_each(BOUNDS),
            alignment=alignment_of(file),
            class_counts=counts.take_each(COUNT),
        )

    @property
    def parties(self) -> tuple[Party, ...]:
        """The sites, then the dealer, if there is one."""
        return (*self.sites, self.dealer) if self.dealer else self.sites

    @property
    def tables(self) -> Path:
        """The file of the tables that were revealed."""
        return self.folder / "tables"

    @property
    def run(self) -> Path:
        """The file of the winners that a run of an approved study has shown."""
        return self.folder / "run"


@dataclass(frozen=True)
class RelayFile:
    """The relay's configuration: names and addresses, and no key of a message."""

    kind: ClassVar[str] = "relay"
    party: ClassVar[Party] = RELAY
    source: TomlFile = field(repr=False)
    relay: Route
    revoked: Path  # the list of revoked certificates, which need not exist
    metrics: str | None = None

    @property
    def certificates(self) -> Certificates | None:
        """What it shows the parties."""
        return self.relay.certificates

    @classmethod
    def read(cls, path: Path) -> RelayFile:
        """Read and check the relay's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        file.check(("relay", "metrics"))
        with file.table("relay") as table:
            revoked = table.path("revoked", "revoked.txt")
            return cls(file, listening_of(table), revoked, metrics_of(file))


PartyFile: TypeAlias = SiteFile | DealerFile | StudyFile


def own_keys(file: PartyFile) -> KeyPair:
    """Read the private key of a party's file; refuse it if it does not fit what the file pins."""
    keys = read_private(file.key)
    for name, key in file.pinned.items():
        if key == keys.public:
            reason = f"{name} is pinned with this party's own public key: they are one party"
            raise ValueError(f"{file.source.path}: {reason}")
    if file.roster is not None and file.roster.by_name[file.party].key != keys.public:
        current = file.roster.by_name[file.party].public
        reason = f"the roster has {current}; set `key` to the file of that key"
        for old in file.roster.retired_keys(file.party):
            if old.key == keys.public:
                why = f"it was {old.why} at epoch {old.epoch}"
                reason = f"{why}; set `key` to the file of the new key"
        raise ValueError(
            f"{file.key} is not the key of {file.party} in {file.roster.title}: {reason}"
        )
    return keys


def second_keys(file: SiteFile, path: Path) -> KeyPair:
    """Read the private key of the second person whom a site's policy names."""
    keys, where = read_private(path), ("policy", SECOND.name)
    if not file.second:
        reason = "missing; nobody else must consent: --second needs the public key of who must"
        raise file.source.error(where, reason)
    if decode_signing(public := public_text(keys)) != file.second:
        reason = f"it is not the public key of --second {path}, which is {public}"
        raise file.source.error(where, reason)
    return keys
