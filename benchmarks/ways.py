"""What tables cost by products and by shuffle, and what the planner predicts.

    python benchmarks/ways.py [--repeats 5]

Each row asks one query of several tables that share their prefix, all by products or
all by shuffle. Seconds are the processor's, of all parties in one process; bytes are of all links.
The constants of `protocols/vertibayes_protocols/queries/tables/masked_costs` are fitted to such a
table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import process_time
from unittest.mock import patch

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.counting.revealed_tables import RevealedTables
from vertibayes.counting.secure import SecureCounter
from vertibayes_protocols.federation import federate
from vertibayes_protocols.queries.tables import masked
from vertibayes_protocols.queries.tables.counting import Cost, Group
from vertibayes_protocols.queries.tables.masked_costs import Load, MaskedCosts, Shuffled
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable

# records, states of the prefix, states of each last variable, missing values
CASES = [
    (10_000, (3,), 3, False),
    (10_000, (3, 3), 3, False),
    (10_000, (4, 4, 4), 4, False),
    (50_000, (8,), 8, False),
    (50_000, (8, 8), 8, False),
    (50_000, (7, 7), 7, True),
    (50_000, (3, 3, 3), 3, False),
    (500_000, (5, 5), 5, False),
]
TABLES, SITES = 12, 3


def records_of(records: int, states: tuple[int, ...], last: int, missing: bool) -> SiteData:
    """Draw records: the prefix's variables, then `TABLES` last ones, and the next prefix's."""
    generator = np.random.default_rng(seed_of())
    counts = [*states, *[last] * TABLES]
    variables, codes = {}, {}
    for place, count in enumerate(counts):
        name = f"v{place}"
        gaps = missing and place == 0
        variables[name] = Variable(name, tuple(map(str, range(count))), gaps)
        codes[name] = generator.integers(0, count + gaps, records).astype(np.uint8)
    return SiteData(variables, codes)


@contextmanager
def forced(shuffled: bool) -> Iterator[None]:
    """Have all parties count by shuffles, or by products."""

    def chosen(_costs: MaskedCosts, group: Group) -> Shuffled:
        return Shuffled((shuffled,) * len(group.families), Load())

    with patch.object(masked, "choose_shuffled", chosen):
        yield


def cost_of(
    data: SiteData, families: list[Family], shuffled: bool, repeats: int
) -> tuple[float, int, int]:
    """Return the median seconds, the bytes and the rounds of one query."""
    names = list(data.variables)
    parts = {f"site-{k}": data.take(names[k::SITES]) for k in range(SITES)}
    seconds = []
    with forced(shuffled), federate(parts, memory_budget=16 << 30) as federation:
        counter = SecureCounter.of(federation, order=names)
        traffic = federation.traffic
        for _ in range(repeats):
            start, before, rounds = process_time(), traffic.bytes, traffic.rounds
            counter.tables(families)
            seconds.append(process_time() - start)
            sent, took = traffic.bytes - before, traffic.rounds - rounds
            counter._revealed = RevealedTables(counter.variables)  # or it would not be asked again
    return median(seconds), sent, took


def main() -> None:
    """Measure every case in both ways, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    given = arguments(parser)
    rows = Rows()
    for records, states, last, missing in CASES:
        data = records_of(records, states, last, missing)
        prefix = [f"v{i}" for i in range(len(states))]
        lasts = [f"v{len(states) + i}" for i in range(TABLES)]
        families = [Family(prefix[0], (*prefix[1:], z)) for z in lasts]
        with federate({"a": data}) as federation:
            study = SecureCounter.of(federation).study
        holders = {name: (f"site-{i % SITES}",) for i, name in enumerate(data.variables)}
        study = type(study)(**{**vars(study), "holders": holders})
        costs = MaskedCosts(study, records, False)
        sizes = costs.sizes(prefix, lasts)
        by: dict[bool, Callable[[], Cost]] = {
            True: lambda c=costs, s=sizes: sum(map(c.shuffle, s), Cost()),
            False: lambda c=costs, s=sizes, p=prefix: sum(map(c.products, s), c.extension(p)),
        }
        for shuffled in (False, True):
            seconds, sent, rounds = cost_of(data, families, shuffled, given.repeats)
            said = by[shuffled]()
            rows.append([
                f"{records:,}", " x ".join(map(str, (*states, last))), "missing" if missing else "",
                "shuffle" if shuffled else "products", f"{1000 * seconds / TABLES:.2f}",
                f"{said.picoseconds / 1e9 / TABLES:.2f}", f"{sent / 1e3 / TABLES:.0f}",
                f"{said.bytes / 1e3 / TABLES:.0f}", rounds,
            ])  # fmt: skip
    header = ["records", "cells", "values", "method", "ms per table", "predicted", "KB per table",
              "predicted", "rounds"]  # fmt: skip
    print(table("ways", header, rows))


if __name__ == "__main__":
    main()
