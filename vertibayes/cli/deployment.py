"""Commands of parties between machines: keys, certificates, files, and the parties themselves."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vertibayes.cli.folders import check_file, check_folder
from vertibayes.cli.options import takes
from vertibayes_protocols.settings import REQUIRED, Setting

if TYPE_CHECKING:
    from vertibayes_protocols.approval import ContractSteps
    from vertibayes_protocols.calibration.agreed import ClassifierSpec
    from vertibayes_protocols.calibration.factors import Floats
    from vertibayes_protocols.contract import Contract
    from vertibayes_protocols.deployment.files import RelayFile, SiteFile
    from vertibayes_protocols.deployment.metrics import Used
    from vertibayes_protocols.events import Tell
    from vertibayes_protocols.transports.counted import Moved

STOPPED = 128 + signal.SIGTERM  # of a command that was stopped before it was done

commands = typer.Typer()

FILE = "Its file: `vertibayes enrol` writes a commented one, `vertibayes check FILE` checks it."
WHERE = "docs/deploy.md has one page for each role between machines."
File = Annotated[Path, typer.Argument(help=FILE, callback=check_file)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Write each log line as JSON.")]


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def stop_on_signal(status: int = STOPPED) -> None:
    """End on SIGTERM and SIGHUP as on Ctrl-C: connections are closed, and no peer has to time out.

    A signal that the parent process ignores, as under `nohup`, stays ignored.
    """

    def stop(*_: object) -> None:
        raise SystemExit(status)

    hang_up = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []  # Windows has none
    for number in (signal.SIGTERM, *hang_up):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def _serve(
    read: Callable[[Path], Any],
    run: Callable[..., None],
    path: Path,
    *,
    quiet: bool,
    log_json: bool,
) -> None:
    """Run a party until it is stopped, which is logged; the exit status is then 0."""
    from vertibayes import __version__
    from vertibayes_protocols.deployment.log import start_log, teller
    from vertibayes_protocols.deployment.metrics import Metrics, metrics_served
    from vertibayes_protocols.deployment.status import Status, kept_status, status_path

    stop_on_signal(0)
    file = read(path)
    start_log(quiet=quiet, as_json=log_json)
    status = Status(file.party, file.kind, __version__)
    metrics = Metrics(file, status, partial(_used, file))
    with (
        kept_status(status_path(path), status, teller(file.party)) as kept,
        metrics_served(metrics, file.metrics),
    ):
        tell = metrics.watch(kept)
        try:
            run(file, tell, moved=metrics.moved)
        except SystemExit:
            tell("stopped")
            raise


def _used(file: SiteFile) -> list[Used]:
    """Return what a site has used of its limits; import only then what reads its memory."""
    from vertibayes.report.ledger.budgets import used_of_limits

    return used_of_limits(file)


def _wait() -> None:
    """Wait until stopped; in short pauses, as a signal may reach another thread."""
    while True:
        sleep(0.5)


@commands.command("keygen")
def _keygen(
    out: Annotated[Path, typer.Option(help="File for the private key, which must be new.")],
) -> None:
    """Make a private key, and print its public half.

    The other parties pin the public key in their files. With a coordinator, use `vertibayes enrol`.
    """
    from vertibayes_protocols.deployment.keys import make_private
    from vertibayes_protocols.public_keys import public_text

    sys.stdout.write(f"{public_text(make_private(out))}\n")


@commands.command("init")
@takes(
    Setting("sites", "text", "Names of the sites, separated by commas: a,b,c.", REQUIRED),
    Setting("out", "any path", "Folder for the files, which must be new or empty.", REQUIRED),
    Setting("dealer", "text", "Name of the dealer.", "dealer"),
    Setting("analyst", "text", "Name of the analyst, or names, separated by commas.", "analyst"),
    Setting("address", "text", "Relay's address, HOST:PORT."),
    Setting("practice", "flag", "Make all keys too, for trying on one machine.", False),
)
def _init(sites: str, out: Path, dealer: str, analyst: str, **given: Any) -> None:
    """Write a folder for each party, with its commented file.

    For a trial. In a consortium each party writes its own file: `vertibayes enrol`.
    """
    from vertibayes_protocols.deployment.templates import Names, init

    names = Names(_split(sites), dealer, _split(analyst))
    for path in init(out, names, relay_address=given.pop("address"), **given):
        sys.stdout.write(f"{path}\n")


@commands.command("provision")
@takes(
    Setting("parties", "text", "Sites, dealer and analyst: a,b,dealer,analyst.", REQUIRED),
    Setting("host", "text", "Host name or IPv4 address of the relay.", REQUIRED),
    Setting("out", "any path", "Folder for the certificates; root.key stays there.", REQUIRED),
    Setting("days", "whole", "Days for which the certificates are valid.", 365),
    Setting("new_root", "flag", "Replace the root, and all certificates with it.", False),
)
def _provision(parties: str, out: Path, **given: Any) -> None:
    """Make certificates, with which the parties connect to the relay.

    The command renews the certificates of parties that have one; --parties relay renews that of the
    relay. Old certificates stay valid until they expire, or until the relay lists them as revoked:
    issued.txt has their serial numbers.
    """
    from vertibayes_protocols.deployment.certificates import provision

    for folder in provision(out, _split(parties), **given):
        sys.stdout.write(f"{folder}: give it to {folder.name}, and keep no copy of the key\n")
    sys.stdout.write(f"{out / 'root.key'}: stays here; with it, anybody can take any name\n")


@commands.command("site", epilog=WHERE)
def _site(file: File, quiet: Quiet = False, log_json: LogJson = False) -> None:
    """Run a site, which answers its analyst, until stopped."""
    from vertibayes_protocols.deployment.files import SiteFile
    from vertibayes_protocols.deployment.running import run_site

    run = partial(run_site, keep=_keep, learner=_follow)
    _serve(SiteFile.read, run, file, quiet=quiet, log_json=log_json)


def _keep(folder: Path, spec: ClassifierSpec, statistics: Floats) -> None:
    """Write a site's own classifier after a calibration; import only then what takes memory."""
    from vertibayes.calibration.network_model import model_of
    from vertibayes.cli.outputs import write_model, write_whole

    write_whole(folder, partial(write_model, model=model_of(spec, statistics)))


