"""``vertibayes enrol``, ``bundle``, ``fetch``: from parties' lines to one signed file for all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vertibayes.cli.options import takes, values_of
from vertibayes_protocols.settings import REQUIRED, Setting

commands = typer.Typer()

ROLES = "docs/roles has one page for each role."
BUNDLE = (
    Setting("out", "any path", "The coordinator's folder, with keys and bundles.", REQUIRED),
    Setting("consortium", "text", "Name of the consortium, for the first bundle."),
    Setting("study", "texts", "study.toml, or several: the studies of this bundle; those of the "
            "last one if not given.", (), shown="FILE,..."),
    Setting("days", "whole", "Days for which new certificates are valid.", 365),
    Setting("new_root", "flag", "Replace the root, and all certificates with it.", False),
)  # fmt: skip


@commands.command("enrol", epilog=ROLES)
def _enrol(
    role: Annotated[str, typer.Argument(help="site, dealer, analyst or relay.")],
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the party; of the relay, HOST:PORT, or "
            "wss://HOST/PATH behind a reverse proxy."
        ),
    ],
    folder: Annotated[Path, typer.Option(help="Folder for the party's files.")] = Path(),
) -> None:
    """Make a party's keys and file, and print its line.

    Send the line to the coordinator: it has public keys alone. Run again, the command prints the
    same line. A party that has pinned a roster gets new keys, for a coordinator who revokes the old
    ones.
    """
    from vertibayes_protocols.deployment.enrolling import enrol

    line, file = enrol(folder, role, name)
    sys.stdout.write(f"{line}\n")
    sys.stderr.write(f"{file} and the keys beside it stay here: send the line to the coordinator\n")


@commands.command("bundle", epilog=ROLES)
@takes(*BUNDLE)
def _bundle(
    lines: Annotated[
        Path | None, typer.Argument(help="Text file with the lines that parties sent.")
    ] = None,
    **given: Any,
) -> None:
    """Sign what all parties need, as the coordinator.

    A bundle has the roster, certificates and studies. A line is that of `vertibayes enrol`, that of
    `vertibayes roster rotate`, or `revoke NAME`. Several lines are one epoch of the roster. The
    first bundle makes the coordinator's keys.
    """
    from vertibayes.cli.study import check_sent
    from vertibayes_protocols.contract import grouped_digest
    from vertibayes_protocols.deployment.bundle import name_of
    from vertibayes_protocols.deployment.bundling import check_studies, make_bundle
    from vertibayes_protocols.deployment.roster.changes import changes

    try:
        texts = lines.read_text(encoding="utf-8").splitlines() if lines else []
    except UnicodeDecodeError:
        raise ValueError(f"{lines}: not UTF-8 text; save it as UTF-8") from None
    values = values_of(BUNDLE, given)
    studies = [Path(path) for path in values.pop("study")]
    path, new, old = make_bundle(values.pop("out"), texts, studies, check=check_sent, **values)
    typer.echo(f"{path}: {new.roster.title}, studies {', '.join(new.files) or 'none'}")
    if not studies:
        try:
            check_studies(new.files, new.signed_roster, check_sent)
        except ValueError as error:
            typer.echo(f"warning: a study of the last bundle cannot run: {error}")
    for line in changes(old.roster if old else None, new.roster):
        typer.echo(line)
    if old and new.relay != old.relay:
        typer.echo(f"relay:       {new.relay}, was {old.relay}")
    if old and (more := len(new.revoked) - len(old.revoked)):
        typer.echo(f"revoked:     {more} certificates, which a party refuses once it has fetched")
    typer.echo(f"Digest: {grouped_digest(new.roster.digest)}")
    typer.echo(
        "Send the file to all parties. If the digest is new, read it to each of them by telephone."
    )
    typer.echo(f"Each party runs\n    vertibayes fetch {path.name}")
    typer.echo(
        f"or, once the relay has it,\n    vertibayes fetch {new.relay}/{name_of(new.roster)}"
    )


@commands.command("fetch", epilog=ROLES)
def _fetch(
    bundle: Annotated[
        str | None, typer.Argument(help="The coordinator's file, or its place at the relay.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="The party's own file; the one in this folder if not given.")
    ] = None,
    digest: Annotated[
        str | None, typer.Option(help="All digits; asks for the first 16 if not given.")
    ] = None,
) -> None:
    """Take the coordinator's bundle, and check the party's file.

    Without an argument the command asks the party's relay. It shows what changes. If the roster is
    new, compare all digits of its digest with the coordinator by telephone. A running party uses a
    new roster after a restart. If the check finds anything wrong, the exit status is 2, and the
    bundle is taken nevertheless.
    """
    from vertibayes.cli.check import run_check
    from vertibayes.cli.confirming import agree
    from vertibayes_protocols.contract import grouped_digest
    from vertibayes_protocols.deployment.fetching import bundle_from, fetching

    own = file or _own_file()
    source, content, found = bundle_from(own, bundle)
    taken = fetching(own, found, content)
    typer.echo(f"{found.roster.title}, signed by the coordinator with {found.roster.signer}")
    for line in taken.lines:
        typer.echo(line)
    typer.echo(f"Digest: {grouped_digest(found.roster.digest)}")
    if taken.compares_digest:
        agree(found.roster.digest, digest, Path(source), "take this bundle", "the coordinator")
    taken.write()
    restart = "; restart the party that uses it" if taken.restarts else ""
    typer.echo(f"Written: {own}{restart}\n" if taken.lines else "Nothing is new\n")
    if run_check([own], meet=False):
        raise typer.Exit(2)


def _own_file() -> Path:
    from vertibayes_protocols.deployment.parts import OWN_FILES

    for name in OWN_FILES.values():  # that of a study is the last: a site has studies too
        if (path := Path(name)).exists():
            return path
    raise ValueError(
        f"this folder has none of {', '.join(OWN_FILES.values())}: specify --file, or run "
        "`vertibayes enrol`"
    )
