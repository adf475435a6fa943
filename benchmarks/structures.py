"""Structure learners beside pyAgrum's and pgmpy's: distance to the truth, score, time and price.

    python benchmarks/structures.py [--networks alarm,child] [--records 10000] [--renamings 5]
        [--algorithms hybrid,hill_climbing] [--peers pyAgrum] [--no-choices] [--missing 0.05]
    python benchmarks/structures.py --winners           # what choices ask for, by renaming
    python benchmarks/structures.py --growth            # 50 to 300 variables, and records

Records are sampled from the networks that pgmpy bundles. Our learners break ties by name, so that
the order of columns makes no difference to them; those of others break ties by column. So that
chance has the same part in all, each run renames the variables at random, and has the columns in
the order of the new names.

SHD is the structural Hamming distance to the true network, and that of the CPDAGs after the
semicolon: median/worst over the renamings. BIC is less that of the true network (median, nats).
What a federation costs and reveals is measured for the first renaming, over three sites: all
parties' work in this process. Its structure must be the pooled one, at two, three and five sites.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import log2, prod
from statistics import median
from time import perf_counter
from typing import NamedTuple

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

import warnings

import numpy as np
from peers.structure_learners import PEERS

warnings.simplefilter("ignore", FutureWarning)  # pgmpy renames its modules
from pgmpy.utils import get_example_model

from vertibayes.choosing import Chooser, TableChooser
from vertibayes.choosing.secret import SecretChooser
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.network import from_pgmpy
from vertibayes.parameters.cpt import scores
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.structure.learners import learn_structure
from vertibayes_protocols.choices import Choices, Constant
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

NETWORKS = "asia,child,insurance,alarm,hepar2,hailfinder"
ALONE = "exact", "tan"  # exact takes 15 variables at most; tan learns a classifier


class Case(NamedTuple):
    """Records of a known network, and the network's structure, under the same names."""

    data: SiteData
    truth: Structure


def case(network: str, records: int, seed: int, missing: float) -> Case:
    """Sample a network and rename its variables; the first case keeps the network's names."""
    model = from_pgmpy(get_example_model(network))
    data, rng = sample(model, records, seed=seed_of()), np.random.default_rng(seed_of(seed))
    names = list(data.variables)
    order = names if not seed else [names[place] for place in rng.permutation(len(names))]
    new = {name: name if not seed else f"v{place:03}" for place, name in enumerate(order)}
    if not seed:
        order = sorted(names)
    variables, codes = {}, {}
    for name in order:
        states, column = data.variables[name].states, data.codes[name]
        generator = np.random.default_rng([seed_of(records), names.index(name)])
        absent = generator.random(records) < missing
        codes[new[name]] = np.where(absent, len(states), column).astype(column.dtype)
        variables[new[name]] = Variable(new[name], states, missing=bool(absent.any()))
    renamed = {new[n]: tuple(new[p] for p in ps) for n, ps in model.structure.parents.items()}
    return Case(SiteData(variables, codes), Structure({name: renamed[name] for name in variables}))


class Measured(NamedTuple):
    """What one run learned: distances, BIC less the truth's, seconds."""

    distance: int
    equivalence: int
    bic: float
    seconds: float


def measured(learn: Callable[[SiteData], Structure], case: Case) -> Measured:
    """Learn from a case and compare with the truth."""
    start = perf_counter()
    structure = learn(case.data)
    seconds = perf_counter() - start
    counter = PlainCounter(case.data)
    bic = scores(counter, structure).bic - scores(counter, case.truth).bic
    distance = cpdag_of(structure).hamming_distance(cpdag_of(case.truth))
    return Measured(structure.hamming_distance(case.truth), distance, bic, seconds)


def pooled(algorithm: str, data: SiteData) -> Structure:
    """Learn from pooled records by tables."""
    return learn_structure(PlainCounter(data), algorithm)


def chosen(algorithm: str, data: SiteData) -> Structure:
    """Learn from pooled records by choices."""
    return learn_structure(TableChooser(PlainCounter(data)), algorithm)


