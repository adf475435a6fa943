"""What the benchmarks share: one thread, medians, a table that is printed and kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from time import process_time

from results import markdown
from runs import write

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def on_one_thread() -> None:
    """Start the script again with one BLAS thread, as the competitor has one."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.execve(
            sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1")
        )


def seconds_of(run: Callable[[], object], times: int) -> float:
    """Return the median processor seconds of several runs, after one that is not counted."""
    run()
    found = []
    for _ in range(times):
        start = process_time()
        run()
        found.append(process_time() - start)
    return median(found)


class Rows(list[Sequence[object]]):
    """The rows of a table, each of which is printed to standard error as it is done."""

    def __init__(self, rows: Iterable[Sequence[object]] = ()) -> None:
        super().__init__()
        for row in rows:
            self.append(row)

    def append(self, row: Sequence[object]) -> None:
        """Add a row, and print it."""
        print(*row, sep=" | ", file=sys.stderr, flush=True)
        super().append(row)


def table(
    name: str, header: Sequence[object], rows: Sequence[Sequence[object]], **said: str
) -> str:
    """Write a table to build/results/NAME.json, and return it as Markdown; see `runs.write`."""
    write(name, header, rows, **said)
    return markdown(header, rows)
