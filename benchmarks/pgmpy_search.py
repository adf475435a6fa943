"""pgmpy's hill climbing over three sites beside the same search over the pooled records.

    python benchmarks/pgmpy_search.py --data FOLDER [--seed N] [--repeats 3] [--only alarm]

BIC and at most three parents. The seed chooses which site holds which column, and draws the 5,000
records of ALARM; of Adult the columns of text take part. Seconds are the processor's, of all
parties together. "one by one" are the calls if each score asks for itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

import pandas as pd
from pgmpy.causal_discovery import HillClimbSearch

from vertibayes import SecureCounter, federate, split_columns
from vertibayes.cli.demo import alarm
from vertibayes.pgmpy import fit
from vertibayes.sampling import sample

MOST_PARENTS, RECORDS, SITES = 3, 5000, 3
SEARCH = partial(
    HillClimbSearch, "bic-d", max_indegree=MOST_PARENTS, return_type="dag", show_progress=False
)


def alarm_records(seed: int) -> pd.DataFrame:
    """Draw records of ALARM."""
    data = sample(alarm(), RECORDS, seed)
    codes = {name: data.codes[name] for name in data.variables}
    return pd.DataFrame(
        {n: pd.Series(data.variables[n].states).take(own).array for n, own in codes.items()}
    )


def texts(path: Path) -> pd.DataFrame:
    """Read the columns of a table that have several texts."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    numbers = [c for c in frame if frame[c].str.fullmatch(r"\d+").all()]
    return frame[[c for c in frame if c not in numbers and frame[c].nunique() > 1]]


def row(name: str, frame: pd.DataFrame, seed: int) -> list[object]:
    """Search pooled records, and over sites in steps and one score after another."""
    start = process_time()
    pooled = SEARCH().fit(frame)
    seconds = process_time() - start
    found, secure, counter = over_sites(frame, seed)
    with patch("vertibayes.pgmpy.fitting.STEPS", ()):
        one_by_one = over_sites(frame, seed)[2].calls
    edges = set(pooled.causal_graph_.edges)
    same = "equal" if set(found.causal_graph_.edges) == edges else "other"
    return [
        name, seed, f"{len(frame):,}", len(frame.columns), len(edges), same, counter.calls,
        one_by_one, f"{counter.ledger.cells:,}", f"{seconds:.1f}", f"{secure:.1f}",
        f"{secure / seconds:.1f}",
    ]  # fmt: skip


def over_sites(frame: pd.DataFrame, seed: int) -> tuple[Any, float, SecureCounter]:
    """Return a search over sites, its seconds, and the counter that it asked."""
    with federate(split_columns(frame, SITES, seed)) as federation:
        counter = SecureCounter.of(federation, order=list(frame.columns))
        start = process_time()
        return fit(SEARCH(), counter), process_time() - start, counter


def main() -> None:
    """Print a row for each table as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="of each table, with the next seed")
    parser.add_argument("--only", nargs="+")
    given = arguments(parser, data=True)
    uci = given.data / "uci"
    tables: Mapping[str, Callable[[int], pd.DataFrame]] = {
        "alarm": alarm_records,
        "mushroom": lambda _: texts(uci / "mushroom.csv.gz"),
        "adult_train": lambda _: texts(uci / "adult_train.csv.gz"),
    }
    rows, seeds = [], range(given.seed, given.seed + given.repeats)
    for name, seed in product(given.only or tables, seeds):
        rows.append(row(name, tables[name](seed), seed))
        print(*rows[-1], flush=True)
    header = ["table", "seed", "records", "variables", "edges", "beside pooled", "calls",
              "one by one", "counts revealed", "pooled s", "3 sites s", "ratio"]  # fmt: skip
    print(table("pgmpy_search", header, rows, seeds=" ".join(map(str, seeds))))


if __name__ == "__main__":
    main()
