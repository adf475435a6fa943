"""Tables II to XII of Pérez et al. (2025), ours beside the paper's: skin, bank, adult and letter.

    python benchmarks/crc_tables.py --data FOLDER [--tables II,III,...,options,speed] [--sets adult]
                                    [--repeats 5] [--text codes] [--processes 2]

A *gap* is the mean error of all nodes' models minus the error of RC on the pooled records after the
same 64 iterations from a uniform start, as in Theorem 1. Algorithm 1 starts RC from the records'
own statistics: table III has that error too. All figures are means over repetitions, each with
other training and test records (at most 8,000 of the rest) and another random network. By default
there are 50 nodes of 50 records, 64 rounds, learning rate .05 and a random tree.

Numbers of at most ten values are categories. `--text codes` reads text of more than ten values as
the number of its place in the alphabet: table I of the paper counts nine continuous features in
Adult and in Bank, which have six and seven numbers. `--text categories` reads all text as
categories. Adult is its training and test file together; `?` is a value like any other.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from crc_paper import GAPS, SIZES, TABLE_2, TABLE_3, TABLE_11, Gaps
from crc_runs import (
    ROUNDS,
    RULES,
    SETS,
    Setting,
    Source,
    gaps_by_round,
    last_scores,
    load,
    pooled,
)
from peers.crc_per_node import speed

SHOWN = ("mean", "mean, data", "relay, data")
NEAR = 0.01
FEW = 2000  # test records of table XI, which scores all rounds
TABLES = ("II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "options", "speed")


@dataclass
class Bench:
    """The data sets, the processes, and what they have measured."""

    sources: Sequence[Source]
    repeats: int
    pool: ProcessPoolExecutor
    known: dict = field(default_factory=dict)
    counted: Counter = field(default_factory=Counter)

    def each(self, function: Callable, *rest: object) -> dict[str, list]:
        """Return what a function gives for each data set, one result per repetition."""
        jobs = [
            (source, repetition) for source in self.sources for repetition in range(self.repeats)
        ]
        # The longest first, so that no process waits for the other at the end.
        results = list(self.pool.map(partial(_call, function, rest), reversed(jobs)))[::-1]
        by_source: dict[str, list] = {source.name: [] for source in self.sources}
        for (source, _), result in zip(jobs, results, strict=True):
            by_source[source.name].append(result)
        return by_source

    def scores(self, settings: Iterable[Setting], rules: Sequence[str]) -> dict:
        """Return the scores of settings and rules, after running those that are not known."""
        keys = [(setting, rule) for setting in settings for rule in rules]
        missing = [key for key in keys if key not in self.known]
        results = self.each(_scores, missing) if missing else {}
        for place, key in enumerate(missing):
            self.known[key] = {name: [run[place] for run in runs] for name, runs in results.items()}
        return {key: self.known[key] for key in keys}

    def near(self, rule: str, name: str, ours: float, paper: float) -> str:
        """Count a gap that is near the paper's or better, and mark any other."""
        near = ours - paper <= NEAR
        self.counted[rule, name, "near"] += near
        self.counted[rule, name, "all"] += 1
        return f"{ours:.3f}" + "*" * (not near)


def _call(function: Callable, rest: tuple, job: tuple[Source, int]) -> object:
    return function(*job, *rest)


def _scores(source: Source, repetition: int, keys: Sequence[tuple[Setting, str]]) -> list:
    """Return the scores of the nodes' models, and of the pooled records'."""
    return [
        (
            last_scores(source, repetition, setting, RULES[rule]),
            pooled(source, setting.nodes * setting.each, repetition),
        )
        for setting, rule in keys
    ]


# ---- II and III: RC, and convergence -------------------------------------------------------------


