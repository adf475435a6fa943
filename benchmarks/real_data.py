"""K2 and the default learner on real tables: seconds, bytes and memory beside pooled learning.

    python benchmarks/real_data.py --data FOLDER [--algorithms k2 hybrid] [--sites 2 3 5]
                                   [--repeats 3] [--memory 512MiB] [--only adult_train letter]

pyAgrum runs K2 with the same order, or greedy hill climbing with BIC, for the default learner; both
with as many parents.

Each row is a process of its own. Seconds are the processor's, of all parties together, reading and
encoding apart, medians of the repeats. Memory is the largest resident set of the first secure run
beyond what the process held before it: the files of all sites, read and encoded. The forecast is
what `learn` prints before it asks for anything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, TypeVar

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.cli.inputs import read_sites
from vertibayes.cli.source import Source
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.options import Options, calls_of
from vertibayes.parameters.cpt import scores
from vertibayes.structure.algorithms import algorithm_of
from vertibayes.structure.learners import learn_structure
from vertibayes_protocols.federation import federate
from vertibayes_protocols.session import Traffic
from vertibayes_protocols.settings import parse_size
from vertibayes_protocols.site.data import SiteData

MIB = 1 << 20
R = TypeVar("R")


def resident(name: str, *, reset: bool = False) -> int:
    """Return this process's resident set now (VmRSS) or at most (VmHWM), in bytes."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) * 1024


def timed(run: Callable[[], R], repeats: int) -> tuple[float, R]:
    """Return the median processor seconds of several runs, and the last result."""
    seconds = []
    for _ in range(repeats):
        start = process_time()
        result = run()
        seconds.append(process_time() - start)
    return median(seconds), result


def pyagrum(
    data: SiteData, algorithm: str, repeats: int
) -> tuple[float, set[tuple[str, str]]] | None:
    """Run pyAgrum on the encoded data; None if cells are missing, which it does not take."""
    if any(variable.missing for variable in data.variables.values()):
        return None
    import pandas as pd
    import pyagrum

    names = list(data.variables)
    states = {
        n: np.array([f"s{code}" for code in range(v.codes)]) for n, v in data.variables.items()
    }
    learner = pyagrum.BNLearner(pd.DataFrame({n: states[n][data.codes[n]] for n in names}))
    if algorithm == "k2":
        learner.useScoreK2()
        learner.useK2([learner.idFromName(name) for name in names])
    else:
        learner.useScoreBIC()
        learner.useGreedyHillClimbing()
    learner.setMaxIndegree(algorithm_of(algorithm).max_parents)
    learner.setNumberOfThreads(1)
    seconds, dag = timed(learner.learnDAG, repeats)
    return seconds, {(learner.nameFromId(a), learner.nameFromId(b)) for a, b in dag.arcs()}


def measure(path: Path, algorithm: str, sites: int, repeats: int, memory: int) -> dict[str, Any]:
    """Learn from one file, securely and pooled."""
    id_column = None if "uci" in path.parts else "record_id"
    found = read_sites(Source((str(path),), sites=sites, id_column=id_column))
    held = {n: (v, d.codes[n]) for d in found.data.values() for n, v in d.variables.items()}
    pooled = SiteData(
        {name: held[name][0] for name in found.order}, {name: held[name][1] for name in found.order}
    )
    before, peaks = resident("VmRSS", reset=True), []

    def secure() -> tuple[Structure, SecureCounter, Traffic]:
        with federate(found.data, memory_budget=memory) as federation:
            counter = SecureCounter.of(federation, order=found.order)
            structure = learn_structure(counter, algorithm)
        peaks.append(resident("VmHWM") - before)
        return structure, counter, federation.traffic

    seconds, (structure, counter, traffic) = timed(secure, repeats)
    plain_seconds, plain = timed(lambda: learn_structure(PlainCounter(pooled), algorithm), repeats)
    theirs = pyagrum(pooled, algorithm, repeats)
    forecast = counter.forecast(*calls_of(counter, Options(algorithm=algorithm)))
    return {
        "records": pooled.records,
        "variables": len(pooled.variables),
        "most states of a variable": max(v.codes for v in pooled.variables.values()),
        "tables": len(counter.ledger.tables),
        "secure s": round(seconds, 3),
        "pooled s": round(plain_seconds, 3),
        "ratio to pooled": round(seconds / plain_seconds, 1),
        "pyAgrum s": "-" if theirs is None else round(theirs[0], 3),
        "ratio to pyAgrum": "-" if theirs is None else round(seconds / theirs[0], 1),
        "pooled to pyAgrum": "-" if theirs is None else round(plain_seconds / theirs[0], 1),
        "MB sent": round(traffic.bytes / 1e6, 1),
        "rounds": traffic.rounds,
        "MiB": round(peaks[0] / MIB),
        "predicted s, MB": f"{forecast.seconds:.1f}, {forecast.bytes / 1e6:.0f}",
        "edges": len(structure.edges),
        "equal": _equal(pooled, algorithm, structure, plain, theirs),
    }