def _follow(contract: Contract) -> ContractSteps:
    """Return the steps of an approved study; import only then what takes memory."""
    from vertibayes.contract import steps_of_contract

    return steps_of_contract(contract)


@commands.command("meets", epilog=WHERE)
def _meets(
    site: Annotated[Path, typer.Argument(help="The site's own file.")],
    reset: Annotated[
        str | None, typer.Option(help="Forgive all comparisons with this site so far.")
    ] = None,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Allow further alignments: forget those so far.")
    ] = False,
    older_memory: Annotated[
        list[str] | None,
        typer.Option(metavar="PEER", help="Accept what this site, or PEER, forgot."),
    ] = None,
) -> None:
    """List failed comparisons, alignments, old memories; forgive.

    A comparison that finds different lists, or that the other site does not answer, may be a guess
    of this site's list. After most_failed_meets of them the site refuses to compare. If you know
    why they failed, forgive them: a running site reads this at the next comparison. An alignment
    matches whole lists of people: after most_alignments of them the site refuses the next one.
    A site whose memory or ledger is older than when it met another site has forgotten what was used
    up since. Both refuse until the newest files are restored or, if they are lost, until each owner
    accepts that.
    """
    from vertibayes.cli.meets import run_meets

    run_meets(site, reset, alignments=alignments, older=older_memory or ())


@commands.command("verify", epilog=WHERE)
def _verify(
    site: Annotated[Path, typer.Argument(help="The site's own file.")],
    head: Annotated[
        bool, typer.Option("--head", help="Print the signed head of the ledger, for a log.")
    ] = False,
    heads: Annotated[
        Path | None, typer.Option(help="Compare the ledger with the heads in this log.")
    ] = None,
) -> None:
    """Check a site's ledger and memory.

    The exit status is 1 if the ledger is not whole, or if one of them is older than the other.
    """
    from vertibayes.cli.verify import run_verify

    raise typer.Exit(run_verify(site, head=head, heads=heads))


@commands.command("repair", epilog=WHERE)
def _repair(
    site: Annotated[Path, typer.Argument(help="The site's own file.")],
    because: Annotated[str, typer.Option(help="Why the newest files are lost.")] = "",
) -> None:
    """Use what is left of a site's ledger and memory.

    The ledger notes what is missing. Without --because it says what is missing and what may follow,
    and changes nothing.
    """
    from vertibayes.cli.verify import run_repair

    raise typer.Exit(run_repair(site, because))


