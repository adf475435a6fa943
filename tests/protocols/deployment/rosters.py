"""Parties whose keys are in a roster, which all of them pin."""

from __future__ import annotations

from shutil import copy

from tests.protocols.deployment.parties import SITES, deployment
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.roster.changes import enrolment_line, first_roster, next_roster
from vertibayes_protocols.deployment.roster.pinning import pinning
from vertibayes_protocols.deployment.roster.roster import read_roster, write_roster
from vertibayes_protocols.public_keys import public_text

ROLES = {**dict.fromkeys(SITES, "site"), "dealer": "dealer", "analyst": "analyst"}
FILES = {"site": "site.toml", "dealer": "dealer.toml", "analyst": "study.toml"}


def file_of(folder, party):
    return folder / party / FILES[ROLES[party]]


def enrolments(folder, *parties):
    return [
        enrolment_line(ROLES[party], party, read_private(folder / party / f"{party}.key"))
        for party in parties or ROLES
    ]


def consortium(folder, **options):
    """Write all parties' folders, a coordinator's key, and a roster that all of them pin."""
    deployment(folder, roster=True, **options)
    coordinator = make_private(folder / "coordinator.key")
    roster = first_roster("lungs", enrolments(folder), public_text(coordinator))
    publish(folder, roster)
    for party in ROLES:
        pin(folder, party, roster.epoch)
    return folder


def publish(folder, roster):
    """Sign a roster, and give each party a copy beside its file."""
    name = f"roster-{roster.epoch}.json"
    write_roster(folder / name, roster, read_private(folder / "coordinator.key"))
    for party in ROLES:
        copy(folder / name, folder / party / name)


def advance(folder, *lines, epoch=1):
    """Publish the roster after that of an epoch, with some lines, and return it."""
    roster = next_roster(read_roster(folder / f"roster-{epoch}.json"), lines)
    publish(folder, roster)
    return roster


def pin(folder, party, epoch):
    """Have a party pin the roster of an epoch; return what changes."""
    found = pinning(file_of(folder, party), folder / party / f"roster-{epoch}.json")
    if found.changed is not None:
        found.write()
    return found.lines
