"""Structures by choices, from pooled records: how good they are, and what the winners reveal.

    python benchmarks/structures_by_choices.py [--networks asia child insurance alarm] [--names 3]
        [--algorithms hybrid hill_climbing] [--records 10000]

Each network is sampled once. Ties are broken by name, so that each line gives the variables other
names: random ones, the same for all algorithms. SHD is the structural Hamming distance to the
network that was sampled, and BIC the difference to that network's, in nats. The last columns are
the price: calls, sets, bits, comparisons between candidates, distinct tables of candidates and
their cells. `most` is the number of bits at which the search ends.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from math import log2
from time import perf_counter

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from pgmpy.utils import get_example_model

from protocols.approval import Winners
from protocols.choices import Choices, Constant
from protocols.site.data import SiteData
from protocols.variables import Family
from vertibayes.choosing import TableChooser
from vertibayes.counting import PlainCounter
from vertibayes.counting.counter import cells_of
from vertibayes.network import Structure, from_pgmpy
from vertibayes.parameters.cpt import scores
from vertibayes.parameters.synthetic import sample
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.learners import learn_structure

HEAD = ["network", "names", "algorithm", "SHD", "BIC", "calls", "sets", "bits", "most", "compared"]
HEAD += ["tables", "cells", "seconds"]


@dataclass
class Priced:
    """A chooser over pooled records that notes what it is asked for."""

    data: SiteData
    calls: int = 0
    sizes: list[int] = field(default_factory=list)
    tables: set[frozenset[str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._chooser = TableChooser(PlainCounter(self.data))
        self.variables, self.records = self._chooser.variables, self._chooser.records
        self.most_variables, self.fits = None, self._chooser.fits
        self.check, self.score_error = self._chooser.check, self._chooser.score_error
        self.undecided = 0

    def choose(self, choices: Choices) -> Winners:
        """Choose, and note the price."""
        self.calls += 1
        self.sizes += map(len, choices.sets)
        self.tables |= {
            frozenset((*term.family.members, *term.within))
            for candidates in choices.sets
            for candidate in candidates
            for term in candidate
            if not isinstance(term, Constant)
        }
        return self._chooser.choose(choices)

    @property
    def price(self) -> list[str]:
        """Calls, sets, bits, comparisons, tables, cells."""
        lengths = {name: len(variable.states) for name, variable in self.variables.items()}
        families = [Family(first, tuple(rest)) for first, *rest in self.tables]
        bits = sum(1 + log2(size) for size in self.sizes)
        return [
            f"{number:,.0f}"
            for number in (
                self.calls,
                len(self.sizes),
                bits,
                sum(size * (size - 1) / 2 for size in self.sizes),
                len(families),
                sum(cells_of(lengths, family) for family in families),
            )
        ]


def renamed(
    data: SiteData, structure: Structure, generator: np.random.Generator
) -> tuple[SiteData, Structure]:
    """Return data and structure with other names."""
    places = generator.permutation(len(data.variables))
    new = {name: f"v{place:04}" for name, place in zip(data.variables, places, strict=True)}
    variables = {
        new[name]: type(variable)(new[name], variable.states)
        for name, variable in data.variables.items()
    }
    codes = {new[name]: codes for name, codes in data.codes.items()}
    parents = {new[c]: tuple(new[p] for p in ps) for c, ps in structure.parents.items()}
    return SiteData(variables, codes), Structure(parents)


def main() -> None:
    """Print a line for each network, naming and algorithm."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=["asia", "child", "insurance", "alarm"])
    parser.add_argument("--algorithms", nargs="+", default=["hybrid", "hill_climbing"])
    parser.add_argument("--names", type=int, default=3)
    parser.add_argument("--records", type=int, default=10_000)
    args = parser.parse_args()
    rows = []
    for name in args.networks:
        network = from_pgmpy(get_example_model(name))
        sampled = sample(network, args.records, 1)
        for naming in range(args.names):
            data, truth = sampled, network.structure
            data, truth = renamed(data, truth, np.random.default_rng(naming))
            counter = PlainCounter(data)
            for algorithm in args.algorithms:
                chooser, start = Priced(data), perf_counter()
                structure = learn_structure(chooser, algorithm)
                seconds = perf_counter() - start
                distance = structure.hamming_distance(truth)
                gain = scores(counter, structure).bic - scores(counter, truth).bic
                calls, sets, bits, *work = chooser.price
                bounds = ALGORITHMS[algorithm].bits
                most = bounds(len(data.variables), 4) if bounds else 0
                measured = [distance, f"{gain:,.0f}", calls, sets, bits, f"{most:,.0f}", *work]
                rows.append([name, naming, algorithm, *measured, f"{seconds:.1f}"])
                print(*rows[-1], flush=True)
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
