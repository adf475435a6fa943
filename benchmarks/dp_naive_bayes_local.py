"""Naive Bayes under local differential privacy: figures 2 to 4 of Yilmaz et al. (2019).

    python benchmarks/dp_naive_bayes_local.py --data FOLDER [--fetched FOLDER] [--repeats 100]
                                              [--figures 2,fetched,3] [--seed 0]

Prints Markdown tables and writes docs/figures/local_nb_*.svg. Each repetition splits the records
80/20 at random; the people of the larger part report, and the accuracy is that on the smaller part.
As in the paper, negative counts become 1, nothing is added to counts, and theta is 0.25. Reports
are drawn by the laws in `tallies_of_reports.py`.

The figure "fetched" is figure 2 of Chess (King-Rook against King-Pawn), and of Congressional Voting
Records, which the paper does not have; `fetched.py` says how to get both for --fetched.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import cache
from pathlib import Path

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
import pandas as pd
from curves import errors, legend, mean_sd, save, style
from fetched import chess, voting
from matplotlib.figure import Figure
from tallies_of_reports import People, choose, collect

from tests.model_scorer import Scorer
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.local import learn_reports
from vertibayes_protocols.local_reports import Projection, ReportPlan
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

EPS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
FEWER_EPS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # of figure 2, whose data are large
SHOWN = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)  # in tables
DISCRETE = {  # file, class
    "Car": ("car.csv", "class"),
    "Mushroom": ("mushroom.csv.gz", "class"),
    "Connect-4": ("connect-4.csv.gz", "class"),
}
FETCHED = {"Chess": (chess, "class"), "Voting": (voting, "Class")}
NUMBERS = {  # file, class, bins, components of PCA in figure 3
    "Australian": ("australian.csv", "class", 2, 1),
    "Diabetes": ("pima-diabetes.csv.gz", "outcome", 4, 6),
}
READINGS = {
    "one": "one report of eps",
    "all_at_full_eps": "all reports, eps each",
}
ORACLES = {
    "DE": ("de", None),
    "SUE": ("sue", None),
    "OUE": ("oue", None),
    "SHE": ("she", None),
    "THE .25": ("the", 0.25),
    "THE best": ("the", None),
    "auto": ("auto", None),
}
Results = dict  # of a curve and an eps to accuracies; eps is None without privacy


def read(path: Path, target: str, *, numbers: bool) -> tuple[Schema, LocalData]:
    """Read a file."""
    frame = pd.read_csv(path) if numbers else pd.read_csv(path, dtype=str, keep_default_na=False)
    return declare(frame, target, numbers=numbers)


def declare(frame: pd.DataFrame, target: str, *, numbers: bool) -> tuple[Schema, LocalData]:
    """Declare states and bounds from all records, and encode them."""
    variables, codes, numerics, values = {}, {}, {}, {}
    for name in frame.columns:
        if numbers and name != target:
            values[name] = frame[name].to_numpy(float)
            numerics[name] = Numeric(name, float(values[name].min()), float(values[name].max()))
        else:
            column = frame[name].astype(str)
            states = tuple(sorted(column.unique()))
            variables[name] = Variable(name, states)
            codes[name] = column.map({s: i for i, s in enumerate(states)}).to_numpy()
    features = {n: numerics.get(n) or variables[n] for n in frame.columns if n != target}
    data = LocalData(variables, codes, numerics, values)
    return Schema(variables[target], features), data


def split(data: LocalData, generator: np.random.Generator) -> tuple[np.ndarray, LocalData]:
    """Return the places of those who report, and the test records."""
    order = generator.permutation(data.records)
    most = int(0.8 * data.records)
    return order[:most], data.rows(order[most:])


def paper(aggregator) -> NaiveBayes:
    """Learn as the paper does, except that variances below their standard error are raised."""
    return learn_reports(aggregator, alpha=0.0, negative="one", floor=0.01)


def discrete(schema: Schema, data: LocalData, repeats: int, seed: int) -> Results:
    """Return accuracies of figure 2, by reading and oracle."""
    generator, results = np.random.default_rng(2 + seed), defaultdict(list)

    @cache
    def plan_of(eps: float, reports: str, oracle: str) -> ReportPlan:
        name, theta = ORACLES[oracle]
        return ReportPlan(schema=schema, eps=eps, reports=reports, oracle=name, theta=theta)

    everybody = People(plan_of(1.0, "one", "DE"), data)
    for _ in range(repeats):
        places, test = split(data, generator)
        for alpha in (0.0, 1.0):
            exact = NaiveBayes(schema, alpha=alpha).fit(data.rows(places))
            results[("none", alpha), None].append(exact.score(test))
        people = everybody.part(places)
        who, models = choose(len(schema.features) + 1, people, generator), {}
        for reports in READINGS:
            for oracle in ORACLES if reports == "one" else list(ORACLES)[:-1]:
                for eps in FEWER_EPS:
                    plan = plan_of(eps, reports, oracle)
                    chosen = who if reports == "one" else None
                    model = paper(collect(plan, people, generator, chosen))
                    models[(reports, oracle), eps] = model
        accuracies = Scorer(schema, test).accuracies([*models.values()])
        for key, accuracy in zip(models, accuracies, strict=True):
            results[key].append(accuracy)
    return results


def projections(train: LocalData, public: LocalData, target: str, components: int) -> dict:
    """Return what people may apply first, by name; None is the original data."""
    fitted = {"fitted_on": "private", "bounds": "records"}
    return {
        "original": None,
        "PCA": Projection.pca(train, components, **fitted),
        "DCA": Projection.dca(train, target, **fitted),
        "DCA, public tenth": Projection.dca(
            public, target, fitted_on="public", bounds="records"
        ),
    }  # fmt: skip


def numbers(
    schema: Schema, data: LocalData, bins: int, components: int, repeats: int, seed: int
) -> tuple[Results, Results]:
    """Return accuracies of figure 3, by reading, oracle and projection, and of figure 4."""
    generator = np.random.default_rng(3 + seed)
    binned, gaussian = defaultdict(list), defaultdict(list)
    for _ in range(repeats):
        places, test = split(data, generator)
        public, train = np.split(places, [len(places) // 10])
        for kind, results, most in ((bins, binned, components), (None, gaussian, 1)):
            given = data.rows(places), data.rows(public), schema.target.name, most
            for name, projection in projections(*given).items():
                own = data.rows(train if name == "DCA, public tenth" else places)
                ways = discretized_ways() if kind else gaussian_ways()
                one_projection(schema, (own, test), (name, projection, kind), ways, results,
                               generator)  # fmt: skip
    return binned, gaussian


def discretized_ways() -> list[tuple[tuple, dict]]:
    readings = ("one", "all_at_full_eps")
    return [
        ((r, o), {"reports": r, "oracle": ORACLES[o][0]}) for r in readings for o in ("DE", "OUE")
    ]


def gaussian_ways() -> list[tuple[tuple, dict]]:
    return [(("one", f"approach {a}"), {"approach": a, "oracle": "de"}) for a in (1, 2, 3)]


def one_projection(schema, records, how, ways, results, generator) -> None:
    """Add the accuracies of one projection in one split: exact, and by all ways to report."""
    (train, test), (name, projection, bins) = records, how
    base = ReportPlan(schema=schema, eps=1.0, bins=bins, projection=projection)
    prepared = base.prepare(test)
    exact = NaiveBayes(base.model_schema).fit(base.prepare(train))
    results[("none", name), None].append(exact.score(prepared))
    for way, settings in ways:
        people = None
        for eps in EPS:
            plan = ReportPlan(
                schema=schema, eps=eps, bins=bins, projection=projection, **settings
            )  # fmt: skip
            people = people or People(plan, train)
            who = choose(len(plan.questions), people, generator)
            chosen = who if plan.reports == "one" else None
            model = paper(collect(plan, people, generator, chosen))
            results[(*way, name), eps].append(model.score(prepared))


def rows_of(data: str, results: Results) -> list[list[object]]:
    """Return the rows of a table: one per curve."""
    curves = dict.fromkeys(curve for curve, eps in results if eps is not None)
    return [
        [data, READINGS[c[0]], *c[1:], *(mean_sd(results[c, eps]) for eps in SHOWN)] for c in curves
    ]


def exact_lines(data: str, results: Results, majority: float) -> str:
    """Say what the accuracies are without privacy."""
    exact = {curve: values for (curve, eps), values in results.items() if eps is None}
    named = ", ".join(f"{c[1]}: {mean_sd(v)}" for c, v in exact.items())
    return f"{data}: majority class {majority:.3f}; without privacy, {named}"


def majority_of(schema: Schema, data: LocalData) -> float:
    return float(np.bincount(data.codes[schema.target.name]).max() / data.records)


def draw(name: str, title: str, grid: list[list[tuple]], size: tuple[float, float]) -> None:
    """Draw panels: (title, results, curves by label, line without privacy, majority class)."""
    with style(9):
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(grid), len(grid[0]), sharex=True, sharey="col", squeeze=False)
        figure.suptitle(title)
        for axes, panel in zip(panels.flat, [p for row in grid for p in row], strict=True):
            draw_panel(axes, *panel)
        for axes in panels[-1]:
            axes.set_xlabel("eps")
        for axes in panels[:, 0]:
            axes.set_ylabel("accuracy, mean ± sd")
        legend(figure, panels[0, 0], 9)
        save(figure, f"{name}.svg")


def draw_panel(axes, title, results, curves, exact, majority) -> None:
    axes.set_title(title, fontsize=9)
    for place, (label, curve) in enumerate(curves.items()):
        drawn = [eps for eps in EPS if (curve, eps) in results]
        values = np.array([results[curve, eps] for eps in drawn])
        aside = 0.012 * (place - len(curves) / 2)
        errors(axes, np.array(drawn) + aside, values, label, f"C{place}")
        if exact.get(label):
            axes.axhline(np.mean(results[exact[label], None]), color=f"C{place}", linestyle=":")
    if "" in exact:
        axes.axhline(np.mean(results[exact[""], None]), color="black", linestyle=":",
                     label="without privacy")  # fmt: skip
    axes.axhline(majority, color="0.6", linestyle="--", linewidth=0.9, label="majority class")


def figure_2(sets: dict, repeats: int, seed: int, drawing: str) -> tuple[list, list]:
    """Make figure 2, discrete features; return its table."""
    rows, notes, panels = [], [], {}
    for data, (schema, records) in sets.items():
        results, majority = discrete(schema, records, repeats, seed), majority_of(schema, records)
        rows += rows_of(data, results)
        notes.append(exact_lines(f"{data} (alpha 0 and 1)", results, majority))
        panels[data] = results, majority, len(schema.features)
        print(notes[-1], flush=True)
    print(f"\nFigure 2, {repeats} repetitions\n")
    print("\n".join(f"- {note}" for note in notes) + "\n")
    grid = [
        [
            (f"{data}, {READINGS[reading]}" + total(reading, features), results,
             {o: (reading, o) for o in ORACLES if ((reading, o), 1.0) in results},
             {"": ("none", 1.0)}, majority)
            for data, (results, majority, features) in panels.items()
        ]
        for reading in ("one", "all_at_full_eps")
    ]  # fmt: skip
    draw(drawing, "Discrete features (figure 2)", grid, (4.2 * len(panels), 7))
    return ["data", "reading", "oracle", *(f"eps {e}" for e in SHOWN)], rows


def total(reading: str, features: int) -> str:
    """Name the eps that a person really spends."""
    return f": {features + 1} eps in all" if reading == "all_at_full_eps" else ""


def figures_3_and_4(folder: Path, repeats: int, seed: int) -> None:
    """Make figures 3 and 4: numbers in bins, and Gaussian."""
    found = {}
    for data, (file, target, bins, components) in NUMBERS.items():
        schema, records = read(folder / "uci" / file, target, numbers=True)
        made = numbers(schema, records, bins, components, repeats, seed)
        found[data] = *made, majority_of(schema, records)
        print(exact_lines(data, made[1], found[data][2]), flush=True)
    names = ("original", "PCA", "DCA", "DCA, public tenth")
    for place, (title, header) in enumerate((("3, bins", "oracle"), ("4, Gaussian", "approach"))):
        print(f"\nFigure {title}, {repeats} repetitions\n")
        for data, made in found.items():
            print("- " + exact_lines(data, made[place], made[2]))
        rows = [row for data, made in found.items() for row in rows_of(data, made[place])]
        columns = ["data", "reading", header, "projection", *(f"eps {e}" for e in SHOWN)]
        print(
            "\n"
            + table(
                f"dp_naive_bayes_local_{title[0]}",
                columns,
                rows,
                spread=f"SD over {repeats} splits",
            )
        )

    def panel(data, place, reading, way):
        curves = {name: (reading, way, name) for name in names}
        exact = {name: ("none", name) for name in names}
        title = f"{data}, {way}: {READINGS[reading]}"
        return title, found[data][place], curves, exact, found[data][2]

    grid = [
        [panel(data, 0, reading, oracle) for data in NUMBERS for oracle in ("DE", "OUE")]
        for reading in ("one", "all_at_full_eps")
    ]
    dotted = "dotted: without privacy"
    draw("local_nb_bins", f"Numbers in bins (figure 3); {dotted}", grid, (15, 7))
    grid = [[panel(data, 1, "one", f"approach {a}") for a in (1, 2, 3)] for data in NUMBERS]
    draw("local_nb_gaussian", f"Gaussian naive Bayes (figure 4); {dotted}", grid, (12.6, 7))


def main() -> None:
    """Make the figures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fetched", type=Path)
    parser.add_argument("--figures", default="2,3", help="2, fetched, 3 (figures 3 and 4)")
    parser.add_argument("--repeats", type=int, default=100)
    given = arguments(parser, data=True)
    options, spread = (given.repeats, given.seed), f"SD over {given.repeats} splits"
    if "2" in given.figures.split(","):
        uci = given.data / "uci"
        sets = {data: read(uci / file, target, numbers=False)
                for data, (file, target) in DISCRETE.items()}  # fmt: skip
        drawn = figure_2(sets, *options, "local_nb_discrete")
        print(table("dp_naive_bayes_local_2", *drawn, spread=spread))
    if "fetched" in given.figures.split(","):
        sets = {data: declare(load(given.fetched), target, numbers=False)
                for data, (load, target) in FETCHED.items()}  # fmt: skip
        drawn = figure_2(sets, *options, "local_nb_fetched")
        print(table("dp_naive_bayes_local_fetched", *drawn, spread=spread))
    if "3" in given.figures.split(","):
        figures_3_and_4(given.data, given.repeats, given.seed)


if __name__ == "__main__":
    main()
