"""``vertibayes report``: write the page of a folder of results."""

from __future__ import annotations

import sys
from pathlib import Path

from vertibayes.cli.notices import warn
from vertibayes.report.page.render import write_report


def run_report(folder: Path, out: Path | None) -> None:
    """Write the page of a folder of results.

    Parameters
    ----------
    folder : Path
        The folder of a run, also of an earlier release.
    out : Path or None
        The file to write, which is replaced; `report.html` in the folder if None.

    Raises
    ------
    ValueError
        If the folder has no results, or one of its files cannot be read.
    """
    try:
        path = write_report(folder, out)
    except (ValueError, OSError):
        raise
    except Exception as error:  # what the files have is anybody's guess
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{folder}: its files are not those of a run ({reason})") from error
    sys.stdout.write(f"Written: {path}\n")


def add_report(folder: Path) -> None:
    """Write the page beside the results of a run; the results stay if that fails."""
    try:
        write_report(folder)
    except Exception as error:  # a page is never worth the results
        warn([f"report.html: not written ({type(error).__name__}: {error}); the other files are"])
