"""A party's process inside a task of another platform (vantage6, NVFlare), for as long as a study.

    task of the platform        starts ``vertibayes site`` (or ``dealer``, ``learn``), waits, ends
                                it, returns a `Report`
    the party's own process     reads the party's file, speaks through the study's relay, or through
                                the task if the platform carries its packets; writes its log

The platform decides when a party's process runs. Everything else is in the party's folder: its
keys, the parties that it pins, and, of a site, its policy and the studies that its owner has
approved. A task names a study by its digest, and a time; it cannot name a file.

Security: whoever may start tasks can start and stop a site's process for a study that the owner has
approved, and for no other. The process then answers as if the owner had started it.

Leakage: a `Report` has names, the digest, states and counts of tables. It has no table, no record
count, no identifier, no line of the log and no error's text, which may quote a cell.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import TypeAlias

from vertibayes.cli.contracts import contract_of
from vertibayes.cli.processes import child_command, child_environment, end_children
from vertibayes_protocols.approval import UnusableApprovalError
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.approvals import valid_approval
from vertibayes_protocols.deployment.files import DealerFile, SiteFile, StudyFile
from vertibayes_protocols.deployment.status import read_status, status_path
from vertibayes_protocols.storage.ledger_entries import (
    Refusal,
    SessionNote,
    Tables,
    read_ledger,
)
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.carried import DESCRIPTOR, End

POLL_SECONDS = 1.0
MOST_MINUTES = 7 * 24 * 60
DIGEST = re.compile("[0-9a-f]{64}")

REFUSED = "refused"  # states of a report: not started
RUNNING = "running"
RELEASED = "released"  # all runs of the study are used up, and its last session ended well
TIME_OVER = "time over"
STOPPED = "stopped"  # by the platform
FAILED = "failed"  # the process ended by itself
IDLE = "not running"
Process: TypeAlias = subprocess.Popen[bytes]
Carry: TypeAlias = Callable[[Connection], End]
ALREADY = {
    RUNNING: "the site's process runs already: stop it first",
    RELEASED: "all runs of the study are used up",
}


@dataclass(frozen=True)
class Report:
    """What a task tells its platform about a party and a study.

    Parameters
    ----------
    party : str
        The party's name; empty if its file is not valid.
    study : str
        The digest of the study, 64 hexadecimal digits; empty if it is not a digest.
    state : str
        "refused", "running", "released", "time over", "stopped", "failed" or "not running".
    reason : str
        Why the party was not started, or why its process ended; empty otherwise.
    runs : int
        How many runs of the study the site has released; as what follows, 0 of another party.
    tables, cells : int
        How many tables the site's ledger lists for the study, and their cells.
    refusals : int
        How many queries of the study the ledger lists as refused.
    """

    party: str
    study: str
    state: str
    reason: str = ""
    runs: int = 0
    tables: int = 0
    cells: int = 0
    refusals: int = 0

    def as_json(self) -> dict[str, str | int]:
        """Return the report as a flat dictionary, for the platform."""
        return asdict(self)


def host_site(
    file: Path,
    study: str,
    minutes: float,
    is_stopped: Callable[[], bool] = lambda: False,
    carry: Carry | None = None,
) -> Report:
    """Run a site's process until a study is released, the time is over, or the platform stops it.

    Parameters
    ----------
    file : Path
        The site's file, which its owner has written. Beside it the function appends to `site.log`.
    study : str
        The digest of a study that the owner has approved; spaces are ignored.
    minutes : float
        For how long the process runs at most; at most a week.
    is_stopped : callable, optional
        () -> whether the platform stops the task; called once a second.
    carry : callable, optional
        As of `hosted`.

    Returns
    -------
    report : Report
        Also if the site was not started: a platform repeats a task that raises an error.
    """
    report = report_of(file, study)
    if report.state != IDLE:
        return replace(report, state=REFUSED, reason=report.reason or ALREADY[report.state])

    def is_released(_: Process) -> bool:
        return report_of(file, study).state == RELEASED

    ended = _run(report, "site", file, (), minutes, is_stopped, is_released, carry)
    return replace(report_of(file, study), state=ended.state, reason=ended.reason)


def host_dealer(
    file: Path, study: str, minutes: float, is_stopped: Callable[[], bool], carry: Carry
) -> Report:
    """Run the dealer's process until the platform stops it; the parameters are `host_site`'s."""
    digest = _digest(study)
    try:
        party = DealerFile.read(file).party
    except (ValueError, OSError):
        return Report("", digest, REFUSED, _not_valid(file, "dealer"))
    report = Report(party, digest, IDLE)
    return _run(report, "dealer", file, (), minutes, is_stopped, lambda _: False, carry)


def host_analyst(
    file: Path,
    study: str,
    minutes: float,
    out: Path,
    is_stopped: Callable[[], bool],
    carry: Carry,
) -> Report:
    """Run `vertibayes learn` for the analyst of a study, or resume it.

    Parameters
    ----------
    file : Path
        The study's file, whose digest must be `study`.
    out : Path
        A new folder for the results.

    Returns
    -------
    report : Report
        "released" if the results are written. The other parameters are those of `host_site`.
    """
    digest = _digest(study)
    try:
        own = StudyFile.read(file)
        is_same = contract_of(own).digest.hex() == digest
    except (ValueError, OSError):
        return Report("", digest, REFUSED, _not_valid(file, "analyst"))
    report = Report(own.party, digest, IDLE)
    if not is_same:
        reason = f"the task names another study than {file.name} of the analyst, by its digest"
        return replace(report, state=REFUSED, reason=reason)
    more = "--out", str(out)
    return _run(report, "learn", file, more, minutes, is_stopped, _has_succeeded, carry)


def report_of(file: Path, study: str) -> Report:
    """Report on a site and a study, whether or not the site's process runs; change nothing.

    Parameters
    ----------
    file : Path
        The site's file.
    study : str
        The digest of a study that the owner has approved; spaces are ignored.

    Returns
    -------
    report : Report
        Its state is "refused" if the study is not approved, or a file is not valid.
    """
    digest = _digest(study)
    if not digest:
        return Report("", "", REFUSED, "the study must be its digest: 64 hexadecimal digits")
    try:
        own = SiteFile.read(file)
    except (ValueError, OSError):
        return Report("", digest, REFUSED, _not_valid(file, "site"))
    try:
        approval = valid_approval(own.approved, bytes.fromhex(digest), own.party, own.second)
        if approval is not None:
            return _report(file, own, approval.contract, digest)
        reason = "the study is not approved here: its owner can approve it (`vertibayes approve`)"
        return Report(own.party, digest, REFUSED, reason)
    except UnusableApprovalError as error:  # the reason is for the analyst, not for the platform
        return Report(own.party, digest, REFUSED, f"the study {str(error).partition(':')[0]}")
    except (ValueError, OSError):
        reason = "the approval, the memory or the ledger of the site cannot be read"
        return Report(own.party, digest, REFUSED, reason)


@contextmanager
def hosted(
    kind: str, file: Path, more: Sequence[str] = (), carry: Carry | None = None
) -> Iterator[Process]:
    """Run a party's process until the block ends; its log goes to a file beside the party's file.

    Parameters
    ----------
    kind : str
        "site", "dealer" or "relay"; "learn" for an analyst.
    file : Path
        The party's file.
    more : sequence of str, optional
        Further arguments of the command.
    carry : callable, optional
        connection -> the carrier's end of it, by which this process carries the party's packets;
        without it the party speaks through the relay that its file names.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    environment = child_environment()
    with ExitStack() as held:
        log = held.enter_context(os.fdopen(os.open(log_path(file), flags, 0o600), "ab"))
        ours, theirs = Pipe()
        with theirs:  # here alone until the process has it: its end is seen when the process ends
            held.enter_context(closing(ours if carry is None else carry(ours)))
            if carry is not None:
                environment[DESCRIPTOR] = str(theirs.fileno())
            process = subprocess.Popen(  # noqa: S603 (our own)
                [*child_command(kind, file.resolve()), *more],
                cwd=file.resolve().parent,
                env=environment,
                stdin=subprocess.PIPE,  # the party ends when this end is closed
                stdout=log,
                stderr=log,
                pass_fds=[] if carry is None else [theirs.fileno()],
                start_new_session=True,
            )
        try:
            yield process
        finally:
            end_children([process])
            if process.stdin is not None:
                process.stdin.close()


