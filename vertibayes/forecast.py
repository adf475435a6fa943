"""Forecast the cost of a run from public sizes, before any table is asked for.

The work is that of the study's way of counting (`vertibayes_protocols.queries.tables.ways`), and
that of Python for each query, table and cell: at the counter, and at a learner that scores the
table. It was measured on one machine, and a short measurement says how much slower this one is.
`benchmarks/forecasts.py` compares forecasts with runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from vertibayes.words import counted, duration, size
from vertibayes_protocols.queries.tables.counting import Load, TableCosts, batches, grouped
from vertibayes_protocols.queries.tables.ways import costs_of
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family

QUERY_ROUNDS = 3  # ask, answer, go
OPENING_ROUNDS = 18  # of a study: lists of variables, keys, commitments
LATENCY = 0.1  # seconds of a round between machines
# Seconds of Python on the machine of the constants of all `TableCosts`.
START_SECONDS, QUERY_SECONDS, TABLE_SECONDS, CELL_SECONDS = 0.12, 0.01, 0.00025, 1e-7
YARDSTICK_SECONDS = 0.0018  # of `_yardstick`, on that machine


@dataclass(frozen=True)
class Forecast:
    """The approximate cost of a run: the tables that a learner asks for depend on its results."""

    tables: int = 0
    queries: int = 0
    rounds: int = 0
    bytes: int = 0  # the bytes sent on all links
    seconds: float = 0.0  # of work of all parties, on machines like this one
    memory: int = 0  # the memory, in bytes, that the largest query takes at one party

    def plus(self, other: Forecast) -> Forecast:
        """Return the cost of two runs, one after the other."""
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return replace(Forecast(*sums), memory=max(self.memory, other.memory))

    def sentence(self, *, apart: bool = False) -> str:
        """Return the sentence that `learn` prints; `apart` if parties are on different machines."""
        waits = f" (waiting {self.rounds * LATENCY:.0f} s at 100 ms each)" if apart else ""
        return (
            f"about {counted(self.tables, 'table')}, {size(self.bytes)}, "
            f"{counted(self.rounds, 'round')}{waits}, {duration(self.seconds)} of work of all "
            f"parties, and {size(self.memory)} of memory at each party"
        )


def forecast(study: Study, calls: Sequence[Sequence[Family]], *, missing: bool = False) -> Forecast:
    """Forecast the cost of a study's commitment, and of calls for tables over all its records."""
    costs = costs_of(study, study.records, missing)
    rounds = OPENING_ROUNDS + costs.commitment_rounds
    total = Forecast(queries=1, rounds=rounds, bytes=costs.commitment_bytes, seconds=START_SECONDS)
    for families in calls:
        for batch in batches(costs, families):
            total = total.plus(_query(costs, costs.total(grouped(batch))))
    return replace(total, seconds=total.seconds * slowness())


def _query(costs: TableCosts[Any], load: Load) -> Forecast:
    """Forecast the cost of one query on the machine of the constants."""
    rounds = QUERY_ROUNDS + costs.rounds(load)
    seconds = costs.overhead * costs.work(load) / 1e12 + QUERY_SECONDS
    seconds += TABLE_SECONDS * load.tables + CELL_SECONDS * load.cells
    memory = costs.memory_with_tables(load)
    return Forecast(load.tables, 1, rounds, load.cost.bytes, seconds, memory)


@cache
def slowness() -> float:
    """Return how many times as long as on the machine of the constants work takes here."""
    return min(_yardstick() for _ in range(5)) / YARDSTICK_SECONDS


def _yardstick() -> float:
    """Return the seconds of a little work on arrays and in Python."""
    start = perf_counter()
    codes = np.arange(100_000, dtype=np.uint32)
    for shift in range(5):
        codes = codes * np.uint32(2_654_435_761) + np.uint32(shift)
        np.bincount(codes >> np.uint32(26))
    seen: dict[int, int] = {}
    for number in range(10_000):
        seen[number % 97] = seen.get(number % 97, 0) + 1
    return perf_counter() - start
