"""Tables II to XII and figure 2 of Pérez et al. (2025), beside ours: skin, bank, adult, letter.

    python benchmarks/crc_tables.py --data FOLDER [--tables II,III,...,speed] [--sets adult]
                                    [--rules RULE;RULE] [--repeats 5] [--seed 0] [--text codes]

A *gap* is the mean error of all nodes' models minus the error of RC on the pooled records after the
same 64 iterations from a uniform start, as in Theorem 1. Algorithm 1 starts RC from the records'
own statistics: table III has that error too. All figures are means over repetitions, with their
standard deviation (of n - 1), each with other training and test records (at most 8,000 of the rest)
and another random network: repetition i draws from the seed `--seed` + i. By default there are 50
nodes of 50 records, 64 rounds, learning rate .05 and a random tree.

Rules: `mean` averages a node and its neighbours, `without the node` the neighbours alone, as line 8
of Algorithm 2 says; both have the uniform start. Theorem 1 counts the node.

Numbers of at most ten values are categories. `--text codes` reads text of more than ten values as
the number of its place in the alphabet: table I of the paper counts nine continuous features in
Adult and in Bank, which have six and seven numbers. `--text categories` reads all text as
categories. Adult is its training and test file together; `?` is a value like any other.

`--tables counts` counts the marks in the tables that are in build/results.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter, process_time

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from crc_paper import GAPS, SIZES, TABLE_2, TABLE_3, TABLE_11, Gaps
from crc_runs import (
    LETTERS,
    ROUNDS,
    RULES,
    SETS,
    Setting,
    Source,
    gaps_by_round,
    last_scores,
    load,
    pooled,
    split,
)
from crc_trees import draw, trees
from curves import mean_sd
from peers.crc_per_node import speed
from results import read
from runs import NEW, arguments

SHOWN = ("mean", "without the node", "mean, data", "relay, data")
COUNTED = ("III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XII")
NEAR = 0.01
SIDES = {"within": "", "above": " ↑", "below": " ↓"}
FEW = 2000  # test records of table XI, which scores all rounds
TABLES = ("II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "options",
          "repairs", "letter", "trees", "speed", "counts")  # fmt: skip


@dataclass
class Bench:
    """The data sets, the processes, and what they have measured."""

    sources: Sequence[Source]
    seeds: range
    rules: Sequence[str]
    pool: ProcessPoolExecutor
    known: dict = field(default_factory=dict)

    def each(self, function: Callable, *rest: object) -> dict[str, list]:
        """Return what a function gives for each data set, one result per repetition."""
        jobs = [(source, seed) for source in self.sources for seed in self.seeds]
        by_source: dict[str, list] = {source.name: [] for source in self.sources}
        results = self.pool.map(partial(_call, function, rest), jobs)
        for (source, seed), (seconds, result) in zip(jobs, results, strict=True):
            print(f"  {source.name}, seed {seed}: {seconds:.0f} CPU s", file=sys.stderr, flush=True)
            by_source[source.name].append(result)
        return by_source

    def table(self, name: str, header: Sequence[object], rows: Sequence[Sequence]) -> str:
        """Return a table, and write it as a result over these seeds."""
        return table(name, header, rows, seeds=f"{self.seeds[0]} to {self.seeds[-1]}")

    def scores(self, settings: Iterable[Setting], rules: Sequence[str]) -> dict:
        """Return the scores of settings and rules, after running those that are not known."""
        keys = [(setting, rule) for setting in settings for rule in rules]
        missing = [key for key in keys if key not in self.known]
        results = self.each(_scores, missing) if missing else {}
        for place, key in enumerate(missing):
            self.known[key] = {name: [run[place] for run in runs] for name, runs in results.items()}
        return {key: self.known[key] for key in keys}


def near(values: Sequence[float], paper: float) -> str:
    """Return mean and standard deviation, and on which side of the paper's figure the mean is."""
    apart = float(np.mean(values)) - paper
    side = "within" if abs(apart) <= NEAR else "above" if apart > 0 else "below"
    return mean_sd(values) + SIDES[side]


def _call(function: Callable, rest: tuple, job: tuple[Source, int]) -> tuple[float, object]:
    start = process_time()
    result = function(*job, *rest)
    return process_time() - start, result


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


def table_2(bench: Bench, name: str = "crc_tables_II") -> str:
    """Return the gaps of RC with fewer records."""
    rows = []
    for data, runs in bench.each(_of_sizes).items():
        rows.append([data, "paper", *(f"{paper:.2f}" for paper in TABLE_2[data])])
        for place, start in enumerate(("uniform start", "start from the records")):
            errors = np.array(runs)[:, :, place]
            gaps = [mean_sd(column) for column in (errors[:, :-1] - errors[:, -1:]).T]
            rows.append([data, start, *gaps, mean_sd(errors[:, -1])])
    print("\nTable II: gap of RC to RC of 10,240 records, and the error of that")
    return bench.table(name, ["data", "RC", *SIZES], rows)


