"""``vertibayes status``: whether a party or a run runs, what it does, and what went wrong last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TypeAlias

from vertibayes.cli.run_lines import changes_of_run, lines_of_run
from vertibayes_protocols.deployment.run_status import (
    RunStatus,
    read_any_status,
)
from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    NotStartedError,
    Status,
    existing_status,
    now,
)
from vertibayes_protocols.errors import printable

__all__ = ["STOPPED", "NotStartedError", "run_status", "watch_status"]

Show: TypeAlias = Callable[[Status | RunStatus, bool], None]

STATES = {HEALTHY: "runs", STOPPED: "does not run"}
LEAST_SECONDS, MOST_SECONDS = 0.1, 3600.0  # between two looks


def run_status(path: Path) -> int:
    """Print the status of a party or of a run; return the exit status."""
    status, runs = read_any_status(existing_status(path))
    sys.stdout.write("\n".join(_lines(status, runs)) + "\n")
    return status.health(runs=runs)


def watch_status(path: Path, interval: float) -> int:
    """Show a status until the party or the run has ended; return the exit status."""
    if not LEAST_SECONDS <= interval <= MOST_SECONDS:
        allowed = f"between {LEAST_SECONDS:g} and {MOST_SECONDS:g} seconds"
        raise ValueError(f"--interval must be {allowed}, got {interval:g}")
    file = existing_status(path)
    with _screen() as show:
        while True:
            status, runs = read_any_status(file)
            show(status, runs)
            if not runs or (isinstance(status, RunStatus) and status.ended):
                return status.health(runs=runs)
            sleep(interval)


@contextmanager
def _screen() -> Iterator[Show]:
    """Yield what shows a status: drawn again on a terminal, and the new lines elsewhere."""
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:  # sites do not install it
        yield _Changes()
        return
    if not sys.stdout.isatty():
        yield _Changes()
        return
    with Live(auto_refresh=False, vertical_overflow="visible") as live:

        def draw(status: Status | RunStatus, runs: bool) -> None:
            live.update(Text("\n".join(_lines(status, runs))), refresh=True)

        yield draw


class _Changes:
    """Writes the lines that were not there before, each with the time."""

    def __init__(self) -> None:
        self._before: set[str] = set()

    def __call__(self, status: Status | RunStatus, runs: bool) -> None:
        """Write the lines of a status that are new."""
        if isinstance(status, RunStatus):
            lines = changes_of_run(status, runs=runs)
        else:
            lines = _lines(status, runs)
        new = [line for line in lines if line not in self._before]
        sys.stdout.write("".join(f"{now()} {line.strip()}\n" for line in new))
        sys.stdout.flush()
        self._before = set(lines)


def _lines(status: Status | RunStatus, runs: bool) -> list[str]:
    """Return the lines that are printed about a party or a run."""
    if isinstance(status, RunStatus):
        return lines_of_run(status, runs=runs)
    return [printable(line) for line in _lines_of_party(status, status.health(runs=runs))]


def _lines_of_party(status: Status, code: int) -> list[str]:
    state = STATES.get(code, "runs, but is not connected to the relay")
    lines = [f"{status.role} {status.party} {state}"]
    lines.append(f"  release      {status.release}, version {status.protocol} of the protocols")
    lines.append(f"  started      {status.started}, process {status.process}")
    lines.append(f"  last event   {status.last or 'none'} at {status.updated}")
    for name, session in status.sessions.items():
        lines.append(f"  session {name} of {session['analyst']} since {session['since']}")
        lines.append(f"    study      {session['study'] or 'none yet'}")
        lines.append(f"    queries    {session['answered']} answered{_latest(session)}")
    lines.append(f"  answered     {status.events['answered']} queries")
    lines.append(f"  refused      {status.events['refused']} queries")
    if status.role == "site":
        lines.append("  budgets      `vertibayes ledger site.toml` says what is used and left")
    if error := status.last_error:
        lines.append(f"  last error   {error.get('reason', '')} ({error.get('at', '')})")
    return lines


def _latest(session: Mapping[str, str | int]) -> str:
    return "; the latest event: {last}, at {at}".format(**session) if session["last"] else ""
