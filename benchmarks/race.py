"""A race over records beside all tables: structures over many seeds, and what it saves over sites.

    python benchmarks/race.py --data FOLDER [--records 1000000] [--seeds 20] [--sites 3]

ALARM is sampled from FOLDER/alarm/alarm.bif. On pooled records K2 (at most 3 parents) learns once
from all tables and once by a race, for each seed of the records and of the permutation. Over sites
it learns both ways from the first sample, each in a process of its own: CPU seconds of all
parties, bytes, and the peak of memory beyond the codes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from time import process_time

from scale import MIB, memory
from side_by_side import on_one_thread, table

from vertibayes.choosing import Chooser, TableChooser
from vertibayes.choosing.racing import RacingChooser
from vertibayes.counting import Counter, PlainCounter
from vertibayes.counting.counter import Table
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.network import read_bif
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows

WAYS = {"all tables": TableChooser, "race": RacingChooser}


class Counted(PlainCounter):
    """Counts, and notes how many tables it has counted over all records."""

    full = 0

    def tables(
        self, families: list[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families."""
        self.full += len(families) * (rows.count(self.records) == self.records)
        return super().tables(families, missing=missing, rows=rows)


def records_of(folder: Path, records: int, seed: int) -> SiteData:
    """Sample ALARM."""
    return sample(read_bif((folder / "alarm" / "alarm.bif").read_text()), records, seed)


def learned(way: str, counter: Counter) -> tuple[Structure, float]:
    """Learn a structure; return it and the CPU seconds."""
    start, chooser = process_time(), WAYS[way](counter)
    assert isinstance(chooser, Chooser)
    return k2(chooser), process_time() - start


def pooled(data: SiteData, seed: int) -> list[object]:
    """Learn both ways from pooled records; return a row."""
    row: list[object] = [seed]
    structures = []
    for way in WAYS:
        counter = Counted(data, seed=seed)
        structure, seconds = learned(way, counter)
        structures.append(structure)
        row += [counter.full, f"{seconds:.1f}"]
    same = "equal" if structures[0] == structures[1] else "DIFFERENT"
    return [*row, len(structures[0].edges), same]


def one_case(folder: Path, records: int, sites: int, way: str) -> None:
    """Learn over sites; print the figures as JSON."""
    data = records_of(folder, records, 0)
    parts = split_columns(data, sites)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    resident, start = memory("VmRSS"), process_time()
    with federate(parts) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        structure, _ = learned(way, counter)
        seconds, sent = process_time() - start, federation.traffic.bytes
        full = sum(rows == Rows() for rows, _ in counter.revealed)
        tables, cells = len(counter.ledger.tables), counter.ledger.cells
    peak = (memory("VmHWM") - resident) / MIB
    figures = [f"{seconds:.1f}", f"{sent / 1e6:.0f}", f"{peak:.0f}", full, tables - full, cells]
    print(json.dumps([way, *figures, sorted(structure.edges)]))


def over_sites(given: argparse.Namespace) -> list[list[object]]:
    """Learn both ways over sites; return the rows."""
    rows, edges = [], []
    for way in WAYS:
        case = [sys.executable, __file__, "--data", given.data, "--records", str(given.records)]
        case += ["--sites", str(given.sites), "--case", way]
        done = subprocess.run(case, capture_output=True, text=True, check=True)
        *row, found = json.loads(done.stdout)
        edges.append(found)
        rows.append([*row, "equal" if found == edges[0] else "DIFFERENT"])
    return rows


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sites", type=int, default=3, help="0: pooled records alone")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        one_case(Path(given.data), given.records, given.sites, given.case)
        return
    data = (records_of(Path(given.data), given.records, seed) for seed in range(given.seeds))
    rows = [pooled(each, seed) for seed, each in enumerate(data)]
    header = ["seed", "all tables: counted", "CPU s", "race: counted on all records", "CPU s ",
              "edges", "structures"]  # fmt: skip
    print(table("race", header, rows))
    if given.sites:
        header = ["way", "CPU s", "MB", "peak MiB", "tables of all records", "of the sample",
                  "cells revealed", "structure"]  # fmt: skip
        print(table("race_sites", header, over_sites(given)))


if __name__ == "__main__":
    on_one_thread()
    main()
