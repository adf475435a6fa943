"""What commands write to standard error: warnings, and the parties that they wait for."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.roles import Party
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch


def warn(warnings: Iterable[str], watch: RunWatch = UNWATCHED) -> list[str]:
    """Write warnings to standard error, notify the watch of their number, and return them."""
    said = list(warnings)
    watch.warned(len(said))
    sys.stderr.writelines(f"warning: {warning}\n" for warning in said)
    return said


class Notices(RunWatch):
    """Writes which parties a run waits for, and each session that broke."""

    def late(self, parties: Collection[Party], seconds: float) -> None:
        """Write which parties have not connected."""
        started = "is it running?" if len(parties) == 1 else "are they running?"
        sys.stderr.write(f"waiting for {', '.join(parties)} ({seconds:g} s; {started})\n")

    def broke(self, error: TransportError, seconds: float) -> None:
        """Write when the next session begins."""
        sys.stderr.write(f"there is no session ({error}): the next try is in {seconds:.1f} s\n")
