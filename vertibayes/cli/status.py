"""``vertibayes status``: whether a party or a run runs, what it does, and what went wrong last."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from vertibayes_protocols.deployment.run_status import (
    RunStatus,
    read_any_status,
)
from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    Status,
    existing_status,
)
from vertibayes_protocols.errors import printable

STATES = {HEALTHY: "runs", STOPPED: "does not run"}


def run_status(path: Path, as_prometheus: bool) -> int:
    """Print the status of a party or of a run; return the exit status."""
    status, runs = read_any_status(existing_status(path))
    lines = [status.prometheus(runs=runs)] if as_prometheus else lines_of_status(status, runs)
    sys.stdout.write("\n".join(lines).rstrip("\n") + "\n")
    return code_of(status, runs)


def code_of(status: Status | RunStatus, runs: bool) -> int:
    """Return the exit status: 0 is well, 1 is in trouble, 3 does not run."""
    return status.health(runs=runs)


def lines_of_status(status: Status | RunStatus, runs: bool) -> list[str]:
    """Return the lines that are printed about a party or a run."""
    if isinstance(status, RunStatus):
        from vertibayes.report.live.view import lines_of, view_of

        return lines_of(view_of(status, runs=runs))
    return [printable(line) for line in _lines(status, status.health(runs=runs))]


def _lines(status: Status, code: int) -> list[str]:
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
    if error := status.last_error:
        lines.append(f"  last error   {error.get('reason', '')} ({error.get('at', '')})")
    return lines


def _latest(session: Mapping[str, str | int]) -> str:
    return "; the latest event: {last}, at {at}".format(**session) if session["last"] else ""
