"""Prediction: seconds per record beside pyAgrum's and pgmpy's, and what a pseudo-count does to it.

    python benchmarks/prediction.py --data FOLDER [--records 30000] [--times 5]

Networks are K2's, with at most three parents (two in the first row), of the first two thirds of the
records; Adult without its two zero-inflated columns. Predicted are records drawn with replacement
from the last third, of which a part of the cells is made missing in some rows. pyAgrum's lazy
propagation and pgmpy's variable elimination set the evidence of one record at a time; they are
timed on fewer records. All on one thread; medians of several runs, in one process. The largest
difference of a probability from pyAgrum's is that over the records it was timed on.

The second table scores the class of the last third under one structure and pseudo-counts for each
cell of the CPTs ("0.1") or spread over the cells of each CPT ("10 / CPT", as BDeu): means over
tables, and over the target first and last in K2's order.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, seconds_of, table

on_one_thread()

import numpy as np
from numpy.typing import NDArray

from vertibayes.bif import write_bif
from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.prediction import posterior
from vertibayes.network import Network
from vertibayes.parameters.cpt import conditional, fit_cpts
from vertibayes.structure.learners import k2
from vertibayes.validation.measures import auc
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.variables import Variable

Codes = dict[str, NDArray[Any]]
Predictor = Callable[[Codes, int], NDArray[Any]]

FILES = {
    "adult": ("uci/adult_train.csv.gz", "income", ("capital-gain", "capital-loss")),
    "australian": ("uci/australian.csv", "class", ()),
    "bank": ("uci/bank-full.csv.gz", "y", ()),
    "car": ("uci/car.csv", "class", ()),
    "connect-4": ("uci/connect-4.csv.gz", "class", ()),
    "letter": ("uci/letter.csv.gz", "letter", ()),
    "pima": ("uci/pima-diabetes.csv.gz", "outcome", ()),
}


class Case(NamedTuple):
    """What is predicted: a table, its bins, the target's place in K2's order, missing cells."""

    name: str
    bins: float = 0.1
    first: bool = False
    parents: int = 3
    missing: float = 0.0


CASES = (
    Case("adult", parents=2),
    Case("adult", 0.06),
    Case("adult", 0.06, first=True),
    Case("adult", 0.06, missing=0.1),
    Case("bank", 0.06, first=True, missing=0.1),
    Case("letter"),
    Case("letter", first=True),
    Case("letter", first=True, missing=0.1),
    Case("connect-4", first=True),
)
PRIORS: dict[str, Callable[[int], float]] = {
    "0": lambda _: 0.0,
    "0.01": lambda _: 0.01,
    "0.05": lambda _: 0.05,
    "0.1": lambda _: 0.1,
    "0.2": lambda _: 0.2,
    "0.5": lambda _: 0.5,
    "1": lambda _: 1.0,
    "1 / CPT": lambda size: 1.0 / size,
    "10 / CPT": lambda size: 10.0 / size,
}
LEAST = 1e-6  # for the log-loss: a class that is called impossible costs 13.8 nats


def load(folder: Path, name: str, bins: float, seed: int = 0) -> tuple[SiteData, SiteData]:
    """Return records without missing cells to learn from, and others to predict."""
    file, _, left_out = FILES[name]
    columns = {n: c for n, c in read_columns(folder / file).items() if n not in left_out}
    data = SiteData.from_text(name, columns, Encoding(missing_codes=("?",), bins=bins))
    known = np.logical_and.reduce(
        [data.codes[n] < len(v.states) for n, v in data.variables.items()]
    )
    order = np.random.default_rng(seed_of(seed)).permutation(np.flatnonzero(known))
    cut = len(order) * 2 // 3
    return data.rows(order[:cut]), data.rows(order[cut:])


def learned(training: SiteData, target: str, first: bool, parents: int = 3) -> Network:
    """Learn a network with the target first or last in K2's order."""
    others = [name for name in training.variables if name != target]
    ordering = [target, *others] if first else [*others, target]
    counter = PlainCounter(training)
    return fit_cpts(counter, k2(counter, ordering=ordering, max_parents=parents))


def evidence(test: SiteData, target: str, records: int, missing: float) -> Codes:
    """Draw records, and make some cells missing."""
    generator = np.random.default_rng(seed_of(1))
    rows = generator.integers(0, test.records, records)
    states = {n: len(v.states) for n, v in test.variables.items() if n != target}
    return {
        n: np.where(generator.random(records) < missing, count, test.codes[n][rows])
        for n, count in states.items()
    }


def plainly_named(network: Network) -> Network:
    """Return a network with names that all readers take: v0, v1, ... with states s0, s1, ..."""
    new = {name: f"v{place}" for place, name in enumerate(network.structure.nodes)}
    parents = network.structure.parents
    states = {n: tuple(f"s{k}" for k in range(count)) for n, count in network.cardinalities.items()}
    return Network(
        Structure({new[n]: tuple(new[p] for p in parents[n]) for n in new}),
        {new[n]: Variable(new[n], states[n]) for n in new},
        {new[n]: network.cpts[n] for n in new},
    )


def known_of(network: Network, codes: Codes, record: int) -> dict[str, str]:
    """Return what is known of a record, in the names of `plainly_named`."""
    places = {name: place for place, name in enumerate(network.structure.nodes)}
    values = {name: int(column[record]) for name, column in codes.items()}
    states = network.cardinalities
    return {f"v{places[n]}": f"s{code}" for n, code in values.items() if code < states[n]}


