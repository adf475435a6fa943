"""Tables 2 and 3 of the VertiBayes paper, its figures beside ours.

    python benchmarks/vertibayes_tables.py --data FOLDER [--parts PART ...] [--sets NAME ...]

`auc` (table 2): given structures, ten folds, half a pseudo-count a cell. "Central" is exact EM on
the pooled records of nine folds; "EM from tables" (`--missing em`) and "three steps" (`--missing
synthetic`, as the paper has them) learn over two sites. All are scored on the records of the tenth
fold whose target is known (the paper scores all). SCV and SVDG get the same tables from a counter
of pooled records, whose folds follow from the seed. Figures are mean and standard deviation over
seeds: of the folds and of the synthetic records. `sites` (table 3): Asia over 2 to 8 sites.
`optimism`: what SCV says of diabetes; with its Outcome permuted there is nothing to be learned.
`records`: the three steps with more synthetic records, on diabetes. `scoring`: central learning,
where a record without a class counts as one of another class, and with modes filled in as WEKA does
(not in the class). `aic`: AIC of maximum likelihood beside the paper's, and of lesser networks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from curves import mean_sd
from missing import with_modes
from numpy.typing import NDArray
from results import markdown
from runs import arguments

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.inference.prediction import predicted
from vertibayes.network import Network
from vertibayes.parameters.cpt import scores
from vertibayes.parameters.em import fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic, fit_three_steps
from vertibayes.settings import PSEUDO_COUNT
from vertibayes.splitting import split_columns
from vertibayes.validation.measures import auc as area
from vertibayes.validation.methods import public, scv, svdg
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns

FOLDS = 10
FEW, SLOW = 3, "alarm"  # seeds of the set whose 30 % take a minute and a half each
FILES = {
    "alarm": ("alarm/alarm{}.csv.gz", "BP"),
    "asia": ("asia/asia{}.csv.gz", "lung"),
    "diabetes": ("diabetes/diabetes_binned{}.csv", "Outcome"),
    "iris": ("iris/iris_binned{}.csv", "label"),
}
# Central AUC; federated AUC, SCV, SVDG; central and federated AIC.
TABLE_2 = {
    ("alarm", 0): (0.91, 0.91, 0.91, 0.91, -340571, -318469),
    ("alarm", 5): (0.88, 0.89, 0.88, 0.89, -315856, -313612),
    ("alarm", 10): (0.85, 0.86, 0.86, 0.86, -340823, -350576),
    ("alarm", 30): (0.76, 0.76, 0.76, 0.76, -444297, -444866),
    ("asia", 0): (1.00, 1.00, 1.00, 1.00, -22555, -22559),
    ("asia", 5): (0.76, 0.76, 0.76, 0.76, -23430, -23395),
    ("asia", 10): (0.69, 0.70, 0.70, 0.70, -24105, -24090),
    ("asia", 30): (0.58, 0.59, 0.58, 0.59, -25517, -25613),
    ("diabetes", 0): (0.80, 0.77, 0.95, 0.79, -13593, -14407),
    ("diabetes", 5): (0.79, 0.74, 0.92, 0.76, -13699, -14556),
    ("diabetes", 10): (0.75, 0.72, 0.90, 0.73, -13761, -14408),
    ("diabetes", 30): (0.61, 0.57, 0.80, 0.60, -14736, -15136),
    ("iris", 0): (0.99, 0.98, 1.00, 1.00, -1036, -1022),
    ("iris", 5): (0.97, 0.96, 0.99, 0.97, -1243, -1176),
    ("iris", 10): (0.90, 0.89, 0.95, 0.92, -1491, -1022),
    ("iris", 30): (0.98, 0.99, 1.00, 0.99, -1099, -1381),
}
Learn = Callable[[SiteData, Structure], Sequence[Network]]


def load(folder: Path, name: str, missing: int) -> tuple[SiteData, Structure]:
    """Read records and structure; states are those of the complete file."""
    file, _ = FILES[name]
    columns = read_columns(folder / file.format(f"_missing{missing:02}" if missing else ""))
    whole = read_columns(folder / file.format(""))
    columns.pop("record_id")
    states = {n: tuple(sorted(whole[n].texts)) for n in columns}
    given = json.loads((folder / name / "structure.json").read_text())
    structure = Structure.of(given["nodes"], given["edges"])
    return SiteData.from_text(name, columns, Encoding(states=states)), structure


def federated(data: SiteData, structure: Structure, sites: int, seed: int) -> list[Network]:
    """Learn over sites by EM from tables, and by the three steps."""
    with federate(split_columns(data, sites, seed)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        em = fit_em_from_tables(counter, structure, pseudo_count=PSEUDO_COUNT)
        steps, _ = fit_three_steps(counter, structure, pseudo_count=PSEUDO_COUNT, seed=seed)
    return [em.network, steps.network]


def central(data: SiteData, structure: Structure) -> Network:
    """Learn from pooled records."""
    return fit_em(data, structure, pseudo_count=PSEUDO_COUNT).network


def left_out(
    data: SiteData, structure: Structure, target: str, learn: Learn, seed: int
) -> list[float]:
    """Return each network's mean AUC over folds, which the others' records predict."""
    order = np.random.default_rng(seed).permutation(data.records)
    found = []
    for part in np.array_split(order, FOLDS):
        networks = learn(data.rows(np.setdiff1d(order, part)), structure)
        test = data.rows(part)
        found.append([public(network, test, target).overall.auc for network in networks])
    return list(np.nanmean(np.array(found, float), axis=0))


def areas(data: SiteData, structure: Structure, target: str, seed: int) -> list[float]:
    """Return the AUCs of central learning, EM from tables, the three steps, SCV and SVDG."""
    counter = PlainCounter(data, seed=seed)
    synthetic = (v(counter, structure, target, folds=FOLDS, seed=seed) for v in (scv, svdg))

    def learn(d: SiteData, s: Structure) -> list[Network]:
        return [central(d, s), *federated(d, s, 2, seed)]

    held_out = left_out(data, structure, target, learn, seed)
    return [*held_out, *(found.overall.auc or 0.0 for found in synthetic)]


def auc(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print table 2."""
    header = ["data", "missing %", "seeds", "central", "EM from tables", "three steps", "SCV",
              "SVDG", "paper: central", "paper: federated", "paper: SCV",
              "paper: SVDG"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        for (name, missing), paper in TABLE_2.items():
            if name in sets:
                some = seeds[:FEW] if name == SLOW else seeds
                data, structure = load(folder, name, missing)
                found = [areas(data, structure, FILES[name][1], seed) for seed in some]
                shown = (f"{value:.2f}" for value in paper[:4])
                yield [name, missing, len(some), *map(mean_sd, np.array(found).T), *shown]

    print_table("vertibayes_tables_2", header, rows(), **over(seeds))


def over_sites(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print table 3."""
    header = ["missing %", "sites", "EM from tables", "three steps", "SCV", "SVDG", "AIC",
              "CPU s of ten folds"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        for missing in (0, 10):
            data, structure = load(folder, "asia", missing)
            for sites in range(2, 9):
                found, start = [], process_time()
                for seed in seeds:
                    learn = partial(federated, sites=sites, seed=seed)
                    found.append(left_out(data, structure, "lung", learn, seed))
                seconds = (process_time() - start) / len(seeds)
                for seed, aucs in zip(seeds, found, strict=True):
                    with federate(split_columns(data, sites, seed)) as federation:
                        counter = SecureCounter.of(federation, order=list(data.variables))
                        for v in (scv, svdg):
                            made = v(counter, structure, "lung", folds=FOLDS, seed=seed)
                            aucs.append(made.overall.auc or 0.0)
                        score = scores(counter, structure).aic
                shown = map(mean_sd, np.array(found).T)
                yield [missing, sites, *shown, f"{score:.0f}", f"{seconds:.2f}"]

    if "asia" in sets:
        print_table("vertibayes_tables_3", header, rows(), **over(seeds))


def optimism(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print the AUCs on diabetes, and those where there is nothing to be learned."""
    header = ["Outcome", "left out", "SCV", "SVDG", "trained on the records, scored on synthetic",
              "trained on synthetic, scored on the records"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        data, structure = load(folder, "diabetes", 0)
        for how in ("as it is", "permuted"):
            found = []
            for seed in seeds:
                codes = dict(data.codes)
                if how == "permuted":
                    codes["Outcome"] = np.random.default_rng(seed).permutation(codes["Outcome"])
                found.append(of_synthetic(SiteData(data.variables, codes), structure, seed))
            yield [how, *map(mean_sd, np.array(found).T)]

    if "diabetes" in sets:
        print_table("vertibayes_tables_scv", header, rows(), **over(seeds))


def of_synthetic(data: SiteData, structure: Structure, seed: int) -> list[float]:
    """Return the AUCs left out, by SCV and SVDG, and across records and synthetic records."""
    counter, target = PlainCounter(data, seed=seed), "Outcome"
    drawn = draw_synthetic(counter, structure, seed=seed)
    found = [
        *(v(counter, structure, target, folds=FOLDS, seed=seed) for v in (scv, svdg)),
        public(central(data, structure), drawn, target),
        public(central(drawn, structure), data, target),
    ]
    held_out = left_out(data, structure, target, lambda d, s: [central(d, s)], seed)
    return [*held_out, *(each.overall.auc or 0.0 for each in found)]


def more_records(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print the three steps' AUC on diabetes, with more synthetic records and as large a prior."""
    header = ["missing %", "seeds", "synthetic records / records", "three steps", "EM from tables"]

    def rows() -> Iterable[list[object]]:
        for missing in (0, 10):
            data, structure = load(folder, "diabetes", missing)
            for times in (1, 30):
                some = seeds[:FEW]
                found = [
                    left_out(data, structure, "Outcome", partial(enlarged, times, seed), seed)
                    for seed in some
                ]
                yield [missing, len(some), times, *map(mean_sd, np.array(found).T)]

    if "diabetes" in sets:
        print_table("vertibayes_tables_records", header, rows(), **over(seeds))


def enlarged(times: int, seed: int, data: SiteData, structure: Structure) -> list[Network]:
    """Learn by the three steps with so many times the records, and by EM from tables."""
    counter, records, prior = PlainCounter(data), times * data.records, times * PSEUDO_COUNT
    steps, _ = fit_three_steps(counter, structure, pseudo_count=prior, records=records, seed=seed)
    return [steps.network, fit_em_from_tables(counter, structure).network]


def scoring(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print the AUC of central learning, where records without a class count as other classes."""
    header = ["data", "missing %", "seeds", "class known", "all records",
              "all records, modes filled in", "paper: central"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        for (name, missing), paper in TABLE_2.items():
            if name in sets and missing:
                data, structure = load(folder, name, missing)
                target, some = FILES[name][1], seeds[:FEW]
                found = [by_scoring(data, structure, target, seed) for seed in some]
                shown = map(mean_sd, np.array(found).T)
                yield [name, missing, len(some), *shown, f"{paper[0]:.2f}"]

    print_table("vertibayes_tables_scoring", header, rows(), **over(seeds))


def by_scoring(data: SiteData, structure: Structure, target: str, seed: int) -> NDArray[np.float64]:
    """Return the mean AUC of folds: of records with a class, of all, and of all as WEKA learns."""
    order = np.random.default_rng(seed).permutation(data.records)
    filled, states = with_modes(data), data.variables[target].states
    found = []
    for part in np.array_split(order, FOLDS):
        rest, classes = np.setdiff1d(order, part), data.codes[target][part]
        labelled = rest[data.codes[target][rest] < len(states)]
        network, modes = (
            central(data.rows(rest), structure),
            central(filled.rows(labelled), structure),
        )
        given = given_class(network, data.rows(part), target)
        known = area(classes, given, states).auc
        by_modes = given_class(modes, filled.rows(part), target)
        found.append([known, *(of_all(classes, each, states) for each in (given, by_modes))])
    return np.nanmean(np.array(found, float), axis=0)


def given_class(network: Network, data: SiteData, target: str) -> NDArray[np.float64]:
    """Return the distribution of the class for each record."""
    states = data.variables[target].states
    return np.round(predicted(network, data, target).probabilities[:, : len(states)], 12)


def of_all(classes: NDArray[Any], given: NDArray[np.float64], states: tuple[str, ...]) -> float:
    """Return the AUC of all records, where one without a class counts as one of another class."""
    every = area(classes, np.column_stack([given, 0 * given[:, :1]]), [*states, "missing"]).by_class
    sizes = {state: int((classes == code).sum()) for code, state in enumerate(states)}
    kept = [state for state in states if state in every]
    return float(np.average([every[s] for s in kept], weights=[sizes[s] for s in kept]))


def aic(folder: Path, sets: Sequence[str], seeds: range) -> None:
    """Print AIC of maximum likelihood, and of networks that know less."""
    header = ["data", "missing %", "parameters", "AIC", "over 2 sites", "missing as a state",
              "modes filled in", "without edges", "all states equally likely", "paper: central",
              "paper: federated"]  # fmt: skip

    def rows() -> Iterable[list[object]]:
        for (name, missing), (*_, central_aic, federated_aic) in TABLE_2.items():
            if name not in sets:
                continue
            data, structure = load(folder, name, missing)
            with federate(split_columns(data, 2, seeds[0])) as federation:
                counter = SecureCounter.of(federation, order=list(data.variables))
                over_two = scores(counter, structure).aic
            counter = PlainCounter(data)
            pooled, empty = scores(counter, structure), Structure.of(structure.nodes, ())
            states = (len(variable.states) for variable in data.variables.values())
            uniform = -data.records * sum(map(np.log, states))
            as_state = scores(counter, structure, missing=True).aic
            filled = scores(PlainCounter(with_modes(data)), structure).aic
            found = [pooled.aic, over_two, as_state, filled, scores(counter, empty).aic, uniform,
                     central_aic, federated_aic]  # fmt: skip
            yield [name, missing, pooled.free_parameters, *(f"{value:.0f}" for value in found)]

    print_table("vertibayes_tables_aic", header, rows())


def print_table(
    name: str, header: Sequence[str], rows: Iterable[Sequence[object]], **said: str
) -> None:
    """Print each row as it is found, and keep the table; see `runs.write`."""
    print(f"\n{name}\n\n{markdown(header, [])}", flush=True)
    found = []
    for row in rows:
        found.append(row)
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    table(name, header, found, **said)


def over(seeds: range) -> dict[str, str]:
    """Return what a result says of its seeds and spread."""
    return {"seeds": f"{seeds[0]} to {seeds[-1]}", "spread": "SD over seeds"}


PARTS = {
    "auc": auc,
    "sites": over_sites,
    "optimism": optimism,
    "records": more_records,
    "scoring": scoring,
    "aic": aic,
}


def main(
    about: str | None,
    parts: Mapping[str, Callable[[Path, Sequence[str], range], None]],
    sets: Iterable[str],
    seeds: int,
    said: str,
) -> None:
    """Print the tables that are asked for, over some seeds by default."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets))
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=seeds, help=said)
    given = arguments(parser, data=True)
    if given.seeds < 2:
        parser.error(f"--seeds must be at least 2 for a standard deviation, got {given.seeds}")
    chosen = range(given.seed, given.seed + given.seeds)
    print(f"seeds {chosen[0]} to {chosen[-1]}")
    for part in given.parts:
        parts[part](given.data, given.sets, chosen)


if __name__ == "__main__":
    main(__doc__, PARTS, FILES, 10, f"how many; {FEW} for {SLOW}")
