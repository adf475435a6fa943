"""How far a run is: a line on a terminal that is updated, and lines of a log otherwise.

Some learners know their steps at most. Others do not, as a search for a structure, whose steps
depend on its results. Each step knows the estimated work of its queries. The time that is left is
that of the step, at the speed of the step so far. A learner that asks one long query, as naive
Bayes, shows the step and the time since it began.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from time import monotonic
from typing import TypeAlias

from vertibayes.cli.phases import CPTS
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch

Clock: TypeAlias = Callable[[], float]
Write: TypeAlias = Callable[[str], None]

QUIET_SECONDS = 10.0  # a run that is shorter logs no line
LINE_SECONDS, LINE_SHARE = 30.0, 0.1  # a line is logged after so much time, or so much progress
TICK_SECONDS = 1.0
CPT_STAGES = CPTS, "EM"  # with which the phase of the CPTs begins
SHORT_SECONDS = 5.0  # between two lines, at least


class Progress:
    """Says how far a run is."""

    def __init__(self, show: Write, clock: Clock = monotonic, watch: RunWatch = UNWATCHED) -> None:
        self._show, self._clock, self._watch = show, clock, watch
        self._stage, self._done, self._most, self._within = "", 0, 0, 0.0
        self._began = clock()

    def __call__(self, stage: str, done: int, most: int) -> None:
        """Note that `done` of at most `most` steps of a stage have ended; 0: `most` is unknown."""
        self._stage, self._done, self._most, self._within = stage, done, most, 0.0
        self._began = self._clock()
        if stage in CPT_STAGES and not done:
            self._watch.phase(CPTS)
        self._watch.progressed(stage, done, most, 0.0, 0.0)
        self._show(self._steps)

    def watch(self, done: int, total: int) -> None:
        """Note how much of the estimated work of the current step has been done."""
        share = self._within = done / total if total else 1.0
        left, seconds = "", 0.0
        if done and share < 1:
            seconds = (self._clock() - self._began) * (1 - share) / share
            left = f", about {duration(seconds)} left in this step"
        self._watch.progressed(self._stage, self._done, self._most, share, seconds)
        self._show(f"{self._steps}, {share:.0%} of this step{left}")

    def tick(self) -> None:
        """Show how long the current step has lasted, of which no share is known."""
        self._show(f"{self._steps}, since {duration(self._clock() - self._began)}")

    @property
    def share(self) -> float:
        """The share of all steps that has been done, the queries of this step included."""
        return (self._done + self._within) / self._most if self._most else 0.0

    @property
    def _steps(self) -> str:
        if not self._stage:
            return "step 1"
        if not self._most:
            return f"{self._stage}: step {self._done + 1}"
        return f"{self._stage}: step {min(self._done + 1, self._most)} of at most {self._most}"


class Lines:
    """Writes a line after a while, or when much has been done; a short run writes none."""

    def __init__(self, write: Write, clock: Clock = monotonic) -> None:
        self._write, self._clock = write, clock
        self._next, self._soon, self._shared = clock() + QUIET_SECONDS, clock() + QUIET_SECONDS, 0.0
        self.share: Callable[[], float] = lambda: 0.0

    def __call__(self, sentence: str) -> None:
        """Write a sentence if it is time."""
        now, share = self._clock(), self.share()
        much = now >= self._soon and abs(share - self._shared) >= LINE_SHARE
        if now >= self._next or much:
            self._next, self._soon, self._shared = now + LINE_SECONDS, now + SHORT_SECONDS, share
            self._write(f"{sentence}\n")


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(4.2), duration(100), duration(9000)
    ('5 s', '2 min', '2.5 h')
    """
    if seconds < 60:
        return f"{int(seconds) + 1} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress_shown(
    quiet: bool,
    watchers: list[Callable[[int, int], None]] | None = None,
    *,
    ticks: bool = False,
    watch: RunWatch = UNWATCHED,
) -> Iterator[Progress]:
    """Show how far a run is: on standard error, unless quiet."""
    with _shown(quiet, watch) as progress, _ticking(progress) if ticks else nullcontext():
        if watchers is None:
            yield progress
            return
        watchers.append(progress.watch)
        try:
            yield progress
        finally:
            watchers.remove(progress.watch)


@contextmanager
def _ticking(progress: Progress) -> Iterator[None]:
    over = Event()

    def tick() -> None:
        while not over.wait(TICK_SECONDS):
            progress.tick()

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _log(line: str) -> None:
    sys.stderr.write(line)
    sys.stderr.flush()


@contextmanager
def _shown(quiet: bool, watch: RunWatch) -> Iterator[Progress]:
    if quiet:
        yield Progress(lambda _sentence: None, watch=watch)
    elif not sys.stderr.isatty():
        lines = Lines(_log)
        progress = Progress(lines, watch=watch)
        lines.share = lambda: progress.share
        yield progress
    else:
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield Progress(status.update, watch=watch)
