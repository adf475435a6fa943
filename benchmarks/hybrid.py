"""Columns whose rows lie at several sites, beside columns of one site each, in one run.

    python benchmarks/hybrid.py [--data FOLDER] [--repeats 3] [--records 10000]

Without a folder of reference data (VERTIBAYES_DATA), ALARM is sampled from the network that pgmpy
bundles. Every structure is compared with that of pooled data. Times are processor seconds of all
parties, which are in this process.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from statistics import median
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np
from price_of_privacy import load

from tests.splits import split_rows
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.structure.learners import k2
from vertibayes_mpc.commitments import BLOCK_ROWS
from vertibayes_protocols.federation import federate
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import study_of
from vertibayes_protocols.queries import Commit, Describe, Meet
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.study_people import Placement

HEADER = (
    "sites", "columns by rows", "CPU s", "ratio", "MB sent", "ratio", "MB to commit", "queries",
    "structure",
)  # fmt: skip


class Run:
    """One K2 with at most three parents over a split: from keys to the structure."""

    def __init__(self, data: SiteData, sites: int, shared: int) -> None:
        self.data = data
        names = list(data.variables)
        chosen = np.random.default_rng(seed_of(1)).permutation(names)[:shared].tolist()
        self.parts = split_rows(data, sites, chosen)
        everyone = Placement(data.records, np.arange(data.records))
        self.placements = dict.fromkeys(self.parts, everyone)
        self.bytes = self.committed = self.queries = 0
        self.structure: Structure

    def __call__(self) -> None:
        """Run it, and keep what it took."""
        with federate(self.parts, placements=self.placements) as federation:
            session, sites, dealer = federation.session, federation.sites, federation.dealer
            session.ask(Meet.of(session.role, sites, dealer))
            shown = session.ask(Describe(sites))
            memory = min(description.most_memory for description in shown.values())
            order = list(self.data.variables)
            study = study_of(os.urandom(16), shown, dealer, order, BLOCK_ROWS, memory, aligned=True)
            most = min(description.most_variables for description in shown.values())
            counter = SecureCounter(OpenStudy(session, session.ask(Commit.of(study)), most))
            self.committed = federation.traffic.bytes
            self.structure = k2(counter, max_parents=3)
            self.bytes, self.queries = federation.traffic.bytes, counter.queries


def processor_seconds(run: Run, times: int) -> float:
    """Return the median processor seconds of several runs, after one that is not counted."""
    run()
    took = []
    for _ in range(times):
        start = process_time()
        run()
        took.append(process_time() - start)
    return median(took)


def main() -> None:
    """Print a row for each number of sites and share of columns that are split by rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--records", type=int, default=10_000)
    asked = arguments(parser)
    data = load("alarm", asked.data)
    data = data.rows(np.arange(min(asked.records, data.records)))
    pooled, width, rows = k2(PlainCounter(data), max_parents=3), len(data.variables), Rows()
    for sites in (2, 3, 5):
        alone = 0.0, 0
        for shared in (0, width // 2, width):
            run = Run(data, sites, shared)
            seconds = processor_seconds(run, asked.repeats)
            alone = alone if shared else (seconds, run.bytes)
            same = "equal" if run.structure == pooled else "DIFFERENT"
            rows.append([
                sites, f"{shared} of {width}", f"{seconds:.2f}", f"{seconds / alone[0]:.2f}",
                f"{run.bytes / 1e6:.0f}", f"{run.bytes / alone[1]:.2f}",
                f"{run.committed / 1e6:.0f}", run.queries, same,
            ])  # fmt: skip
    print(table("hybrid", HEADER, rows))


if __name__ == "__main__":
    main()