def _of_sizes(source: Source, seed: int) -> list[tuple[float, float]]:
    """Return the test errors of RC for each size, from either start."""
    results = [pooled(source, size, seed) for size in SIZES]
    return [(one["uniform"].test, one["data"].test) for one in results]


def table_3(bench: Bench, name: str = "crc_tables_III") -> str:
    """Return gaps, standard deviations and errors of the default setting."""
    known = bench.scores([Setting()], bench.rules)
    rows = []
    for source in bench.sources:
        for place, part in enumerate(("training", "test")):
            paper = TABLE_3[source.name][4 * place : 4 * place + 4]
            errors = {
                key: np.array(
                    [getattr(rc[key], part) for _, rc in known[Setting(), "mean"][source.name]]
                )
                for key in ("likelihood", "uniform", "data")
            }
            rows.append([source.name, part, "paper", *(f"{each:.2f}" for each in paper), "-"])
            likely = mean_sd(errors["likelihood"] - errors["uniform"])
            of_rc = [mean_sd(errors[key]) for key in ("uniform", "data")]
            for rule in bench.rules:
                nodes = np.array(
                    [getattr(own, part) for own, _ in known[Setting(), rule][source.name]]
                )
                gap = near(nodes.mean(axis=1) - errors["uniform"], paper[1])
                rows.append(
                    [source.name, part, rule, likely, gap, mean_sd(nodes.std(axis=1)), *of_rc]
                )
    print("\nTable III: the default setting")
    header = ["data", "records", "rule", "gap of ML", "gap of CRC", "sd over nodes",
              "error of RC", "of RC from the records"]  # fmt: skip
    return bench.table(name, header, rows)


# ---- IV to X, XII: gaps --------------------------------------------------------------------------


def table_of_gaps(bench: Bench, name: str, columns: Gaps) -> str:
    """Return a table of test gaps."""
    rules, settings = columns.rules or bench.rules, columns.settings.values()
    known = bench.scores(settings, rules)
    rows = []
    for source in bench.sources:
        rows.append(
            [source.name, "paper", *(f"{paper:.2f}" for paper in columns.paper[source.name])]
        )
        if name in ("repairs", "letter"):
            first = [[_first_class(source, seed, s) for seed in bench.seeds] for s in settings]
            rows.append([source.name, "the first class of all", *map(mean_sd, first)])
        for rule in rules:
            cells = []
            for setting, paper in zip(settings, columns.paper[source.name], strict=True):
                gaps = _gaps(known[setting, rule][source.name])
                # the cells of other tables are counted there
                counts = name not in ("options", "repairs", "letter")
                cells.append(near(gaps, paper) if counts else mean_sd(gaps))
            rows.append([source.name, rule, *cells])
    print(f"\n{name if name in TABLES[11:] else f'Table {name}'}: {columns.title}")
    return bench.table(f"crc_tables_{name}", ["data", "rule", *columns.settings], rows)


def _gaps(runs: list) -> list[float]:
    """Return the gap of the nodes' mean test error, of each repetition."""
    return [float(nodes.test.mean() - rc["uniform"].test) for nodes, rc in runs]


def _first_class(source: Source, seed: int, setting: Setting) -> float:
    """Return the gap of a model that takes the first class for all records."""
    records = setting.nodes * setting.each
    wrong = (split(source, records, seed).test.classes != 0).mean()
    return float(wrong - pooled(source, records, seed)["uniform"].test)


# ---- XI: local iterations ------------------------------------------------------------------------


def table_11(bench: Bench) -> str:
    """Return the first round whose mean gap is below .01, for 1 to 3 local iterations."""
    rows = []
    for name, runs in bench.each(_curves, bench.rules).items():
        curves = np.moveaxis(np.array(runs), 0, 2)  # of (iterations, rule, repetition, round)
        rows.append([name, "paper", *(f"{number} ({gap:.2f})" for gap, number in TABLE_11[name])])
        for place, rule in enumerate(bench.rules):
            rows.append([name, rule, *(_reached(own[place]) for own in curves)])
    print(f"\nTable XI: local iterations: the first round whose mean gap is below {NEAR} (the gap"
          f" in it), otherwise round {ROUNDS}; [such rounds of the repetitions]")  # fmt: skip
    return bench.table("crc_tables_XI", ["data", "rule", "1", "2", "3"], rows)


def _curves(source: Source, seed: int, rules: Sequence[str]) -> np.ndarray:
    settings = [Setting(iterations=iterations) for iterations in (1, 2, 3)]
    return np.array(
        [
            [gaps_by_round(source, seed, setting, RULES[rule], FEW) for rule in rules]
            for setting in settings
        ]
    )


