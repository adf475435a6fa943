"""Tables 2 and 3 of the VertiBayes paper, its figures beside ours.

    python benchmarks/vertibayes_tables.py --data FOLDER

Given structures, two sites (Table 3: 2 to 8), ten folds, half a pseudo-count a cell. "Central"
is exact EM on the pooled records of nine folds, "federated" EM from the opened tables; both are
scored on the records of the tenth whose target is known (the paper scores all). AIC is that of the
structure over available cases, from opened tables, and so the same for both. A last table shows
what SCV says of diabetes: with its Outcome permuted there is nothing to be learned.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from time import perf_counter

from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.dag import Structure
from vertibayes.network import Network
from vertibayes.parameters.cpt import scores
from vertibayes.parameters.em import fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import draw_synthetic
from vertibayes.settings import PSEUDO_COUNT
from vertibayes.splitting import split_columns
from vertibayes.validation.methods import public, scv, svdg
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns

FOLDS = 10
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


def rows_of(data: SiteData, places: np.ndarray) -> SiteData:
    """Return some records."""
    return SiteData(data.variables, {n: column[places] for n, column in data.codes.items()})


def federated(data: SiteData, structure: Structure, sites: int) -> Network:
    """Learn over sites, from opened tables."""
    with federate(split_columns(data, sites)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        return fit_em_from_tables(counter, structure, pseudo_count=PSEUDO_COUNT).network


def central(data: SiteData, structure: Structure) -> Network:
    """Learn from pooled records."""
    return fit_em(data, structure, pseudo_count=PSEUDO_COUNT).network


def left_out(data: SiteData, structure: Structure, target: str, learn: object) -> float:
    """Return the mean AUC over folds, each predicted by a network of the others."""
    assert callable(learn)
    order = np.random.default_rng(0).permutation(data.records)
    found = []
    for part in np.array_split(order, FOLDS):
        network = learn(rows_of(data, np.setdiff1d(order, part)), structure)
        found.append(public(network, rows_of(data, part), target).overall.auc)
    return float(np.mean([area for area in found if area is not None]))


def synthetic(data: SiteData, structure: Structure, target: str, sites: int) -> list[float]:
    """Return SCV's and SVDG's AUC, and the AIC, over sites."""
    with federate(split_columns(data, sites)) as federation:
        counter = SecureCounter.of(federation, order=list(data.variables))
        areas = [v(counter, structure, target, folds=FOLDS).overall.auc for v in (scv, svdg)]
        return [*(area or 0.0 for area in areas), scores(counter, structure).aic]


def table_2(folder: Path) -> str:
    """Return Table 2, the paper's figures behind ours."""
    rows = []
    for (name, missing), paper in TABLE_2.items():
        data, structure = load(folder, name, missing)
        target = FILES[name][1]
        areas = [
            left_out(data, structure, target, central),
            left_out(data, structure, target, lambda d, s: federated(d, s, 2)),
        ]
        *more, aic = synthetic(data, structure, target, 2)
        pooled = scores(PlainCounter(data), structure).aic
        ours = [f"{area:.3f} / {p:.2f}" for area, p in zip([*areas, *more], paper, strict=False)]
        rows.append([name, missing, *ours, f"{aic:.0f} / {paper[5]}", f"{aic / pooled - 1:.1%}"])
    header = ["data", "missing %", "central", "federated", "SCV", "SVDG", "AIC federated",
              "AIC against pooled"]  # fmt: skip
    return table("vertibayes_tables_2", header, rows)


def table_3(folder: Path) -> str:
    """Return Table 3: Asia over 2 to 8 sites."""
    rows = []
    for missing in (0, 10):
        data, structure = load(folder, "asia", missing)
        for sites in range(2, 9):
            start = perf_counter()
            area = left_out(data, structure, "lung", lambda d, s, k=sites: federated(d, s, k))
            seconds = (perf_counter() - start) / FOLDS
            *more, aic = synthetic(data, structure, "lung", sites)
            shown = [f"{value:.3f}" for value in (area, *more)]
            rows.append([missing, sites, *shown, f"{aic:.0f}", f"{seconds * 1000:.0f}"])
    header = ["missing %", "sites", "public", "SCV", "SVDG", "AIC", "ms per fit"]
    return table("vertibayes_tables_3", header, rows)


def optimism(folder: Path) -> str:
    """Return the AUCs on diabetes, and those where there is nothing to be learned."""
    data, structure = load(folder, "diabetes", 0)
    target = FILES["diabetes"][1]
    by_chance = dict(data.codes)
    by_chance[target] = np.random.default_rng(0).permutation(by_chance[target])
    rows = []
    for how, d in (("as it is", data), ("permuted", SiteData(data.variables, by_chance))):
        counter = PlainCounter(d)
        synthetic = draw_synthetic(counter, structure)
        network, of_synthetic = central(d, structure), central(synthetic, structure)
        areas = [
            left_out(d, structure, target, central),
            *(v(counter, structure, target, folds=FOLDS).overall.auc for v in (scv, svdg)),
            public(network, synthetic, target).overall.auc,
            public(of_synthetic, d, target).overall.auc,
        ]
        rows.append([how, *(f"{area:.3f}" for area in areas if area is not None)])
    header = ["Outcome", "left out", "SCV", "SVDG", "trained on the records, scored on synthetic",
              "trained on synthetic, scored on the records"]  # fmt: skip
    return table("vertibayes_tables_scv", header, rows)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VERTIBAYES_DATA"))
    given = parser.parse_args()
    if not given.data:
        parser.error("--data FOLDER is wanted")
    print("Table 2, ours / the paper's\n")
    print(table_2(Path(given.data)))
    print("\nTable 3\n")
    print(table_3(Path(given.data)))
    print("\nSCV's optimism, diabetes\n")
    print(optimism(Path(given.data)))


if __name__ == "__main__":
    main()
