"""Commands of parties between machines: keys, certificates, files, and the parties themselves."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from protocols.deployment.files import PartyFile, RelayFile
    from protocols.deployment.log import Tell

STOPPED = 128 + signal.SIGTERM  # of a command that was stopped before it was done

commands = typer.Typer()

FILE = "Its file: `vertibayes init` writes a commented one, `vertibayes check FILE` tries it."
WHERE = "docs/deploy.md leads through a run between machines."
File = Annotated[Path, typer.Argument(help=FILE)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Tell of errors and warnings only.")]


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def stop_when_told(status: int = STOPPED) -> None:
    """End on SIGTERM and SIGHUP as on Ctrl-C: connections are closed, nobody waits for a time-out.

    A signal that whoever started this has set aside, as `nohup` does, stays so.
    """

    def stop(*_: object) -> None:
        raise SystemExit(status)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def _serve(
    read: Callable[[Path], PartyFile | RelayFile],
    run: Callable[[Any, Tell], None],
    path: Path,
    quiet: bool,
) -> None:
    """Run a party until told to stop, which is how it is to end: it is logged, the status is 0."""
    from protocols.deployment.log import start_log, teller

    stop_when_told(0)
    file = read(path)
    start_log(file.party, quiet=quiet)
    tell = teller(file.party)
    try:
        run(file, tell)
    except SystemExit:
        tell("stopped")
        raise


def _wait() -> None:
    """Wait until stopped; a signal may reach another thread, and then would not end a pause."""
    while True:
        sleep(0.5)


def leave(code: int) -> None:
    """End the process if the transport's threads would keep it; all files have been closed."""
    transport = sys.modules.get("protocols.transports.cells")
    if transport is not None and transport.keeps_process():
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@commands.command("keygen")
def _keygen(
    out: Annotated[Path, typer.Option(help="A new file for the private key.")],
) -> None:
    """Make a private key, and print its public half.

    The other parties pin what is printed in their files.
    """
    from mpc.randomness import KeyPair, SystemRandomness
    from protocols.deployment.keys import write_private
    from protocols.public_keys import encode_public

    keys = KeyPair.generate(SystemRandomness())
    write_private(out, keys)
    sys.stdout.write(encode_public(keys.public) + "\n")


@commands.command("init")
def _init(
    sites: Annotated[str, typer.Option(help="The sites' names: a,b,c.")],
    out: Annotated[Path, typer.Option(help="A folder, new or empty.")],
    dealer: Annotated[str, typer.Option(help="The dealer's name.")] = "dealer",
    analyst: Annotated[str, typer.Option(help="The analyst's name.")] = "analyst",
    address: Annotated[str | None, typer.Option(help="The relay's HOST:PORT.")] = None,
    practice: Annotated[
        bool, typer.Option("--practice", help="Make all keys here too: to try, on one machine.")
    ] = False,
) -> None:
    """Write a commented file for each party, in a folder each."""
    from protocols.deployment.templates import Names, init

    names = Names(_split(sites), dealer, analyst)
    for path in init(out, names, practice=practice, relay_address=address):
        sys.stdout.write(f"{path}\n")


@commands.command("provision")
def _provision(
    parties: Annotated[str, typer.Option(help="Sites, dealer and analyst: a,b,dealer,analyst.")],
    host: Annotated[str, typer.Option(help="The relay's name or number on the network.")],
    out: Annotated[Path, typer.Option(help="A folder; its root.key stays with the coordinator.")],
    days: Annotated[int, typer.Option(help="For how long certificates are good.")] = 365,
) -> None:
    """Make certificates: who may connect to the relay, as whom."""
    from protocols.deployment.certificates import provision

    for folder in provision(out, _split(parties), host, days):
        sys.stdout.write(f"{folder}: give it to {folder.name}, and keep no copy of its key\n")
    sys.stdout.write(f"{out / 'root.key'}: stays here; who has it can take any name\n")


@commands.command("site", epilog=WHERE)
def _site(file: File, quiet: Quiet = False) -> None:
    """Run a site: answer its analyst, until stopped."""
    from protocols.deployment.files import SiteFile
    from protocols.deployment.running import run_site

    _serve(SiteFile.read, run_site, file, quiet)


@commands.command("dealer", epilog=WHERE)
def _dealer(file: File, quiet: Quiet = False) -> None:
    """Run the dealer: deal for its sites, until stopped."""
    from protocols.deployment.files import DealerFile
    from protocols.deployment.running import run_dealer

    _serve(DealerFile.read, run_dealer, file, quiet)


@commands.command("relay", epilog=WHERE)
def _relay(file: File, quiet: Quiet = False) -> None:
    """Run the relay: pass on sealed messages, until stopped."""
    from protocols.deployment.files import RelayFile
    from protocols.deployment.running import run_relay

    _serve(RelayFile.read, partial(run_relay, wait=_wait), file, quiet)


@commands.command("check")
def _check(
    files: Annotated[list[Path], typer.Argument(help="Configuration files, of any parties.")],
    meet: Annotated[
        bool, typer.Option("--meet", help="Of study.toml, first: meet its parties, all running.")
    ] = False,
) -> None:
    """Say before a run what is wrong.

    Keys, certificates, the clock, the data, whether the relay listens; of several files also
    whether they fit each other. With --meet the parties of a study begin a session: whether all
    can be reached, pin each other's keys, run one release, and hold the same people.
    """
    from vertibayes.cli.check import run_check

    stop_when_told()
    if run_check(files, meet):
        raise typer.Exit(2)


@commands.command("up")
def _up(
    study: Annotated[Path, typer.Argument(help="study.toml; the others' folders lie beside its.")],
    out: Annotated[Path, typer.Option(help="A folder, new or empty, for the results.")],
    quiet: Quiet = False,
) -> None:
    """Run all parties of a study on this machine, and learn.

    For practice: each party is a process of its own.
    """
    from vertibayes.cli.up import run_up

    stop_when_told()
    run_up(study, out, quiet)