def _reached(curves: np.ndarray) -> str:
    """Return the round of the mean over repetitions, and those of each."""
    place, each = _first(curves.mean(axis=0)), [_first(curve) for curve in curves]
    names = [
        str(at + 1) if curve[at] < NEAR else "-" for at, curve in zip(each, curves, strict=True)
    ]
    known = sorted((at + 1 for at, text in zip(each, names, strict=True) if text != "-"))
    spread = f"{known[0]} to {known[-1]}" if known else "none"
    spread += f", {names.count('-')} never" if known and "-" in names else ""
    return f"{place + 1} ({mean_sd(curves[:, place])}) [{spread}]"


def _first(curve: np.ndarray) -> int:
    below = np.flatnonzero(curve < NEAR)
    return int(below[0]) if below.size else len(curve) - 1


# ---- figure 2, and all --------------------------------------------------------------------------


def figure_2(bench: Bench) -> str:
    """Return how many nodes of a tree are near a node, and draw it."""
    header, rows, found = trees(bench.seeds[0])
    draw(found)
    print("\nFigure 2: the share of the nodes at a distance of at most so many edges from a node")
    return bench.table("crc_tables_trees", header, rows)


def counts(bench: Bench) -> str:
    """Return how many gaps are within .01 of the paper's, above, and below."""
    names = [source.name for source in bench.sources]
    found: Counter = Counter()
    for each in COUNTED:
        result = read(NEW / f"crc_tables_{each}.json")
        columns = result["columns"]
        places = [columns.index("gap of CRC")] if each == "III" else range(2, len(columns))
        at = columns.index("rule")
        for row in (row for row in result["rows"] if row[at] != "paper"):
            for cell in (row[place] for place in places):
                side = next(n for n, mark in reversed(SIDES.items()) if cell.endswith(mark))
                found[row[at], row[0], side] += 1
    rows = []
    for rule in [rule for rule in RULES if any(key[0] == rule for key in found)]:
        sides = [[found[rule, name, side] for name in names] for side in SIDES]
        together = [sum(values) for values in sides]
        cells = [" / ".join(map(str, own)) for own in zip(*sides, strict=True)]
        rows.append([rule, *cells, *together, sum(together)])
    print(
        f"\nGaps within {NEAR} of the paper's / above / below, of the tables {', '.join(COUNTED)}"
    )
    header = ["rule", *names, *SIDES, "all"]
    return bench.table("crc_tables", header, rows)


def run(bench: Bench, name: str, folder: Path) -> str:
    """Return a table by its name."""
    if name == "speed":
        print("\nSpeed: Adult, 320 nodes, 64 rounds")
        return bench.table(
            "crc_tables_speed", *speed(Source(folder, "adult", bench.sources[0].text))
        )
    special = {
        "II": table_2,
        "III": table_3,
        "XI": table_11,
        "trees": figure_2,
        "counts": counts,
    }
    if name == "letter":
        of_letters = replace(bench, sources=[Source(folder, LETTERS, "codes")], known={})
        gaps = table_of_gaps(of_letters, name, GAPS[name])
        second = table_2(of_letters, "crc_tables_letter_II")
        return "\n\n".join([gaps, second, table_3(of_letters, "crc_tables_letter_III")])
    return special[name](bench) if name in special else table_of_gaps(bench, name, GAPS[name])


def mebibytes() -> str:
    """Return the peak memory of this process and of the largest other one."""
    own, others = (getrusage(of).ru_maxrss / 1024 for of in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return f"{own:.0f} MiB, and {others:.0f} MiB in the largest of the other processes"


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES), help="default: all")
    parser.add_argument("--sets", default=",".join(SETS), help="default: all")
    parser.add_argument("--rules", default=";".join(SHOWN), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--text", choices=("codes", "categories"), default="codes")
    parser.add_argument("--processes", type=int, default=2)
    given = arguments(parser, data=True)
    start, folder, names = perf_counter(), given.data, given.sets.split(",")
    sources = [Source(folder, name, given.text) for name in names]
    for source in sources:
        load(source)  # once, before there are more processes
    seeds = range(given.seed, given.seed + given.repeats)
    print(f"Seeds {seeds[0]} to {seeds[-1]}", flush=True)
    with ProcessPoolExecutor(given.processes, get_context("fork")) as pool:
        bench = Bench(sources, seeds, given.rules.split(";"), pool)
        for name in given.tables.split(","):
            before = perf_counter()
            print(run(bench, name, folder), flush=True)
            print(f"\n{perf_counter() - before:.0f} s", flush=True)
    print(f"\n{perf_counter() - start:.0f} s in {given.processes} processes; peak {mebibytes()}")


if __name__ == "__main__":
    main()
