"""``vertibayes roster``: show the list of all keys; rotate one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

roster_commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show the list of all keys; rotate one.",
    epilog="docs/operations.md describes a year of a consortium, step by step.",
)

OwnFile = Annotated[Path, typer.Argument(help="The party's own file: site.toml, for example.")]
RosterFile = Annotated[Path, typer.Argument(help="A roster or a bundle: bundle-2.json.")]


@roster_commands.command("show")
def _show(roster: RosterFile) -> None:
    """Print a roster and its digest; check its signature."""
    from vertibayes_protocols.contract import grouped_digest
    from vertibayes_protocols.deployment.bundle import roster_in

    found = roster_in(roster)
    typer.echo(f"{roster}: {found.title}")
    typer.echo(f"signed by the coordinator with {found.signer}")
    for member in found.members:
        typer.echo(f"{member.role:8} {member.name}, key {member.public}")
    for old in found.retired:
        typer.echo(f"retired  {old.name}, key {old.public}: {old.why} at epoch {old.epoch}")
    typer.echo(f"Digest: {grouped_digest(found.digest)}")


@roster_commands.command("rotate")
def _rotate(file: OwnFile) -> None:
    """Make a new key for a party, and print a line for the coordinator.

    The old key stays in use until the party fetches a bundle that has the new key.
    """
    from vertibayes_protocols.deployment.roster.pinning import rotate

    line, key = rotate(file)
    typer.echo(line)
    sys.stderr.write(
        f"new private key: {key}; the old key stays in use until you fetch a bundle with the\n"
        "new one. Send the line above to the coordinator. All approved studies of this party must\n"
        "be approved again after that. If the old key may be stolen, `vertibayes enrol` instead.\n"
    )
