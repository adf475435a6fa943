"""MPyC's three processes, in a session that ends with them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

PATIENCE = 30  # seconds


def mpyc_seconds(script: str, *arguments: object) -> float | None:
    """Return the seconds that a script of this folder prints last; None if MPyC does not run."""
    path = str(Path(__file__).with_name(script))
    command = [sys.executable, path, *map(str, arguments), "-M3", "-B", str(_free_port())]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate(timeout=PATIENCE)
            return float(told.split()[-1]) if process.returncode == 0 else None
        except (subprocess.TimeoutExpired, IndexError, ValueError):
            return None
        finally:
            with suppress(ProcessLookupError):  # all have ended by themselves
                os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    """Return a port that is free, as its followers are likely to be."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return min(int(probe.getsockname()[1]), 65_000)
