"""How far from the truth each way with missing cells ends: KL(true || model), in nats.

    python benchmarks/missing.py --data FOLDER

10,000 records of Asia and ALARM, true structure, one pseudo-count in every cell of every method.
"At random" loses cells of all variables but the file's first, three times as many where that has
its most frequent state as elsewhere. Wider tables may open 500 cells more on Asia, 30,000 on ALARM;
the second table has the distance for other numbers, and the third what the first steps cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np

from vertibayes.counting import PlainCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import divergence
from vertibayes.network import Network, read_model
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.parameters.em import EmFit, fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.parameters.three_steps import fit_three_steps
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.variables import Variable

PRIOR = 1.0
WIDER_CELLS = {"asia": 500, "alarm": 30_000}
SPENDING = {"asia": (0, 100, 500, 5_000), "alarm": (0, 1_000, 3_000, 10_000, 30_000, 55_000)}
STEPS = 8


def with_modes(data: SiteData) -> SiteData:
    """Fill each missing cell with its column's mode, as the published code does."""
    codes = {}
    for name, variable in data.variables.items():
        column = data.codes[name].copy()
        counts = np.bincount(column, minlength=len(variable.states) + 1)[:-1]
        column[column == len(variable.states)] = counts.argmax()
        codes[name] = column
    return SiteData(data.variables, codes)


def from_tables(data: SiteData, structure: Structure, cells: int) -> EmFit:
    """Fit by EM from tables, some of which are wider."""
    counter = PlainCounter(data)
    return fit_em_from_tables(counter, structure, pseudo_count=PRIOR, wider_cells=cells)


METHODS: dict[str, Callable[[SiteData, Structure, int], Network]] = {
    "mode imputation": lambda d, s, _: fit_cpts(PlainCounter(with_modes(d)), s, pseudo_count=PRIOR),
    "available cases": lambda d, s, _: fit_cpts(PlainCounter(d), s, pseudo_count=PRIOR),
    "three steps": lambda d, s, _: (
        fit_three_steps(PlainCounter(d), s, pseudo_count=PRIOR)[0].network
    ),
    "EM from tables": lambda d, s, _: from_tables(d, s, 0).network,
    "EM from wider tables": lambda d, s, cells: from_tables(d, s, cells).network,
    "exact EM, pooled": lambda d, s, _: fit_em(d, s, pseudo_count=PRIOR).network,
}


def completely_at_random(folder: Path, name: str, share: int, truth: Network) -> SiteData:
    """Read the records of which a share of the cells is lost."""
    file = f"{name}_missing{share}.csv.gz" if share else f"{name}.csv.gz"
    columns = read_columns(folder / name / file)
    columns.pop("record_id")
    states = {n: v.states for n, v in truth.variables.items()}
    return SiteData.from_text(name, columns, Encoding(states=states))


def at_random(folder: Path, name: str, share: int, truth: Network) -> SiteData:
    """Lose cells depending on a variable that is always known."""
    whole = completely_at_random(folder, name, 0, truth)
    generator = np.random.default_rng(seed_of(share))
    first, *others = whole.variables
    often = whole.codes[first] == np.bincount(whole.codes[first]).argmax()
    chance = np.where(often, 1.0, 1 / 3)
    chance *= share / 100 / chance.mean()
    variables, codes = {first: whole.variables[first]}, {first: whole.codes[first]}
    for other in others:
        states = whole.variables[other].states
        lost = generator.random(whole.records) < np.minimum(chance, 1)
        codes[other] = np.where(lost, len(states), whole.codes[other]).astype(np.uint8)
        variables[other] = Variable(other, states, missing=True)
    return SiteData(variables, codes)


def spending(folder: Path) -> tuple[list[list[object]], list[list[object]]]:
    """Return the distance for each number of cells opened, and what the first steps cost."""
    rows: list[list[object]] = []
    steps: list[list[object]] = []
    for name, allowed in SPENDING.items():
        truth = read_model(folder / name / f"{name}.bif")
        data = completely_at_random(folder, name, 30, truth)
        pooled = divergence(truth, fit_em(data, truth.structure, pseudo_count=PRIOR).network)
        own = PlainCounter(data).tables(truth.structure.families, missing=True)
        for cells in allowed:
            fit = from_tables(data, truth.structure, cells)
            opened = sum(t.size for t in own) + sum(step.cells for step in fit.widenings)
            found = divergence(truth, fit.network)
            rows.append([name, len(fit.widenings), opened, f"{found:.4f}", f"{found / pooled:.2f}"])
        steps += [[name, *step] for step in fit.widenings[:STEPS]]
    return rows, steps


def main() -> None:
    """Run all cases and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    given = arguments(parser, data=True)
    folder = given.data
    rows = Rows()
    for name, wider in WIDER_CELLS.items():
        truth = read_model(folder / name / f"{name}.bif")
        for how, lose in (("completely at random", completely_at_random), ("at random", at_random)):
            for share in (10, 30):
                data = lose(folder, name, share, truth)
                found = [
                    divergence(truth, fit(data, truth.structure, wider)) for fit in METHODS.values()
                ]
                told = [f"{found[-3] / found[-1]:.2f}", f"{found[-2] / found[-1]:.2f}"]
                rows.append([f"{name}, {share} %, {how}", *(f"{kl:.4f}" for kl in found), *told])
    header = ["missing values", *METHODS, "tables / exact", "wider / exact"]
    print(table("missing", header, rows))
    spent, steps = spending(folder)
    print("\n30 % missing completely at random, by the cells that are revealed\n")
    header = ["network", "steps", "cells revealed", "KL", "/ exact EM"]
    print(table("missing_cells", header, spent))
    print("\nThe first steps\n")
    print(table("missing_steps", ["network", "family of", "wider by", "cells more"], steps))


if __name__ == "__main__":
    main()
