"""``vertibayes up``: all parties of a study as processes of this machine, for practice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from threading import Event, Thread
from time import monotonic, sleep

from vertibayes.cli.approve import approvable
from vertibayes.cli.check import reach
from vertibayes.cli.contracts import has_contract
from vertibayes.cli.processes import child_command, child_environment, end_children
from vertibayes_protocols.approval import today
from vertibayes_protocols.deployment.approvals import Approval, write_approval
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.transports.mailbox import RELAY
from vertibayes_protocols.transports.route import is_this_machine

START_SECONDS = 60.0


def run_up(study: Path, out: Path, quiet: bool) -> None:
    """Start the relay, the dealer and the sites, learn, and end them all."""
    file = StudyFile.read(study)
    if file.relay is None:
        raise ValueError(f"{study}: [relay] is missing: `up` needs the address of a relay")
    host, port = file.relay.host_and_port
    if not is_this_machine(host):
        raise ValueError(f"{study}: the relay {host} is not this machine; start each party there")
    files = party_files(study, file)
    if reach(host, port) is None:
        raise ValueError(f"{study}: another program listens at {file.relay.address}")
    if has_contract(file) and file.relay.certificates is None:
        approve_for_practice(file, files, quiet)
    with _processes() as started:
        relay = _Party(RELAY, "relay", files.pop(RELAY), quiet)
        started.append(relay)
        relay.wait_for("listening")
        for name, path in files.items():
            kind = "dealer" if name == file.dealer else "site"
            started.append(_Party(name, kind, path, quiet))
        for party in started[1:]:
            party.wait_for("connected")
        if not quiet:
            sys.stderr.write(f"watch the run: vertibayes status {quote(str(study))} --watch\n")
        _learn(study, out, quiet)


def party_files(study: Path, file: StudyFile) -> dict[str, Path]:
    """Return the files of the relay, the dealer if any, and the sites, beside the study's folder.

    Raises
    ------
    ValueError
        If a file is missing; the message names it.
    """
    beside = study.resolve().parent.parent
    files = {RELAY: beside / RELAY / "relay.toml"}
    if file.dealer:
        files[file.dealer] = beside / file.dealer / "dealer.toml"
    files |= {site: beside / site / "site.toml" for site in file.sites}
    for path in files.values():
        if not path.exists():
            raise ValueError(f"{path}: no such file; `vertibayes init --practice` writes all files")
    return files


def approve_for_practice(file: StudyFile, files: Mapping[str, Path], quiet: bool) -> None:
    """Approve a study at all sites for practice: one person has all files, and no certificates.

    Parties with certificates belong to several owners, and each of them approves the study.

    Parameters
    ----------
    file : StudyFile
        The study.
    files : mapping of str to Path
        The file of each site.
    quiet : bool
        Whether not to say so.
    """
    for name in file.sites:
        own = SiteFile.read(files[name])
        if own.policy.free_tables:
            continue
        write_approval(own.approved, Approval(approvable(file, own), "practice", today()))
        if not quiet:
            sys.stderr.write(f"practice: {name} approves the study without its owner\n")


def _learn(study: Path, out: Path, quiet: bool) -> None:
    command = [*child_command("learn", study), "--out", str(out), *(["--quiet"] if quiet else [])]
    process = subprocess.Popen(  # noqa: S603 (our own)
        command, stdin=subprocess.PIPE, start_new_session=True, env=child_environment()
    )
    try:
        code = process.wait()
    except BaseException:
        end_children([process])
        raise
    if code:
        raise SystemExit(code)


class _Party:
    """The process of a party; its output goes to standard error."""

    def __init__(self, name: str, kind: str, file: Path, quiet: bool) -> None:
        self.name, self.quiet = name, quiet
        self.process = subprocess.Popen(  # noqa: S603 (our own)
            child_command(kind, file),
            stderr=subprocess.PIPE,
            stdin=subprocess.PIPE,
            env=child_environment(),
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C ends the parent, which then ends the parties in order
        )
        self._said: dict[str, Event] = {"listening": Event(), "connected": Event()}
        Thread(target=self._pass_on, daemon=True).start()

    def _pass_on(self) -> None:
        assert self.process.stderr is not None  # piped
        for line in self.process.stderr:
            for event, said in self._said.items():
                if f" {self.name} {event} " in line:
                    said.set()
            if not self.quiet or line.startswith("vertibayes: "):
                sys.stderr.write(line)

    def wait_for(self, event: str) -> None:
        """Wait until the party logs an event: "listening" or "connected"."""
        end = monotonic() + START_SECONDS
        while not self._said[event].wait(0.1):
            if self.process.poll() is not None:
                sleep(0.2)  # its last lines are still on their way
                raise ValueError(f"{self.name} ended before it was {event}")
            if monotonic() > end:
                raise ValueError(f"{self.name} was not {event} after {START_SECONDS:.0f} s")


@contextmanager
def _processes() -> Iterator[list[_Party]]:
    """End all processes of the list when the block ends; the relay, which is first, ends last."""
    started: list[_Party] = []
    try:
        yield started
    finally:
        processes = [party.process for party in started]
        end_children(processes[1:])
        end_children(processes[:1])
