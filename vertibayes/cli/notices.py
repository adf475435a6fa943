"""The warnings that commands write to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.variables import for_terminals


def warn(warnings: Iterable[str], watch: RunWatch = UNWATCHED) -> list[str]:
    """Write warnings to standard error, notify the watch of their number, and return them."""
    said = list(warnings)
    watch.warned(len(said))
    sys.stderr.writelines(f"warning: {for_terminals(warning)}\n" for warning in said)
    return said