def pyagrum_predictor(network: Network, target: str) -> Predictor:
    """Return a function that predicts the first records by pyAgrum."""
    import pyagrum as gum

    with tempfile.TemporaryDirectory() as at:
        (Path(at) / "m.bif").write_text(write_bif(plainly_named(network)), encoding="utf-8")
        theirs = gum.loadBN(str(Path(at) / "m.bif"))
    name = f"v{network.structure.nodes.index(target)}"
    labels = theirs.variable(name).labels()
    order = [labels.index(f"s{k}") for k in range(len(labels))]
    engine = gum.LazyPropagation(theirs)
    engine.setTargets({name})

    def predict(codes: Codes, records: int) -> NDArray[Any]:
        found = []
        for record in range(records):
            engine.setEvidence(known_of(network, codes, record))
            engine.makeInference()
            found.append(engine.posterior(name).toarray()[order])
        return np.array(found)

    return predict


def pgmpy_predictor(network: Network, target: str) -> Predictor:
    """Return a function that predicts the first records by pgmpy."""
    from pgmpy.inference import VariableElimination

    engine = VariableElimination(plainly_named(network).to_pgmpy())
    name = f"v{network.structure.nodes.index(target)}"

    def predict(codes: Codes, records: int) -> NDArray[Any]:
        found = []
        for record in range(records):
            known = known_of(network, codes, record)
            query = engine.query([name], evidence=known, show_progress=False)
            found.append([query.get_value(**{name: s}) for s in query.state_names[name]])
        return np.array(found)

    return predict


def row(case: Case, folder: Path, records: int, times: int) -> list[object]:
    """Time a case."""
    target = FILES[case.name][1]
    training, test = load(folder, case.name, case.bins)
    network = learned(training, target, case.first, case.parents)
    codes = evidence(test, target, records, case.missing)
    ours = seconds_of(lambda: posterior(network, codes, target), times) / records * 1000
    wanted = posterior(network, codes, target)
    shown: list[object] = [f"{ours:.4f}"]
    pyagrum, pgmpy = pyagrum_predictor(network, target), pgmpy_predictor(network, target)
    for predict, some in ((pyagrum, 300), (pgmpy, 30)):
        theirs = seconds_of(lambda p=predict, k=some: p(codes, k), 3) / some * 1000
        shown += [f"{theirs:.2f}", f"{theirs / ours:,.0f}"]
    difference = np.abs(pyagrum(codes, 300) - wanted[:300]).max()
    parents = len(network.structure.parents[target])
    children = sum(target in parents for parents in network.structure.parents.values())
    states = max(network.cardinalities.values())
    name = f"{case.name}, {len(network.variables)} variables, to {states} states"
    family = f"{parents} / {children}"
    return [name, family, f"{case.missing:.0%}", *shown, f"{difference:.0e}"]


def smoothing(folder: Path) -> str:
    """Return the table of pseudo-counts."""
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in PRIORS}
    for name, (_, target, _) in FILES.items():
        for bins, seed in ((0.1, 0), (0.06, 1)):
            training, test = load(folder, name, bins, seed)
            for first in (False, True):
                network = learned(training, target, first)
                tables = PlainCounter(training).tables(network.structure.families)
                for prior, amount in PRIORS.items():
                    found[prior].append(scored(network, tables, amount, test, target))
    rows = []
    for prior, each in found.items():
        zeros, loss, area, joint, distance = np.mean(each, axis=0)
        rows.append([prior, f"{zeros:.1%}", f"{loss:.4f}", f"{area:.4f}", f"{joint:.3f}",
                     f"{distance:.3f}"])  # fmt: skip
    header = ["pseudo-count", "records without a prediction, or their class impossible", "log-loss",
              "AUC", "log-likelihood per record", "KL from maximum likelihood"]  # fmt: skip
    return table("prediction_smoothing", header, rows)


def scored(
    network: Network,
    tables: list[NDArray[Any]],
    amount: Callable[[int], float],
    test: SiteData,
    target: str,
) -> NDArray[Any]:
    """Return the scores of one prior on test records."""
    nodes = network.structure.nodes
    cpts = {n: conditional(t, amount(t.size)) for n, t in zip(nodes, tables, strict=True)}
    smoothed = Network(network.structure, network.variables, cpts)
    codes: Mapping[str, NDArray[Any]] = {n: c for n, c in test.codes.items() if n != target}
    found = posterior(smoothed, codes, target)
    truth = test.codes[target]
    own = found[np.arange(len(truth)), truth]
    area = auc(truth, found, network.variables[target].states).auc or 0.0
    joint = distance = 0.0
    for family, counts in zip(network.structure.families, tables, strict=True):
        cpt = cpts[family.child]
        joint += np.log(np.maximum(cpt[tuple(test.codes[n] for n in family.members)], LEAST)).mean()
        seen = counts > 0
        ratio = conditional(counts, 0)[seen] / cpt[seen]
        distance += (counts[seen] * np.log(ratio)).sum() / counts.sum()
    loss = -np.log(np.maximum(own, LEAST)).mean()
    return np.array([(own == 0).mean(), loss, area, joint, distance])


def main() -> None:
    """Run all cases and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--times", type=int, default=5)
    given = arguments(parser, data=True)
    print(smoothing(given.data))
    print()
    rows = Rows(row(case, given.data, given.records, given.times) for case in CASES)
    header = ["network", "parents / children of the target", "missing values",
              "ours, ms per record", "pyAgrum", "ratio", "pgmpy", "ratio",
              "largest difference"]  # fmt: skip
    print(table("prediction", header, rows))


if __name__ == "__main__":
    main()
