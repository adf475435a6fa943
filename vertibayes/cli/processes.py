"""Parties as child processes: their command, their environment and their end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any

END_SECONDS = 10.0
PACKAGES = ("vertibayes", "vertibayes_protocols", "vertibayes_mpc")


def child_command(kind: str, file: Path) -> list[str]:
    """Return the command of a party whose process ends when this process ends."""
    # -P: the working folder may hold a folder `vertibayes` of the user, which -m would import
    return [sys.executable, "-P", "-m", "vertibayes.cli.child", kind, str(file)]


def child_environment() -> dict[str, str]:
    """Return an environment in which a child imports these packages, also from a clone."""
    files = [Path(str(import_module(name).__file__)) for name in PACKAGES]
    roots = [file.parents[1] for file in files]
    clones = [str(root) for root in roots if root.name not in ("site-packages", "dist-packages")]
    paths = os.pathsep.join(filter(None, (*clones, os.environ.get("PYTHONPATH"))))
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