def price_by_tables(algorithm: str, data: SiteData) -> list[object]:
    """Return what three sites spend and reveal; two and five sites must learn the same."""
    wanted = pooled(algorithm, data)
    row: list[object] = []
    for sites in (2, 5, 3):
        start = perf_counter()
        with federate(split_columns(data, sites)) as federation:
            counter = SecureCounter.of(federation, order=list(data.variables))
            assert learn_structure(counter, algorithm) == wanted, f"{algorithm} at {sites} sites"
        ledger, traffic = counter.ledger, federation.traffic
        row = [f"{perf_counter() - start:.1f}", counter.calls, traffic.rounds]
        row += [f"{traffic.bytes / 1e6:.0f}", f"{len(ledger.tables)}; {ledger.cells / 1000:.0f}k"]
    return row


class Priced:
    """A chooser that notes what it is asked for."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self.variables, self.records = chooser.variables, chooser.records
        self.most_variables, self.fits = chooser.most_variables, chooser.fits
        self.check, self.score_error = chooser.check, chooser.score_error
        self.calls = 0
        self.sizes: list[int] = []
        self.tables: set[frozenset[str]] = set()

    @property
    def undecided(self) -> int:
        """That of the chooser."""
        return self._chooser.undecided

    @property
    def bits(self) -> float:
        """How many bits the winners have, with one of each set that says whether it is decided."""
        return sum(1 + log2(size) for size in self.sizes)

    def choose(self, choices: Choices) -> tuple[int, ...]:
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
        """Calls, sets, bits, comparisons between candidates, distinct tables, and their cells."""
        lengths = {name: len(variable.states) for name, variable in self.variables.items()}
        cells = sum(prod(lengths[name] for name in members) for members in self.tables)
        compared = sum(size * (size - 1) / 2 for size in self.sizes)
        numbers = self.calls, len(self.sizes), self.bits, compared, len(self.tables), cells
        return [f"{number:,.0f}" for number in numbers]


def price_by_choices(algorithm: str, data: SiteData) -> list[object]:
    """Return what three sites spend, and how many bits they reveal, by choices."""
    wanted, start = chosen(algorithm, data), perf_counter()
    with federate(split_columns(data, 3), memory_budget=1 << 34) as federation:
        session, parties, dealer = federation.session, federation.sites, federation.dealer
        order = list(data.variables)
        study = open_study(session, parties, dealer, order=order, choices=True)
        chooser = Priced(SecretChooser(study))
        structure = learn_structure(chooser, algorithm)
    equal = "" if structure == wanted else f" (other than pooled: {chooser.undecided} undecided)"
    traffic = federation.traffic
    return [
        f"{perf_counter() - start:.1f}",
        chooser.calls,
        traffic.rounds,
        f"{traffic.bytes / 1e6:.0f}",
        f"{chooser.bits:,.0f} bits{equal}",
    ]


def learners(args: argparse.Namespace) -> Iterator[tuple[str, Callable, Callable | None]]:
    """Yield the learners that are compared: name, pooled, and what gives their price."""
    for name in args.algorithms:
        yield name, partial(pooled, name), partial(price_by_tables, name)
        if ALGORITHMS[name].steps is not None and args.choices:
            yield f"{name}, by choices", partial(chosen, name), partial(price_by_choices, name)
    for name, learn in PEERS.items():
        if any(name.startswith(peer) for peer in args.peers):
            yield name, learn, None


def compare(network: str, args: argparse.Namespace) -> dict[object, str]:
    """Print the table of one network; return each learner's distances and BIC."""
    cases = [case(network, args.records, seed, args.missing) for seed in range(args.renamings)]
    rows = []
    for name, learn, price in learners(args):
        try:
            runs = [measured(learn, each) for each in cases]
            cost = [] if price is None else price(cases[0].data)
        except (ValueError, RuntimeError, KeyError) as error:  # a peer, or a bound
            rows.append([name, f"{type(error).__name__}: {error!s:.60}"] + [""] * 7)
            continue
        rows.append([name, *_summary(runs), *(cost or [""] * 5)])
    print(f"\n{network}, {args.records:,} records, {args.missing:.0%} of the cells missing\n")
    header = ["learner", "SHD; of CPDAGs", "BIC less truth's", "pooled s", "3 sites s", "calls",
              "rounds", "MB", "revealed"]  # fmt: skip
    print(table(f"structures_{network}", header, rows), flush=True)
    return {row[0]: f"{row[1]}; {row[2]}".rstrip("; ") for row in rows}


def _summary(runs: Sequence[Measured]) -> list[object]:
    def both(values: Sequence[int]) -> str:
        return f"{median(values):g}/{max(values)}"

    return [
        f"{both([r.distance for r in runs])}; {both([r.equivalence for r in runs])}",
        f"{median(r.bic for r in runs):,.0f}",
        f"{median(r.seconds for r in runs):.2f}",
    ]


