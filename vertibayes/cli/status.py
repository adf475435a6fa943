"""``vertibayes status``: whether a party runs, what it does, and what went wrong last."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from vertibayes_protocols.deployment.status import (
    HEALTHY,
    STOPPED,
    Status,
    health,
    prometheus,
    read_status,
    status_path,
)

STATES = {HEALTHY: "runs", STOPPED: "does not run"}


def run_status(path: Path, as_prometheus: bool) -> int:
    """Print a party's status; return the exit status.

    Parameters
    ----------
    path : Path
        The party's file; its status is in the same folder.
    as_prometheus : bool
        Whether to print the text format of Prometheus.

    Raises
    ------
    ValueError
        If there is no status in the folder.
    """
    status, runs = read_status(status_path(path))
    code = health(status, runs=runs)
    sys.stdout.write(
        prometheus(status, runs=runs) if as_prometheus else _words(status, code) + "\n"
    )
    return code


def _words(status: Status, code: int) -> str:
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
    if status.last_error:
        lines.append("  last error   {reason} ({at})".format(**status.last_error))
    return "\n".join(lines)


def _latest(session: Mapping[str, str | int]) -> str:
    return "; the latest event: {last}, at {at}".format(**session) if session["last"] else ""
