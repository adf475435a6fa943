"""The forecast of a run beside the run: how many times as much it says, per table and learner.

    python benchmarks/forecasts.py data/alarm/alarm.csv data/uci/*.csv* [--sites 1 3 5]
        [--algorithms k2 hybrid]

Seconds are processor time of all parties in one process. The last column has, for each call of the
learner, how many tables of one, two, three, ... variables it asks for: what `Algorithm.asks` says.
"first" and "renewed" have the forecasts as shares of what was: before the first call, and after it,
of seconds, bytes and rounds. Pairs are those that depend.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

from vertibayes.cli.inputs import read_sites
from vertibayes.cli.learn import depending
from vertibayes.cli.source import Source
from vertibayes.counting.secure import SecureCounter
from vertibayes.options import Options, calls_of
from vertibayes.structure.search import silent
from vertibayes_protocols.federation import federate
from vertibayes_protocols.variables import Family

MEMORY = 512 << 20
SIZES = range(1, 6)


class Noting(SecureCounter):
    """A counter that notes how many tables of each size a call asks for."""

    def _ask(self, families: list[Family], *more: Any) -> None:
        sizes = Counter(len(family.members) for family in families)
        self.noted = [*getattr(self, "noted", []), sizes]
        super()._ask(families, *more)


def measure(path: Path, sites: int, algorithm: str) -> dict[str, Any]:
    """Learn from one file, and compare the cost with the forecast."""
    id_column = None if "uci" in path.parts else "record_id"
    read = read_sites(Source((str(path),), sites=sites, id_column=id_column))
    options = Options(algorithm=algorithm)
    start = process_time()
    with federate(read.data, memory_budget=MEMORY) as federation:
        counter = Noting.of(federation, order=read.order)
        spent = process_time() - start
        forecast = counter.forecast(*calls_of(counter, options))
        start = process_time()
        options.learn_structure(counter, silent)
        spent += process_time() - start
        traffic = federation.traffic
        pairs = depending(counter, options)
        renewed = counter.forecast(*calls_of(counter, options, pairs))
    real = {"s": spent, "MB": traffic.bytes / 1e6, "rounds": traffic.rounds}
    row = {
        "file": path.name.partition(".")[0],
        "sites": sites,
        "by": algorithm,
        "n x k": f"{counter.records} x {len(counter.variables)}",
        "pairs": len(pairs),
        "tables": len(counter.ledger.tables),
        **{name: f"{value:.3g}" for name, value in real.items()},
    }
    for name, cost in (("first", forecast), ("renewed", renewed)):
        said = {"s": cost.seconds, "MB": cost.bytes / 1e6, "rounds": cost.rounds}
        row[name] = ", ".join(f"{said[unit] / real[unit]:.2f}" for unit in real)
    row["calls"] = " ".join("+".join(str(call[size]) for size in SIZES) for call in counter.noted)
    return row


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sites", nargs="+", type=int, default=[1, 3, 5])
    parser.add_argument("--algorithms", nargs="+", default=["k2", "hybrid"])
    given = arguments(parser, seeded=False)
    runs = [(f, k, a) for f in given.files for a in given.algorithms for k in given.sites]
    rows = []
    for run in runs:
        rows.append(measure(*run))
        print(rows[-1], flush=True)
    print(table("forecasts", list(rows[0]), [list(row.values()) for row in rows]))


if __name__ == "__main__":
    main()