def by_choices(chooser: Priced, algorithm: str, _data: SiteData) -> Structure:
    """Learn from what a chooser has."""
    return learn_structure(chooser, algorithm)


def winners(network: str, args: argparse.Namespace) -> None:
    """Print the price of choices for each renaming of one network, from pooled records."""
    rows = []
    for seed in range(args.renamings):
        each = case(network, args.records, seed, args.missing)
        for name in args.algorithms:
            how = ALGORITHMS[name]
            if how.steps is None or how.bits is None:
                continue
            chooser = Priced(TableChooser(PlainCounter(each.data)))
            run = measured(partial(by_choices, chooser, name), each)
            most = how.bits(len(each.data.variables), how.max_parents)
            rows.append([name, seed, run.distance, f"{run.bic:,.0f}", *chooser.price,
                         f"{most:,.0f}", f"{run.seconds:.1f}"])  # fmt: skip
    print(f"\n{network}, {args.records:,} records, by choices\n")
    header = ["learner", "renaming", "SHD", "BIC", "calls", "sets", "bits", "comparisons", "tables",
              "cells", "bits at most", "seconds"]  # fmt: skip
    print(table(f"structures_{network}_winners", header, rows), flush=True)


def growth() -> None:
    """Print how the default grows with variables (copies of ALARM, side by side) and records."""
    rows = []
    model = from_pgmpy(get_example_model("alarm"))
    for variables, records in ((50, 5_000), (100, 5_000), (200, 5_000), (300, 2_000), (37, 1_000),
                               (37, 10_000), (37, 100_000)):  # fmt: skip
        data = _copies(model, variables, records)
        start = perf_counter()
        structure = pooled("hybrid", data)
        seconds = perf_counter() - start
        rows.append([variables, records, len(structure.edges), f"{seconds:.1f}",
                     *price_by_tables_once(data, structure)])  # fmt: skip
    header = ["variables", "records", "edges", "pooled s", "3 sites s", "calls", "tables; cells"]
    print(table("structures_growth", header, rows))


def _copies(model: object, variables: int, records: int) -> SiteData:
    """Return so many columns of independent samples of a network."""
    columns: dict[str, tuple[Variable, np.ndarray]] = {}
    seed = 0
    while len(columns) < variables:
        data = sample(model, records, seed=seed_of(seed))
        for name, variable in data.variables.items():
            new = f"{name}_{seed}"
            columns[new] = Variable(new, variable.states), data.codes[name]
        seed += 1
    kept: Mapping[str, tuple[Variable, np.ndarray]] = dict(list(columns.items())[:variables])
    return SiteData({n: v for n, (v, _) in kept.items()}, {n: c for n, (_, c) in kept.items()})


def price_by_tables_once(data: SiteData, wanted: Structure) -> list[object]:
    """Return seconds, calls, tables and cells of three sites."""
    start = perf_counter()
    with federate(split_columns(data, 3), memory_budget=1 << 34) as federation:
        counter = SecureCounter.of(federation)
        assert learn_structure(counter, "hybrid") == wanted
    revealed = f"{len(counter.ledger.tables)}; {counter.ledger.cells / 1000:.0f}k"
    return [f"{perf_counter() - start:.1f}", counter.calls, revealed]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Structure learners beside others.")
    parser.add_argument("--networks", default=NETWORKS, type=lambda text: text.split(","))
    known = [name for name in ALGORITHMS if name not in ALONE]
    parser.add_argument("--algorithms", default=known, type=lambda text: text.split(","))
    parser.add_argument("--records", default=10_000, type=int)
    parser.add_argument("--renamings", default=5, type=int)
    parser.add_argument("--missing", default=0.0, type=float)
    parser.add_argument("--peers", default=["pyAgrum", "pgmpy"], type=lambda text: text.split(","))
    parser.add_argument("--no-choices", dest="choices", action="store_false")
    parser.add_argument("--winners", action="store_true")
    parser.add_argument("--growth", action="store_true")
    args = arguments(parser)
    if args.growth:
        growth()
        return
    if args.winners:
        for network in args.networks:
            winners(network, args)
        return
    found = {network.upper(): compare(network, args) for network in args.networks}
    rows = [[name, *(cells[name] for cells in found.values())] for name, *_ in learners(args)]
    print("\n" + table("structures", ["learner", *found], rows))


if __name__ == "__main__":
    main()
