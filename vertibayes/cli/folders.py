"""Paths that a user gives, checked before anything heavy is imported."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from vertibayes.words import size

LEDGER = re.compile(r"ledger(-\d+)?\.json")  # of this run; with a number, of a failed run before
LEAST_FREE = 1_000_000  # bytes free on the disk of the results before a run: models are smaller


def check_file(path: Path) -> Path:
    """Return a path, which must exist; that of a URL is left to its reader, which shows no part."""
    if not path.exists() and not any(part.endswith(":") for part in path.parts):
        raise ValueError(f"{path}: no such file")
    return path


def check_new(out: Path) -> None:
    """Refuse a file that exists or cannot be written, with a ValueError."""
    if out.exists():
        raise ValueError(f"--out {out}: the file exists; specify a new one")
    folder = out.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"--out {out}: {folder} is not a folder that can be written to")


def check_folder(folder: Path) -> None:
    """Refuse, before a run, a folder that cannot take its results.

    The folder must be new or empty, except for ledgers of runs that failed, and on a disk with free
    space.
    """
    parent = folder.resolve()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ValueError(f"--out {folder}: {parent} is not a folder that can be written to")
    if not is_free(folder):
        raise ValueError(f"--out {folder}: it has files; specify a new or empty folder")
    disk = shutil.disk_usage(parent)
    if not disk.total:  # as /proc
        raise ValueError(f"--out {folder}: {parent} is no folder of a disk; name one that is")
    free = disk.free
    if free < LEAST_FREE:
        raise ValueError(
            f"--out {folder}: the disk of {parent} is full ({size(free)} free); free at least "
            f"{size(LEAST_FREE)}"
        )


def is_free(folder: Path) -> bool:
    """Whether a folder is new, or has at most the ledgers of runs that failed."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(LEDGER.fullmatch(path.name) for path in folder.iterdir())