def table_2(bench: Bench) -> str:
    """Return the gaps of RC with fewer records."""
    results = bench.each(_of_sizes)
    rows = []
    for name, runs in results.items():
        uniform, data = np.mean(runs, axis=0).T
        cells = [
            f"{paper:.2f} / {one - uniform[-1]:.3f} / {other - data[-1]:.3f}"
            for paper, one, other in zip(TABLE_2[name], uniform, data, strict=True)
        ]
        cells[-1] = f"{TABLE_2[name][-1]:.2f} / {uniform[-1]:.3f} / {data[-1]:.3f}"
        rows.append([name, *cells])
    print("\nTable II: gap of RC to RC of 10,240 records, and the error of that. "
          "Paper / uniform start / start from the records")  # fmt: skip
    return table("crc_tables_II", ["data", *SIZES], rows)


def _of_sizes(source: Source, repetition: int) -> list[tuple[float, float]]:
    """Return the test errors of RC for each size, from either start."""
    results = [pooled(source, size, repetition) for size in SIZES]
    return [(one["uniform"].test, one["data"].test) for one in results]


def table_3(bench: Bench) -> str:
    """Return gaps, standard deviations and errors of the default setting."""
    known = bench.scores([Setting()], SHOWN)
    rows = []
    for source in bench.sources:
        for place, part in enumerate(("training", "test")):
            runs = {rule: known[Setting(), rule][source.name] for rule in SHOWN}
            paper = TABLE_3[source.name][4 * place : 4 * place + 4]
            rows.append([source.name, part, *_convergence(bench, runs, part, paper, source.name)])
    print("\nTable III: the default setting. Paper / ours; CRC: " + " / ".join(("paper", *SHOWN)))
    header = ["data", "records", "gap of ML", "gap of CRC", "sd over nodes of CRC",
              "error of RC: paper / uniform start / start from the records"]  # fmt: skip
    return table("crc_tables_III", header, rows)


def _convergence(bench: Bench, runs: dict, part: str, paper: Sequence[float], name: str) -> list:
    """Return a row of table III."""
    gaps, deviations = [], []
    for rule, pairs in runs.items():
        nodes = [getattr(scores, part) for scores, _ in pairs]
        errors = {key: np.mean([getattr(rc[key], part) for _, rc in pairs]) for key in pairs[0][1]}
        gaps.append(bench.near(rule, name, float(np.mean(nodes)) - errors["uniform"], paper[1]))
        deviations.append(f"{np.mean([np.std(own) for own in nodes]):.3f}")
    return [
        f"{paper[0]:.2f} / {errors['likelihood'] - errors['uniform']:.3f}",
        " / ".join([f"{paper[1]:.2f}", *gaps]),
        " / ".join([f"{paper[2]:.2f}", *deviations]),
        f"{paper[3]:.2f} / {errors['uniform']:.3f} / {errors['data']:.3f}",
    ]


# ---- IV to X, XII: gaps --------------------------------------------------------------------------


def table_of_gaps(bench: Bench, name: str, columns: Gaps) -> str:
    """Return a table of test gaps."""
    rules = columns.rules or SHOWN
    known = bench.scores(columns.settings.values(), rules)
    rows = []
    for source in bench.sources:
        cells = []
        for setting, paper in zip(
            columns.settings.values(), columns.paper[source.name], strict=True
        ):
            gaps = [_gap(known[setting, rule][source.name]) for rule in rules]
            if name != "options":  # its cells are those of other tables
                pairs = zip(rules, gaps, strict=True)
                texts = [bench.near(rule, source.name, gap, paper) for rule, gap in pairs]
            else:
                texts = [f"{gap:.3f}" for gap in gaps]
            cells.append(" / ".join([f"{paper:.2f}", *texts]))
        rows.append([source.name, *cells])
    title = "Options" if name == "options" else f"Table {name}"
    print(f"\n{title}: {columns.title}. " + " / ".join(("Paper", *rules)))
    return table(f"crc_tables_{name}", ["data", *columns.settings], rows)


