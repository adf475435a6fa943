"""Parties as child processes: their command, their environment and their end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

END_SECONDS = 10.0


def child_command(kind: str, file: Path) -> list[str]:
    """Return the command of a party whose process ends when this process ends."""
    # -P: the working folder may hold a folder `vertibayes` of the user, which -m would import
    return [sys.executable, "-P", "-m", "vertibayes.cli.child", kind, str(file)]


def child_environment() -> dict[str, str]:
    """Return an environment in which a child imports this package, also from a clone."""
    root = Path(__file__).parents[2]
    if root.name in ("site-packages", "dist-packages"):
        return {**os.environ}
    paths = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": paths}


def end_children(processes: Sequence[subprocess.Popen[Any]]) -> None:
    """End processes as Ctrl-C does, and kill those that have not ended after `END_SECONDS`."""
    for process in processes:
        process.terminate()
    end = monotonic() + END_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, end - monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
