"""The commands of ``vertibayes roster``, which import nothing heavy."""

from __future__ import annotations

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
    from vertibayes.cli.roster import run_make

    run_make(lines, key, consortium, after, out)


@roster_commands.command("show")
def _show(roster: RosterFile) -> None:
    """Print a roster and its digest; check its signature."""
    from vertibayes.cli.roster import run_show

    run_show(roster)


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
    from vertibayes.cli.roster import run_pin

    run_pin(file, roster, digest)


@roster_commands.command("rotate")
def _rotate(file: OwnFile) -> None:
    """Make a new key for a party, and print a line for the coordinator.

    The old key stays in use until the party pins a roster that has the new key.
    """
    from vertibayes.cli.roster import run_rotate

    run_rotate(file)
