"""``vertibayes status --watch`` and ``--page``: follow a party or a run until it has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EACCES, EADDRINUSE
from pathlib import Path
from time import monotonic, sleep
from typing import TypeAlias

from vertibayes.cli.status import code_of, lines_of_status
from vertibayes_protocols.deployment.run_status import RunStatus, read_any_status
from vertibayes_protocols.deployment.status import Status, existing_status, now

Show: TypeAlias = Callable[[Status | RunStatus, bool], None]

LEAST_SECONDS, MOST_SECONDS = 0.1, 3600.0  # between two looks
END_SECONDS = 60.0  # for which the page of a run that has ended waits for a reader,
SHOWN_SECONDS = 2.0  # and then for a second one


def check_interval(seconds: float) -> None:
    """Refuse, with a ValueError, an interval that is too short or too long."""
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        allowed = f"between {LEAST_SECONDS:g} and {MOST_SECONDS:g} seconds"
        raise ValueError(f"--interval must be {allowed}, got {seconds:g}")


def run_watch(path: Path, interval: float) -> int:
    """Show a status until the party or the run has ended; return the exit status."""
    check_interval(interval)
    file = existing_status(path)
    with _screen() as show:
        while True:
            status, runs = read_any_status(file)
            show(status, runs)
            if _is_over(status, runs):
                return code_of(status, runs)
            sleep(interval)


def _is_over(status: Status | RunStatus, runs: bool) -> bool:
    return not runs or (isinstance(status, RunStatus) and bool(status.ended))


@contextmanager
def _screen() -> Iterator[Show]:
    """Yield what shows a status: drawn again on a terminal, and the new lines elsewhere."""
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:  # sites do not install it
        yield _Changes()
        return
    if not sys.stdout.isatty():
        yield _Changes()
        return
    with Live(auto_refresh=False, vertical_overflow="visible") as live:

        def draw(status: Status | RunStatus, runs: bool) -> None:
            live.update(Text("\n".join(lines_of_status(status, runs))), refresh=True)

        yield draw


class _Changes:
    """Writes the lines that were not there before, each with the time."""

    def __init__(self) -> None:
        self._before: set[str] = set()

    def __call__(self, status: Status | RunStatus, runs: bool) -> None:
        """Write the lines of a status that are new."""
        lines = _lines_of_log(status, runs)
        new = [line for line in lines if line not in self._before]
        sys.stdout.write("".join(f"{now()} {line.strip()}\n" for line in new))
        sys.stdout.flush()
        self._before = set(lines)


def _lines_of_log(status: Status | RunStatus, runs: bool) -> list[str]:
    if not isinstance(status, RunStatus):
        return lines_of_status(status, runs)
    from vertibayes.report.live.view import changes_of, view_of

    return changes_of(view_of(status, runs=runs))


def run_page(path: Path, port: int) -> int:
    """Serve the page of a run on this machine until the run has ended; return the exit status."""
    from vertibayes.report.live.server import serving
    from vertibayes.report.live.view import View, unreadable, view_of

    file = existing_status(path)
    if not isinstance(read_any_status(file)[0], RunStatus):
        raise ValueError(f"{path}: --page shows a run: specify the analyst's study.toml")

    def view() -> View:
        try:
            status, runs = read_any_status(file)
        except ValueError as error:
            return unreadable(str(error))
        if not isinstance(status, RunStatus):
            return unreadable(f"{file} is no longer the status of a run")
        return view_of(status, runs=runs)

    with _port_named(port), serving(view, port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        while not view()["over"]:
            sleep(1.0)
        _let_read(server.shown_end.wait)
    return code_of(*read_any_status(file))


@contextmanager
def _port_named(port: int) -> Iterator[None]:
    """Say of a port that cannot be opened which one it is, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in {EADDRINUSE, EACCES}:
            raise
        remedy = "specify another one, or leave --port out for a free one"
        raise ValueError(f"--port {port}: cannot be opened ({error.strerror}); {remedy}") from None


def _let_read(wait: Callable[[float], bool]) -> None:
    """Wait until a browser has read the end, and a little for a second one."""
    end = monotonic() + END_SECONDS
    if wait(END_SECONDS):
        sleep(min(SHOWN_SECONDS, max(0.0, end - monotonic())))
