"""``vertibayes check``: what can be said before a run, the versions and the relay's address too."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from protocols.deployment.checks import check_files
from vertibayes import __version__

REACH_SECONDS = 3.0


def run_check(files: Sequence[Path]) -> bool:
    """Print what is found; return whether anything is wrong."""
    sys.stdout.write(f"{versions()}\n")
    found = check_files(files, reach)
    for how, text in found.lines:
        sys.stdout.write(f"{how:8}{text}\n")
    return found.wrong


def reach(host: str, port: int) -> str | None:
    """Return None if somebody listens at an address, else why it cannot be reached."""
    try:
        with socket.create_connection((host, port), REACH_SECONDS):
            return None
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"


def versions() -> str:
    """Return the versions that parties should have in common."""
    told = [f"vertibayes {__version__}", f"Python {sys.version.split()[0]}"]
    told += [f"{name} {_version(name)}" for name in ("cryptography", "numpy", "nvflare")]
    return ", ".join(told)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not there"
