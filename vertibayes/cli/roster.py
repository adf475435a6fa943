"""``vertibayes roster``: sign, show and pin the list of all keys; rotate keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

roster_commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Sign, show or pin the list of all keys; rotate one.",
    epilog="docs/operations.md describes a year with a roster, step by step.",
)

OwnFile = Annotated[Path, typer.Argument(help="The party's own file: site.toml, for example.")]
RosterFile = Annotated[Path, typer.Argument(help="The roster: roster-2.json, for example.")]


@roster_commands.command("make")
def _make(
    lines: Annotated[Path, typer.Argument(help="Text file with the lines that parties sent.")],
    key: Annotated[Path, typer.Option(help="The coordinator's private key.")],
    consortium: Annotated[str | None, typer.Option(help="Name, for the first roster.")] = None,
    after: Annotated[Path | None, typer.Option(help="The roster that this one follows.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="New file; roster-EPOCH.json if not given.")
    ] = None,
) -> None:
    """Make and sign a roster, as the coordinator.

    A line is `enrol ROLE NAME KEY` (from `vertibayes keygen --enrol`; compare it by telephone),
    `rotate NAME KEY SIGNATURE` (from `vertibayes roster rotate`) or `revoke NAME`. Several lines
    are one epoch.
    """
    from vertibayes.words import counted
    from vertibayes_protocols.contract import grouped_digest
    from vertibayes_protocols.deployment.keys import read_private
    from vertibayes_protocols.deployment.roster.changes import changes, first_roster, next_roster
    from vertibayes_protocols.deployment.roster.roster import read_roster, write_roster
    from vertibayes_protocols.public_keys import public_text

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


@roster_commands.command("show")
def _show(roster: RosterFile) -> None:
    """Print a roster and its digest; check its signature."""
    from vertibayes_protocols.contract import grouped_digest
    from vertibayes_protocols.deployment.roster.roster import read_roster

    found = read_roster(roster)
    _say(f"{roster}: {found.title}")
    _say(f"signed by the coordinator with {found.signer}")
    for member in found.members:
        _say(f"{member.role:8} {member.name}, key {member.public}")
    for old in found.retired:
        _say(f"retired  {old.name}, key {old.public}: {old.why} at epoch {old.epoch}")
    _say(f"Digest: {grouped_digest(found.digest)}")


@roster_commands.command("pin")
def _pin(
    file: OwnFile,
    roster: RosterFile,
    digest: Annotated[
        str | None, typer.Option(help="All digits; asks for the first four if not given.")
    ] = None,
) -> None:
    """Have a party's file pin a roster, after showing what changes.

    Compare all digits of the digest with the coordinator by telephone. The party uses the roster
    after a restart.
    """
    from vertibayes.cli.confirming import agree
    from vertibayes_protocols.contract import grouped_digest
    from vertibayes_protocols.deployment.roster.pinning import pinning

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


@roster_commands.command("rotate")
def _rotate(file: OwnFile) -> None:
    """Make a new key for a party, and print a line for the coordinator.

    The old key stays in use until the party pins a roster that has the new key.
    """
    from vertibayes_protocols.deployment.roster.pinning import rotate

    line, key = rotate(file)
    _say(line)
    sys.stderr.write(
        f"new private key: {key}; the old key stays in use until you pin a roster with the new\n"
        "one. Send the line above to the coordinator. All approved studies of this party must be\n"
        "approved again after that. If the old key may be stolen, enrol a new key by telephone.\n"
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
