"""The configuration of each party: `site.toml`, `dealer.toml`, `study.toml`, `relay.toml`.

Each party writes its own, and pins in it the public keys of those with whom it works. What the
others' files say binds nobody: an analyst's study can only match what sites and dealer have pinned.
A deployment whose dealer is also a site, the analyst or the relay is refused, by name and by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpc.rounds import Party
from protocols.deployment.parts import (
    DataSource,
    Parties,
    RelayAddress,
    VariableSpec,
    check_sites,
    data_of,
    own_party,
    pinned_keys,
    pinned_party,
    policy_of,
    relay_of,
    variables_of,
)
from protocols.deployment.tables import TomlFile
from protocols.policy import Policy
from protocols.transports.mailbox import RELAY


@dataclass(frozen=True)
class SiteFile:
    """A site's configuration. `peers` are the other sites, `pinned` all whose keys it knows."""

    source: TomlFile = field(repr=False)
    party: Party
    key: Path
    folder: Path
    data: DataSource
    variables: Mapping[str, VariableSpec]
    policy: Policy
    dealer: Party
    analyst: Party
    pinned: Mapping[Party, bytes]
    relay: RelayAddress

    @classmethod
    def read(cls, path: Path) -> SiteFile:
        """Read and check a site's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        file.check(("site", "data", "variables", "policy", "dealer", "analyst", "peers", "relay"))
        party, key, folder = own_party(file, "site", folder="memory")
        dealer, analyst = pinned_party(file, "dealer"), pinned_party(file, "analyst")
        peers = pinned_keys(file.table("peers"))
        relay = relay_of(file)
        found = Parties({**peers, party: None}, dealer, analyst)
        found.check(file)
        pinned = {**peers, dealer[0]: dealer[1], analyst[0]: analyst[1]}
        variables = variables_of(file)
        policy = policy_of(file, tuple(variables))
        data = data_of(file, variables)
        names = party, key, folder, data, variables, policy, dealer[0], analyst[0]
        return cls(file, *names, pinned, relay)


@dataclass(frozen=True)
class DealerFile:
    """The dealer's configuration."""

    source: TomlFile = field(repr=False)
    party: Party
    key: Path
    policy: Policy
    analyst: Party
    pinned: Mapping[Party, bytes]
    relay: RelayAddress

    @classmethod
    def read(cls, path: Path) -> DealerFile:
        """Read and check the dealer's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        file.check(("dealer", "sites", "analyst", "policy", "relay"))
        party, key, _ = own_party(file, "dealer")
        analyst, sites = pinned_party(file, "analyst"), pinned_keys(file.table("sites"))
        relay = relay_of(file)
        check_sites(file, sites)
        Parties({**sites}, (party, None), analyst).check(file)
        pinned = {**sites, analyst[0]: analyst[1]}
        return cls(file, party, key, policy_of(file, None), analyst[0], pinned, relay)


@dataclass(frozen=True)
class StudyFile:
    """An analyst's study; its tables [learning] and [validation] are read by the learners."""

    source: TomlFile = field(repr=False)
    party: Party
    key: Path
    folder: Path
    sites: tuple[Party, ...]
    dealer: Party
    pinned: Mapping[Party, bytes]
    variables: tuple[str, ...]
    relay: RelayAddress

    @classmethod
    def read(cls, path: Path) -> StudyFile:
        """Read and check a study's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        known = "study", "analyst", "dealer", "sites", "learning", "validation", "relay"
        file.check(known)
        study = file.table("study")
        folder, variables = study.path("folder", "study"), study.names("variables", ())
        study.end()
        party, key, _ = own_party(file, "analyst")
        dealer, sites = pinned_party(file, "dealer"), pinned_keys(file.table("sites"))
        relay = relay_of(file)
        check_sites(file, sites)
        Parties({**sites}, dealer, (party, None)).check(file)
        pinned = {**sites, dealer[0]: dealer[1]}
        names = party, key, folder, tuple(sites), dealer[0], pinned, variables, relay
        return cls(file, *names)


@dataclass(frozen=True)
class RelayFile:
    """The relay's configuration: it knows names and addresses, and no key of a message."""

    source: TomlFile = field(repr=False)
    relay: RelayAddress
    party: Party = RELAY

    @classmethod
    def read(cls, path: Path) -> RelayFile:
        """Read and check the relay's file; ValueError names file, line and key."""
        file = TomlFile.read(path)
        file.check(("relay",))
        return cls(file, relay_of(file))
