"""What approved studies of many variables cost: `hybrid` by choices, with the rule cut.

    python benchmarks/wide.py [--data FOLDER] [--variables 37 50 100 200] [--records 1000 10000]
        [--secure 15 37 50 100]

The data are ALARM, with more variables copies of it, and Adult, whose numbers are in ten intervals.
The search is that of an approved study, whose winners tables of the pooled records find: its bits,
calls, tables and cells are those of a study over sites. `bits at most` is what an owner approves.
The studies of so many variables as `--secure` says run over three sites in one process too, with
the fewest records, and have seconds of the processor, megabytes and rounds.
"""

from __future__ import annotations

import argparse
from time import process_time

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from choices import read_binned
from numpy.typing import NDArray
from scale import columns

from vertibayes.choosing import TableChooser
from vertibayes.choosing.secret import SecretChooser
from vertibayes.counting import PlainCounter
from vertibayes.options import Options
from vertibayes.released import learn_released
from vertibayes.splitting import split_columns
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData

CUT = Rule("cut", fewest=10)
SITES = 3
HEADER = (
    "data", "variables", "records", "algorithm", "bits at most", "bits", "calls", "candidates",
    "tables", "cells", "pooled s", "secure s", "MB", "rounds",
)  # fmt: skip


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variables", type=int, nargs="+", default=(37, 50, 100, 200))
    parser.add_argument("--records", type=int, nargs="+", default=(1_000, 10_000))
    parser.add_argument("--secure", type=int, nargs="*", default=(15, 37, 50, 100))
    given = arguments(parser, data=True)
    adult = read_binned(given.data / "uci" / "adult_train.csv.gz")
    cases = [("adult", adult, len(adult.variables) in given.secure)]
    for number in given.variables:
        for records in given.records:
            is_secure = number in given.secure and records == min(given.records)
            cases.append(("alarm", columns(records, number, seed_of()), is_secure))
    rows = []
    for name, data, is_secure in cases:
        for algorithm in ("hybrid", "k2"):
            rows.append(row_of(name, data, algorithm, is_secure=is_secure))
            print(*rows[-1], flush=True)
    print(table("wide", HEADER, rows))


def row_of(name: str, data: SiteData, algorithm: str, *, is_secure: bool) -> list[object]:
    """Return the row of a study."""
    options = Options(algorithm=algorithm)
    start, counter = process_time(), PlainCounter(data)

    def release(asked: FamilyTables) -> list[NDArray[np.int64]]:
        counted = counter.tables(asked.families, missing=asked.missing)
        return [np.where(one < asked.rule.fewest, 0, one) for one in counted]

    learned = learn_released(TableChooser(counter), release, options, CUT)
    pooled, bits = process_time() - start, ALGORITHMS[algorithm].bits
    assert bits is not None  # it learns by choices
    tables, most = learned.counter.released, bits(len(data.variables), options.most_parents)
    shown = [most, learned.bits, learned.calls - 1, learned.candidates]
    shown += [len(tables), sum(one.size for one in tables)]
    costs = secure(data, options) if is_secure else ["", "", ""]
    counts = [f"{round(number):,}" for number in shown]
    where = [name, len(data.variables), f"{data.records:,}", algorithm]
    return [*where, *counts, f"{pooled:.1f}", *costs]


def secure(data: SiteData, options: Options) -> list[str]:
    """Run a study over three sites; return its seconds, megabytes and rounds."""
    start = process_time()
    with federate(split_columns(data, SITES), memory_budget=1 << 30) as federation:
        session, sites, dealer = federation.session, federation.sites, federation.dealer
        study = open_study(session, sites, dealer, order=list(data.variables), choices=True)
        learn_released(SecretChooser(study), study.release, options, CUT)
        traffic = federation.traffic
    seconds = process_time() - start
    return [f"{seconds:.1f}", f"{traffic.bytes / 1e6:,.0f}", f"{traffic.rounds:,}"]


if __name__ == "__main__":
    main()
