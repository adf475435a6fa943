"""The formats of a party's files: each file says which one it has, as a number.

A file without a number is of release 0.1.0 or older, and has format 0. It is read, and has the
current format from its next write on. No copy of the old file is kept: a party that went back to it
would have forgotten what it has answered for since. A format rises with each change that an older
release must not ignore; an older release refuses the file and asks for the newer release.
"""

from __future__ import annotations

from pathlib import Path

OLDEST = 0


class NewerFormatError(ValueError):
    """A file was written by a newer release."""


def check_format(path: Path, given: object, newest: int) -> int:
    """Return the format of a file, or refuse it."""
    if type(given) is not int or given < OLDEST:
        raise ValueError(f"the format of {path} must be a whole number, got {given!r:.20}")
    if given > newest:
        raise NewerFormatError(
            f"{path} was written by a newer release of vertibayes (format {given}, this release "
            f"reads formats up to {newest}): install the newer release again"
        )
    return given
