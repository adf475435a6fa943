"""What commands write to standard error: warnings, and the parties that they wait for."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.renewal import Notice, unnoticed
from vertibayes_protocols.roles import Party
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.transports.network import Waiting, unsaid


def warn(warnings: Iterable[str], watch: RunWatch = UNWATCHED) -> None:
    """Write warnings to standard error; the watch is notified how many there are."""
    for warning in warnings:
        watch.warned(1)
        sys.stderr.write(f"warning: {warning}\n")


def waiting(quiet: bool) -> Waiting:
    """Return what reports the parties that have not connected."""
    return unsaid if quiet else _report_waiting


def _report_waiting(parties: Collection[Party], seconds: float) -> None:
    started = "is it running?" if len(parties) == 1 else "are they running?"
    sys.stderr.write(f"waiting for {', '.join(parties)} ({seconds:g} s; {started})\n")


def broken(quiet: bool, watch: RunWatch = UNWATCHED) -> Notice:
    """Return what reports each session that broke, and when the next one begins."""
    report = unnoticed if quiet else _report_broken

    def notice(error: TransportError, seconds: float) -> None:
        watch.broke(error, seconds)
        report(error, seconds)

    return notice


def _report_broken(error: TransportError, seconds: float) -> None:
    sys.stderr.write(f"there is no session ({error}): the next try is in {seconds:.1f} s\n")
