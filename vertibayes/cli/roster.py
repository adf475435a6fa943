"""``vertibayes roster``: the coordinator makes rosters, the parties pin them and rotate keys."""

from __future__ import annotations

import sys
from pathlib import Path

from vertibayes.cli.confirming import agree
from vertibayes.words import counted
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.keys import read_private
from vertibayes_protocols.deployment.roster.changes import changes, first_roster, next_roster
from vertibayes_protocols.deployment.roster.pinning import pinning, rotate
from vertibayes_protocols.deployment.roster.roster import read_roster, write_roster
from vertibayes_protocols.public_keys import public_text


def run_make(
    lines: Path, key: Path, consortium: str | None, after: Path | None, out: Path | None
) -> None:
    """Make the first roster of a consortium, or the one after another, and sign it."""
    if (consortium is None) == (after is None):
        raise ValueError(
            "specify --consortium NAME for the first roster, or --after ROSTER for the next one"
        )
    keys, old = read_private(key), None if after is None else read_roster(after)
    try:
        given = lines.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{lines}: not UTF-8 text; save it as UTF-8") from None
    try:
        new = (
            next_roster(old, given)
            if old is not None
            else first_roster(consortium or "", given, public_text(keys))
        )
    except ValueError as error:
        raise ValueError(f"{lines}, {error}") from None
    path = out or (after or lines).parent / f"roster-{new.epoch}.json"
    write_roster(path, new, keys)
    _say(f"{path}: {new.title}, {counted(len(new.members), 'member')}")
    for line in changes(old, new):
        _say(line)
    _say(f"Digest: {grouped_digest(new.digest)}")
    _say("Send the file to all parties, and read the digest to each by telephone. Each party runs")
    _say(f"    vertibayes roster pin FILE.toml {path.name}")
    _say("and restarts. A party that has not done so cannot work with a party whose key changed.")


def run_show(path: Path) -> None:
    """Print a roster."""
    roster = read_roster(path)
    _say(f"{path}: {roster.title}")
    _say(f"signed by the coordinator with {roster.signer}")
    for member in roster.members:
        _say(f"{member.role:8} {member.name}, key {member.public}")
    for old in roster.retired:
        _say(f"retired  {old.name}, key {old.public}: {old.why} at epoch {old.epoch}")
    _say(f"Digest: {grouped_digest(roster.digest)}")


def run_pin(file: Path, roster: Path, digest: str | None) -> None:
    """Show what a roster changes for a party, and pin it if its owner agrees."""
    found = pinning(file, roster)
    _say(f"{found.roster.title}, signed by the coordinator with {found.roster.signer}")
    for line in found.lines:
        _say(line)
    _say(f"Digest: {grouped_digest(found.roster.digest)}")
    if found.changed is None:
        _say(f"{file} has pinned this roster before: nothing is changed")
        return
    agree(found.roster.digest, digest, roster, "pin this roster", "the coordinator")
    found.write()
    _say(f"Pinned: {file}; restart the party that uses it")


def run_rotate(file: Path) -> None:
    """Make a new key for a party, and print the line that the coordinator needs."""
    line, key = rotate(file)
    _say(line)
    sys.stderr.write(
        f"new private key: {key}; the old key stays in use until you pin a roster with the new\n"
        "one. Send the line above to the coordinator. All approved studies of this party must be\n"
        "approved again after that. If the old key may be stolen, enrol a new key by telephone.\n"
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
