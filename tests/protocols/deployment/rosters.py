"""Parties whose keys are in a roster, which all of them pin."""

from __future__ import annotations

import json
import re
from shutil import copy

from tests.protocols.deployment.parties import SITES, change, deployment
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.roster.changes import enrolment_line, first_roster, next_roster
from vertibayes_protocols.deployment.roster.pinning import pinning, write_file
from vertibayes_protocols.deployment.roster.roster import read_roster, signed_roster
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
    deployment(folder, **options)
    for party in ROLES:
        unpin(file_of(folder, party))
    named = ", ".join(f'"{site}"' for site in SITES)
    change(folder / "analyst" / "study.toml", "[study]\n", f"[study]\nsites = [{named}]\n")
    coordinator = make_private(folder / "coordinator.key")
    roster = first_roster("lungs", enrolments(folder), public_text(coordinator))
    publish(folder, roster)
    for party in ROLES:
        pin(folder, party, roster.epoch)
    return folder


def unpin(path):
    """Remove the keys of other parties from a file."""
    role = next(r for r, name in FILES.items() if name == path.name)
    others = "|".join({"dealer", "analyst", "peers", "sites"} - {role})
    tables = rf"(?m)^\[({others})\].*\n([^\[\n#].*\n)*"
    path.write_text(re.sub(tables, "", path.read_text()))


def write_roster(path, roster, keys):
    """Sign a roster, and write it to a file."""
    path.write_text(json.dumps(signed_roster(roster, keys), indent=1) + "\n")


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
    path = folder / party / f"roster-{epoch}.json"
    found = pinning(file_of(folder, party), path, read_roster(path))
    if found.changed is not None:
        write_file(found.changed)
    return found.lines
