"""How often a structure changes if one person is left out: what no rule of release covers.

    python benchmarks/structure_leak.py [--network alarm] [--people 100]

Each learner learns from all records, and again without each of some people in turn. Counted are
the people without whom an edge is another, and, of these, those without whom the equivalence class
(the CPDAG) is another.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from pgmpy.utils import get_example_model

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.network import from_pgmpy
from vertibayes.sampling import sample
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.structure.learners import learn_structure
from vertibayes_protocols.site.data import SiteData

LEARNERS = "k2", "hybrid", "hill_climbing", "chow_liu"
SIZES = 1_000, 10_000  # records


def without_one(data: SiteData, people: int) -> Iterator[SiteData]:
    """Yield the data without each of some people, evenly spaced."""
    for place in np.linspace(0, data.records - 1, people, dtype=int):
        yield data.rows(np.delete(np.arange(data.records), place))


def learned(data: SiteData, algorithm: str) -> Structure:
    """Learn from pooled data; secure learning finds the same structure."""
    return learn_structure(PlainCounter(data), algorithm)


def main() -> None:
    """Print, by learner and number of records, how many of the people change the structure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="alarm")
    parser.add_argument("--people", type=int, default=100)
    given = arguments(parser)
    network, rows = from_pgmpy(get_example_model(given.network)), []
    for algorithm, records in product(LEARNERS, SIZES):
        data = sample(network, records, seed=seed_of(1))
        whole = learned(data, algorithm)
        others = (learned(part, algorithm) for part in without_one(data, given.people))
        changed = [other for other in others if set(other.edges) != set(whole.edges)]
        classes = sum(cpdag_of(other) != cpdag_of(whole) for other in changed)
        rows.append([algorithm, f"{records:,}", given.people, len(changed), classes])
        print(*rows[-1], flush=True)
    header = ["learner", "records", "people left out, one at a time", "another edge",
              "another equivalence class"]  # fmt: skip
    print(table("structure_leak", header, rows))


if __name__ == "__main__":
    main()