@commands.command("approve", epilog=WHERE)
@takes(
    Setting("site", "path", "The site's own file.", Path("site.toml")),
    Setting("by", "text", "Who approves; this user if not given."),
    Setting("yes", "flag", "Approve without a question.", False),
    Setting("digest", "text", "The digest that the analyst has read to you."),
    Setting("purpose", "text", "What for; the ledger has it."),
    Setting("permit", "text", "The number of the ethics committee's file, or of a data permit."),
    Setting("until", "text", "The last day of the approval, in UTC: YYYY-MM-DD."),
    Setting("page", "any path", "HTML file to write or replace: what you read, to file and sign."),
    Setting("second", "path", "Private key of the second person, who consents to the approval."),
    Setting("list", "flag", "List what is approved and declined.", False),
    Setting("withdraw", "text", "Withdraw the approval of this digest, or its beginning."),
)
def _approve(
    study: Annotated[Path | None, typer.Argument(help="The analyst's study.toml.")] = None,
    *,
    site: Path,
    withdraw: str | None,
    **given: Any,
) -> None:
    """Approve a study as the owner of a site.

    The command shows what would leave the site, to whom and how often, and the digest of the study,
    which the owner compares with the analyst's by telephone. A running site answers the study from
    then on, until the last day if there is one: a run stops at its next query. Every change of the
    study needs another approval.

    If [policy] of the site's file has second_person, a run is refused until that person has
    consented too, with --second.
    """
    stop_on_signal()
    if (study is not None) + given.pop("list") + (withdraw is not None) != 1:
        raise ValueError("specify one of study.toml, --list and --withdraw DIGEST")
    _check_site(site)
    if study is not None:
        check_file(study)

    from vertibayes.cli.approve import run_approve, run_list, run_withdraw

    if study is not None:
        run_approve(study, site, **given)
    elif withdraw is not None:
        run_withdraw(site, withdraw)
    else:
        run_list(site)


def _check_site(site: Path) -> None:
    if not site.exists():
        raise ValueError(
            f"{site}: no such file; run the command in the site's folder, or specify its file, as "
            "--site FOLDER/site.toml"
        )


@commands.command("decline", epilog=WHERE)
@takes(
    Setting("because", "text", "The reason, which the analyst reads.", REQUIRED),
    Setting("site", "path", "The site's own file.", Path("site.toml")),
    Setting("by", "text", "Who declines; this user if not given."),
    Setting("page", "any path", "HTML file to write or replace: what is declined, to file."),
)
def _decline(
    study: Annotated[Path, typer.Argument(help="The analyst's study.toml.", callback=check_file)],
    *,
    site: Path,
    **given: Any,
) -> None:
    """Decline a study as the owner of a site, and say why.

    A running site refuses the study with this reason. An approval of the study is withdrawn; the
    owner can still approve the study later.
    """
    stop_on_signal()
    _check_site(site)

    from vertibayes.cli.decisions import run_decline

    run_decline(study, site, **given)


@commands.command("dealer", epilog=WHERE)
def _dealer(file: File, quiet: Quiet = False, log_json: LogJson = False) -> None:
    """Run the dealer, which deals for its sites, until stopped."""
    from vertibayes_protocols.deployment.files import DealerFile
    from vertibayes_protocols.deployment.running import run_dealer

    _serve(DealerFile.read, run_dealer, file, quiet=quiet, log_json=log_json)


@commands.command("relay", epilog=WHERE)
def _relay(file: File, quiet: Quiet = False, log_json: LogJson = False) -> None:
    """Run the relay, which passes on sealed messages, until stopped."""
    from vertibayes_protocols.deployment.files import RelayFile
    from vertibayes_protocols.deployment.running import run_relay

    def run(read: RelayFile, tell: Tell, **_: Moved) -> None:
        run_relay(read, tell, _wait)

    _serve(RelayFile.read, run, file, quiet=quiet, log_json=log_json)


@commands.command("up")
def _up(
    study: Annotated[Path, typer.Argument(help="study.toml, beside the other parties' folders.")],
    out: Annotated[Path, typer.Option(help="Folder for the results, which must be new or empty.")],
    quiet: Quiet = False,
) -> None:
    """Run all parties of a study on this machine, and learn.

    For practice; each party is a process. Without certificates, as `init --practice` leaves the
    files, the command also approves the study at all sites; with them, each site's owner does.
    """
    stop_on_signal()
    check_folder(out)
    check_file(study)
    from vertibayes.cli.up import run_up

    run_up(study, out, quiet)