def _gap(runs: list) -> float:
    """Return the mean gap of the nodes' test errors."""
    return float(np.mean([nodes.test.mean() - rc["uniform"].test for nodes, rc in runs]))


# ---- XI: local iterations ------------------------------------------------------------------------


def table_11(bench: Bench) -> str:
    """Return the first round whose mean gap is below .01, for 1 to 3 local iterations."""
    results = bench.each(_curves)
    rows = []
    for name, runs in results.items():
        curves = np.mean(runs, axis=0)  # of (iterations, rule, round)
        cells = []
        for (gap, number), own in zip(TABLE_11[name], curves, strict=True):
            cells.append(" / ".join([f"{number} ({gap:.2f})", *map(_reached, own)]))
        rows.append([name, *cells])
    print(f"\nTable XI: local iterations: the first round whose gap is below {NEAR}, and that gap; "
          f"otherwise round {ROUNDS}. " + " / ".join(("Paper", *SHOWN)))  # fmt: skip
    return table("crc_tables_XI", ["data", "1", "2", "3"], rows)


def _curves(source: Source, repetition: int) -> np.ndarray:
    settings = [Setting(iterations=iterations) for iterations in (1, 2, 3)]
    return np.array(
        [
            [gaps_by_round(source, repetition, setting, RULES[rule], FEW) for rule in SHOWN]
            for setting in settings
        ]
    )


def _reached(curve: np.ndarray) -> str:
    below = np.flatnonzero(curve < NEAR)
    place = below[0] if below.size else len(curve) - 1
    return f"{place + 1} ({curve[place]:.3f})"


# ---- all -----------------------------------------------------------------------------------------


def counts(bench: Bench) -> str:
    """Return how many gaps are within .01 of the paper's or better."""
    rules = [rule for rule in RULES if any(key[0] == rule for key in bench.counted)]
    rows = []
    for rule in rules:
        pairs = [
            [bench.counted[rule, source.name, kind] for kind in ("near", "all")]
            for source in bench.sources
        ]
        pairs.append([sum(values) for values in zip(*pairs, strict=True)])
        rows.append([rule, *(f"{near} of {all_}" for near, all_ in pairs)])
    print(f"\nGaps that are at most {NEAR} above the paper's")
    header = ["rule", *(source.name for source in bench.sources), "together"]
    return table("crc_tables", header, rows)


def run(bench: Bench, name: str, folder: Path) -> str:
    """Return a table by its name."""
    if name == "speed":
        print("\nSpeed: Adult, 320 nodes, 64 rounds")
        return table("crc_tables_speed", *speed(Source(folder, "adult", bench.sources[0].text)))
    special = {"II": table_2, "III": table_3, "XI": table_11}
    return special[name](bench) if name in special else table_of_gaps(bench, name, GAPS[name])


def mebibytes() -> str:
    """Return the peak memory of this process and of the largest other one."""
    own, others = (getrusage(of).ru_maxrss / 1024 for of in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return f"{own:.0f} MiB, and {others:.0f} MiB in the largest of the other processes"


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--tables", default=",".join(TABLES), help="default: all")
    parser.add_argument("--sets", default=",".join(SETS), help="default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--text", choices=("codes", "categories"), default="codes")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if not given.data:
        parser.error("--data is missing; specify the folder of the data sets")
    start, folder = perf_counter(), Path(given.data)
    sources = [Source(folder, name, given.text) for name in given.sets.split(",")]
    for source in sources:
        load(source)  # once, before there are more processes
    with ProcessPoolExecutor(given.processes, get_context("fork")) as pool:
        bench = Bench(sources, given.repeats, pool)
        for name in given.tables.split(","):
            before = perf_counter()
            print(run(bench, name, folder), flush=True)
            print(f"\n{perf_counter() - before:.0f} s", flush=True)
    if bench.counted:
        print(counts(bench))
    print(f"\n{perf_counter() - start:.0f} s in {given.processes} processes; peak {mebibytes()}")


if __name__ == "__main__":
    main()