def _equal(
    data: SiteData,
    algorithm: str,
    structure: Structure,
    plain: Structure,
    theirs: tuple[float, set[tuple[str, str]]] | None,
) -> str:
    """Compare structures; pyAgrum's K2 takes the last candidate of several with one score."""
    if structure != plain:
        return "DIFFERS from pooled"
    if theirs is None:
        return "to pooled"
    if set(structure.edges) == theirs[1]:
        return "to both"
    score = "k2" if algorithm == "k2" else "bic"
    ours, other = (
        getattr(scores(PlainCounter(data), one), score)
        for one in (structure, Structure.of(structure.nodes, sorted(theirs[1])))
    )
    return f"to pooled; {score} {ours - other:+.3g} to pyAgrum's"


def by_sites(rows: Sequence[Mapping[str, object]]) -> tuple[list[str], list[list[object]]]:
    """Return a header and a row per data set and algorithm, with all numbers of sites beside."""
    cells = {(row["data"], row["by"], row["sites"]): row for row in rows}
    numbers = sorted({row["sites"] for row in rows})
    same = ["data", "by", "records", "variables", "pooled s", "pyAgrum s"]
    sites = [f"{number} site{'s' * (number != 1)}" for number in numbers]
    header = [*same, *(f"{each}: s" for each in sites), *(f"{each}: MB" for each in sites)]
    compared = []
    for data, by in dict.fromkeys((row["data"], row["by"]) for row in rows):
        of = [cells.get((data, by, number), {}) for number in numbers]
        first = next(filter(None, of))
        compared.append([*(first[name] for name in same), *(row.get("secure s", "") for row in of),
                         *(row.get("MB sent", "") for row in of)])  # fmt: skip
    return header, compared


def main() -> None:
    """Run each data set in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=["k2", "hybrid"])
    parser.add_argument("--sites", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = arguments(parser, seeded=False, data=True)
    if given.one is not None:
        row = measure(
            given.one, given.algorithms[0], given.sites[0], given.repeats, parse_size(given.memory)
        )
        print(json.dumps(row))
        return
    folder = given.data
    files = sorted((folder / "uci").glob("*.csv*"))
    files += [folder / n / f"{n}.csv.gz" for n in ("alarm", "asia")]
    files += [folder / n / f"{n}.csv" for n in ("diabetes", "iris")]
    files = [path for path in files if not given.only or _name(path) in given.only]
    rows: list[dict[str, object]] = []
    for path, by, sites in product(files, given.algorithms, given.sites):
        command = [sys.executable, __file__, "--data", str(given.data), "--one", str(path),
                       "--sites", str(sites), "--algorithms", by, "--repeats", str(given.repeats),
                       "--memory", given.memory]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(_name(path), by, sites, done.stderr.splitlines()[-1], flush=True)
            continue
        rows.append({"data": _name(path), "by": by, "sites": sites, **json.loads(done.stdout)})
        print(rows[-1], flush=True)
    if not rows:
        raise SystemExit(f"no table of {folder} was measured")
    print(table("real_data", list(rows[0]), [list(row.values()) for row in rows]))
    header, compared = by_sites(rows)
    print(table("real_data_sites", header, compared))


def _name(path: Path) -> str:
    return path.name.split(".")[0]


if __name__ == "__main__":
    main()
