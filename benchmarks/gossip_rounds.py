"""How many iterations gossip needs by the number of nodes: O(log n), say Giaretta et al. (2023).

    python benchmarks/gossip_rounds.py [--runs 5] [--nodes 1000]

An estimate is a weighted mean of all nodes' updates. n times the sum of its squared weights is how
many times the noise of the federated model it has (copies): 1 if all weights are equal. Counters
are that of Algorithm 4 as printed, and the project's: it adds up, as that of equation 27, to 100.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.naive_bayes.gossip import gossip

NODES = (10, 30, 100, 300, 1000)
COUNTERS: dict[str, dict[str, Any]] = {"Algorithm 4": {"adds_up_to": 1}, "default": {}}
COPIES = (4.0, 2.0, 1.5)
MOST = 100


def iterations(nodes: int, counter: str, generator: np.random.Generator) -> list[int]:
    """Return after how many iterations the median node has so few copies of noise."""
    needed: list[int] = []
    run = gossip(np.eye(nodes), MOST, generator, **COUNTERS[counter])
    for done, state in enumerate(run, 1):
        copies = nodes * float(np.median((state.estimates.values**2).sum(axis=1)))
        while len(needed) < len(COPIES) and copies <= COPIES[len(needed)]:
            needed.append(done)
        if len(needed) == len(COPIES):
            return needed
    return needed + [MOST] * (len(COPIES) - len(needed))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=NODES[-1], help="most")
    given = arguments(parser)
    generator, rows = np.random.default_rng(seed_of()), Rows()
    for counter, nodes in product(COUNTERS, (n for n in NODES if n <= given.nodes)):
        found = np.array([iterations(nodes, counter, generator) for _ in range(given.runs)])
        cells = zip(found.mean(axis=0), found.std(axis=0, ddof=1), strict=True)
        rows.append([counter, f"{nodes:,}", *(f"{mean:.1f} ± {sd:.1f}" for mean, sd in cells)])
    header = ["counter", "nodes", *(f"iterations to {copies:g} copies" for copies in COPIES)]
    print("\n" + table("gossip_rounds", header, rows, spread=f"SD over {given.runs} runs"))


if __name__ == "__main__":
    main()