def log_path(file: Path) -> Path:
    """Return the file of a hosted party's log: `site.log` beside `site.toml`."""
    return file.with_suffix(".log")


def _run(
    report: Report,
    kind: str,
    file: Path,
    more: Sequence[str],
    minutes: float,
    is_stopped: Callable[[], bool],
    is_released: Callable[[Process], bool],
    carry: Carry | None,
) -> Report:
    """Run a process until the end of a study, of the time, of the process, or of the task."""
    if type(minutes) not in (int, float) or not 0 < minutes <= MOST_MINUTES:
        reason = f"minutes must be more than 0 and at most {MOST_MINUTES} (a week)"
        return replace(report, state=REFUSED, reason=reason)
    end = monotonic() + 60 * minutes
    try:
        with hosted(kind, file, more, carry) as process:
            while True:
                has_ended = process.poll() is not None
                if is_released(process):
                    return replace(report, state=RELEASED)
                if has_ended:
                    log = f"{log_path(file).name} at the {'analyst' if kind == 'learn' else kind}"
                    reason = f"its process ended: {log} has the reason"
                    return replace(report, state=FAILED, reason=reason)
                if is_stopped():
                    return replace(report, state=STOPPED)
                if monotonic() >= end:
                    return replace(report, state=TIME_OVER)
                sleep(min(POLL_SECONDS, max(0.0, end - monotonic())))
    except OSError:  # its text has a path
        reason = f"{log_path(file).name} cannot be written, or the process cannot be started"
        return replace(report, state=REFUSED, reason=reason)


def _not_valid(file: Path, role: str) -> str:
    return f"{file.name} is not valid: run `vertibayes check {file.name}` at the {role}"


def _has_succeeded(process: Process) -> bool:
    return process.poll() == 0


def _digest(study: object) -> str:
    """Return the digest that a task names; an empty text if it is not one."""
    digest = "".join(str(study).split()).lower()
    return digest if DIGEST.fullmatch(digest) else ""


def _report(file: Path, own: SiteFile, contract: Contract, digest: str) -> Report:
    runs = SiteMemory.read(own.memory).runs.count(contract.digest)[1] if own.memory.exists() else 0
    entries = read_ledger(own.ledger).entries if own.ledger.exists() else []
    noted = [entry for entry in entries if entry.purpose.study == digest]
    status = status_path(file)
    state = RUNNING if status.exists() and read_status(status)[1] else IDLE
    last = noted[-1].noted if noted else None
    has_ended_well = isinstance(last, SessionNote) and last.event == "ended" and not last.reason
    if runs >= contract.runs and has_ended_well:
        state = RELEASED
    tables = [table for entry in noted if isinstance(entry.noted, Tables)
              for table in entry.noted.tables]  # fmt: skip
    refusals = sum(isinstance(entry.noted, Refusal) for entry in noted)
    cells = sum(table.cells for table in tables)
    return Report(own.party, digest, state, "", runs, len(tables), cells, refusals)
