"""The functions that run beside the data: vantage6 mounts the site's folder for them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from vantage6.algorithm.decorator import data_extraction

from vertibayes.cli.hosted import REFUSED, Report, host_site, report_of

SITE_FILE = "site.toml"


@data_extraction
def site(connection_details: Mapping[str, str], study: str, minutes: float = 60.0) -> pa.Table:
    """Run the site's process until the study is released, the time is over, or the task is killed.

    Parameters
    ----------
    connection_details : mapping of str to str
        From the node: "uri" is the site's folder.
    study : str
        The digest of the study, which the site's owner has approved.
    minutes : float, default=60
        For how long the process runs at most.

    Returns
    -------
    table : pyarrow.Table of one row
        The site's report, also if the site was not started: Kubernetes repeats a task that fails.
    """
    file = _file(connection_details)
    if file is None:
        return _table(_no_site(study))
    with _stopped_by_signal() as is_stopped:
        return _table(host_site(file, study, minutes, is_stopped.is_set))


@data_extraction
def status(connection_details: Mapping[str, str], study: str) -> pa.Table:
    """Report on the site and a study; start nothing and change nothing.

    Parameters
    ----------
    connection_details : mapping of str to str
        From the node: "uri" is the site's folder.
    study : str
        The digest of the study.

    Returns
    -------
    table : pyarrow.Table of one row
    """
    file = _file(connection_details)
    return _table(_no_site(study) if file is None else report_of(file, study))


def _file(connection_details: Mapping[str, str]) -> Path | None:
    file = Path(connection_details["uri"]) / SITE_FILE
    return file if file.is_file() else None


def _no_site(study: str) -> Report:
    reason = f"the database has no {SITE_FILE}: specify the label of the site's folder"
    return Report("", str(study), REFUSED, reason)


def _table(report: Report) -> pa.Table:
    sys.stdout.write(f"info > {report.state} {report.reason}\n")
    return pa.Table.from_pylist([report.as_json()])


@contextmanager
def _stopped_by_signal() -> Iterator[threading.Event]:
    """Set an event at SIGTERM, by which Kubernetes kills a task; the first process ignores it."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # a test: only the main thread receives signals
        return
    before = signal.signal(signal.SIGTERM, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGTERM, before)
