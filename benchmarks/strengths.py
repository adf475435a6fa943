"""Arc strengths beside the truth: about 90 % of the edges with strength .9 should be true.

    python benchmarks/strengths.py [--networks alarm insurance] [--datasets 20] [--records 2000]
        [--samples 20] [--ways parametric likelihood rows] [--algorithm hybrid] [--keep FILE.jsonl]
        [--parts ...]

Datasets are drawn from a network that pgmpy bundles, and a structure is learned from each. Ways to
say how sure its edges are: samples of the learned network (parametric; `arc_strengths`), the same
with CPTs of maximum likelihood, samples of the records with replacement (rows: it needs pooled
records, and is the oracle), and 1 / (1 + exp(-gain)). An edge is true if the network has an edge
between its nodes; a direction is scored where the edge is true. The calibration error is the mean
distance of the mean strength and the share of true edges over the bins, weighted by their sizes.

`--keep` writes a line for each dataset and way, and reads the lines of an earlier run first. The
part "records" shows why the samples have as many records as the data: strengths by fewer records.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.edges import ArcStrength, Edge
from vertibayes.network import Network, from_pgmpy
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.sampling import sample
from vertibayes.settings import PSEUDO_COUNT
from vertibayes.structure.equivalence import cpdag_of
from vertibayes.structure.gains import edge_gains
from vertibayes.structure.learners import learn_structure
from vertibayes.structure.strengths import averaged_structure, l1_threshold, strengths_from
from vertibayes_protocols.site.data import SiteData

BINS = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
WAYS = ("parametric", "likelihood", "rows")
FIRST_SEED = 1000  # of the datasets; those of the samples are others


@dataclass(frozen=True)
class Case:
    """What one way says of the edges of one dataset.

    `arcs` has (parent, child, strength, direction, gain or None) of each edge.
    """

    network: str
    records: int
    seed: int
    way: str
    samples: int
    arcs: list[list[str | float | None]]
    distances: dict[str, int]  # SHD of the learned and of the averaged structure, and of CPDAGs
    seconds: float  # of the processor, for all samples


def main() -> None:
    """Run the parts and print their tables."""
    given = _arguments()
    kept, rows = list(_kept(given.keep)), []
    for network in given.networks:
        truth = bundled(network)
        cases = [case for case in kept if case.network == network and case.way in given.ways]
        if "calibration" in given.parts:
            done = {(case.seed, case.way) for case in cases}
            for seed in range(first := seed_of(FIRST_SEED), first + given.datasets):
                ways = [way for way in given.ways if (seed, way) not in done]
                for case in cases_of(truth, given, network, seed, ways):
                    cases.append(case)
                    if given.keep is not None:
                        with given.keep.open("a") as file:
                            file.write(json.dumps(asdict(case)) + "\n")
            rows += rows_of(cases, truth, given.ways)
        if "records" in given.parts:
            show_records(truth, given)
    if rows:
        bins = [f"{low:g} to {high:g}" for low, high in pairwise(BINS)]
        print(table("strengths", ("edges", "n", "AUC", "calibration error", *bins), rows))


def cases_of(
    truth: Network, given: argparse.Namespace, network: str, seed: int, ways: Sequence[str]
) -> Iterator[Case]:
    """Learn from a dataset, and yield what each way says of its edges."""
    if not ways:
        return
    learn = learner(given.algorithm)
    data = sample(truth, given.records, seed)
    counter = PlainCounter(data)
    structure = learn(data)
    gains = edge_gains(counter, structure)
    for way in ways:
        draw, before = drawing(way, data, structure, seed), process_time()
        structures = [learn(draw(number)) for number in range(given.samples)]
        seconds = process_time() - before
        arcs = strengths_from(structure, structures, gains=gains)
        averaged = averaged_structure(
            arcs, structure.nodes, threshold=l1_threshold([arc.strength for arc in arcs])
        )
        distances = {
            "learned": structure.hamming_distance(truth.structure),
            "averaged": averaged.hamming_distance(truth.structure),
            "learned CPDAG": cpdag_of(structure).hamming_distance(cpdag_of(truth.structure)),
            "averaged CPDAG": cpdag_of(averaged).hamming_distance(cpdag_of(truth.structure)),
        }
        listed = [list(arc) for arc in arcs]
        yield Case(network, given.records, seed, way, given.samples, listed, distances, seconds)


def drawing(way: str, data: SiteData, structure: Structure, seed: int) -> Callable[[int], SiteData]:
    """Return what draws a sample, by its number."""
    if way == "rows":

        def rows(number: int) -> SiteData:
            chosen = np.random.default_rng((seed, number)).integers(0, data.records, data.records)
            return SiteData(data.variables, {n: c[chosen] for n, c in data.codes.items()})

        return rows
    pseudo_count = PSEUDO_COUNT if way == "parametric" else 0.0
    network = fit_cpts(PlainCounter(data), structure, pseudo_count=pseudo_count)
    return lambda number: sample(network, data.records, seed * 1000 + number)


def learner(algorithm: str) -> Callable[[SiteData], Structure]:
    """Return what learns a structure from data."""
    return lambda data: learn_structure(PlainCounter(data), algorithm)


def rows_of(cases: Sequence[Case], truth: Network, ways: Sequence[str]) -> Iterator[list[str]]:
    """Print the distances of each way, and yield its rows of the calibration."""
    edges = set(truth.structure.edges)
    for way in ways:
        own = [case for case in cases if case.way == way]
        if not own:
            continue
        arcs = [ArcStrength(*arc) for case in own for arc in case.arcs]  # type: ignore[arg-type]
        learned = [arc for arc in arcs if arc.gain is not None]
        seconds = np.median([case.seconds for case in own])
        print(f"\n{way}: {len(own)} datasets of {own[0].records} records, {own[0].samples} samples")
        print(f"in {seconds:.1f} s of the processor (median); mean: share of true edges (n)\n")
        title = f"{own[0].network}, {way}"
        yield from (
            _row(f"{title}: learned edges", [a.strength for a in learned], _true(learned, edges)),
            _row(
                f"{title}: all edges of any sample", [a.strength for a in arcs], _true(arcs, edges)
            ),
            _row(f"{title}: 1 / (1 + exp(-gain))", _logistic(learned), _true(learned, edges)),
            _row(
                f"{title}: gain",
                [a.gain or 0.0 for a in learned],
                _true(learned, edges),
                bins=False,
            ),
            _direction_row(f"{title}: direction", learned, edges),
        )
        distances = {n: np.median([case.distances[n] for case in own]) for n in own[0].distances}
        print("\nSHD (median):", ", ".join(f"{n} {d:g}" for n, d in distances.items()))


def _true(arcs: Sequence[ArcStrength], edges: set[Edge]) -> list[bool]:
    return [(a.parent, a.child) in edges or (a.child, a.parent) in edges for a in arcs]


def _logistic(arcs: Sequence[ArcStrength]) -> list[float]:
    gains = np.clip([arc.gain or 0.0 for arc in arcs], -700, 700)
    return (1 / (1 + np.exp(-gains))).tolist()


def _direction_row(name: str, arcs: Sequence[ArcStrength], edges: set[Edge]) -> list[str]:
    """Return the row of the more frequent direction of each learned edge that is true."""
    true = [arc for arc, is_true in zip(arcs, _true(arcs, edges), strict=True) if is_true]
    shares = [max(arc.direction, 1 - arc.direction) for arc in true]
    right = [((a.parent, a.child) in edges) == (a.direction >= 0.5) for a in true]
    return _row(name, shares, right)


def _row(
    name: str, scores: Sequence[float], true: Sequence[bool], *, bins: bool = True
) -> list[str]:
    """Return the number of edges, AUC, calibration error and the bins: share of true edges (n)."""
    values, is_true = np.array(scores, float), np.array(true, bool)
    head = [name, str(len(values)), _auc(values, is_true)]
    if not bins or not len(values):
        return [*head, "", *[""] * (len(BINS) - 1)]
    places = np.clip(np.searchsorted(BINS, values, side="right") - 1, 0, len(BINS) - 2)
    error, cells = 0.0, []
    for place in range(len(BINS) - 1):
        chosen = places == place
        if not chosen.any():
            cells.append("-")
            continue
        mean, share = values[chosen].mean(), is_true[chosen].mean()
        error += chosen.sum() * abs(mean - share) / len(values)
        cells.append(f"{mean:.3f}: {share:.3f} ({chosen.sum()})")
    return [*head, f"{error:.3f}", *cells]


def _auc(scores: NDArray[np.float64], true: NDArray[np.bool_]) -> str:
    high, low = scores[true], scores[~true]
    if not len(high) or not len(low):
        return "-"
    above = (high[:, None] > low).mean() + (high[:, None] == low).mean() / 2
    return f"{above:.3f}"


def show_records(truth: Network, given: argparse.Namespace) -> None:
    """Print how the strengths of a learned network fall if the samples have fewer records."""
    learn = learner(given.algorithm)
    data = sample(truth, given.records, seed_of(FIRST_SEED))
    structure = learn(data)
    network = fit_cpts(PlainCounter(data), structure)
    rows = []
    for records in (given.records, given.records // 2, given.records // 5, given.records // 10):
        start = perf_counter()
        structures = [learn(sample(network, records, n)) for n in range(given.samples)]
        arcs = strengths_from(structure, structures)
        own: Mapping[Edge, ArcStrength] = {(arc.parent, arc.child): arc for arc in arcs}
        strengths = [own[edge].strength for edge in structure.edges]
        low = sum(strength < 0.8 for strength in strengths)
        seconds = (perf_counter() - start) / given.samples
        rows.append((records, f"{np.mean(strengths):.3f}", low, f"{seconds:.1f}"))
    print(f"\n{len(structure.edges)} edges learned from {given.records} records\n")
    print(
        table(
            "strengths_records",
            ("records of a sample", "mean strength", "below .8", "seconds"),
            rows,
        )
    )


def bundled(name: str) -> Network:
    """Return a network that pgmpy bundles."""
    from pgmpy.utils import get_example_model

    with warnings.catch_warnings():  # its successor would download the network
        warnings.simplefilter("ignore", FutureWarning)
        return from_pgmpy(get_example_model(name))


def _kept(path: Path | None) -> Iterator[Case]:
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            yield Case(**json.loads(line))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=["alarm"])
    parser.add_argument("--datasets", type=int, default=20)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--algorithm", default="hybrid")
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "--parts", nargs="+", choices=("calibration", "records"), default=["calibration"]
    )
    return arguments(parser)


if __name__ == "__main__":
    main()
