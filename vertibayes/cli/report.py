"""``vertibayes report``: write the page of a folder of results."""

from __future__ import annotations

import sys
from pathlib import Path

from vertibayes.cli.notices import warn
from vertibayes.report.page.render import write_report

SUFFIXES = ".html", ".htm"


def run_report(folder: Path, out: Path | None, beside: Path | None = None) -> None:
    """Write the page of a folder of results, which may compare them with those of another."""
    if out is not None:
        _check_page(out)
    try:
        path = write_report(folder, out, beside)
    except (ValueError, OSError):
        raise
    except Exception as error:  # what the files have is anybody's guess
        reason = f"{type(error).__name__}: {error}"
        folders = f"{folder}" if beside is None else f"{folder} or {beside}"
        raise ValueError(f"{folders}: its files are not those of a run ({reason})") from error
    sys.stdout.write(f"Written: {path}\n")


def _check_page(out: Path) -> None:
    """Refuse a page that would replace something else, or whose folder does not exist."""
    if out.is_dir():
        raise ValueError(f"--out {out}: a folder; specify a file, such as {out / 'report.html'}")
    if out.suffix.lower() not in SUFFIXES:  # results and data have other names, and are not lost
        raise ValueError(f"--out {out}: the page is HTML; specify a name that ends in .html")
    if not out.parent.is_dir():
        raise ValueError(f"--out {out}: there is no folder {out.parent}; make it first")


def add_report(folder: Path) -> None:
    """Write the page beside the results of a run; the results stay if that fails."""
    try:
        write_report(folder)
    except Exception as error:  # a page is never worth the results
        warn([f"report.html: not written ({type(error).__name__}: {error}); the other files are"])
