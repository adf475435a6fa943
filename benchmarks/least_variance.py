"""Rules for the smallest variance of a number, on the data of Giaretta et al. and Yilmaz et al.

    python benchmarks/least_variance.py --data FOLDER [--repeats 30] [--seed 0]

The same sums, with and without noise, become models by each rule: a variance is raised to a share
of the square of half the column's declared range, or the share is added to it; or a share of the
column's own largest variance is added; or of the largest variance of all columns, which
scikit-learn does with 1e-9. Further tables, of scikit-learn and UCI, have no noise, five folds, and
bounds of the data or a hundred times as wide.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

import dp_naive_bayes_local as yilmaz
import numpy as np
import pandas as pd
from local_noise import load
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold
from tallies_of_reports import People, choose, collect

from vertibayes.naive_bayes.base import FLOOR, NaiveBayes
from vertibayes.sklearn import FederatedNB
from vertibayes_protocols.local_reports import ReportPlan

NOISES = ((1, 0.1), (1, 1.0), (1000, 0.1), (1000, 1.0), (1000, 10**0.5), (1000, 10.0))
EPS = (0.5, 1.0, 2.0, 5.0)
FILES = {"australian.csv": "class", "pima-diabetes.csv.gz": "outcome", "letter.csv.gz": None}
SETS = ("iris", "wine", "breast_cancer", "digits")
TINY = np.finfo(float).tiny
SHARES = (1e-6, 1e-4, 1e-3)
RULES = {  # share, of what, whether it is added
    "none": (0.0, "half", True),
    "1e-9 of all added": (1e-9, "all", True),
    **{f"raised to {s:g}": (s, "half", False) for s in SHARES},
    **{f"{s:g} added": (s, "half", True) for s in SHARES},
    **{f"{s:g} of own added": (s, "own", True) for s in (1e-3, 1e-2)},
}
PLACE = [*RULES].index("raised to 1e-06")
Scores = dict  # of a column of the table to one list of accuracies by rule for each model


def by_rule(model: NaiveBayes, score: Callable[[NaiveBayes], float]) -> list[float]:
    """Return the accuracies of a model under each rule."""
    found, kept = [], dict(model.var_)
    largest = max(v.max() for v in kept.values())
    for share, of, is_added in RULES.values():
        for name, variance in kept.items():
            numeric = model.schema.numerics[name]
            half = numeric.high - numeric.middle
            least = TINY + share * {"half": half**2, "all": largest, "own": variance.max()}[of]
            model.var_[name] = variance + least if is_added else np.maximum(variance, least)
        found.append(float(score(model)))
    model.var_ = kept
    return found


def giaretta(folder: Path, repeats: int, generator, scores: Scores) -> None:
    """Add the accuracies of federated models."""
    for data in load(folder, None):
        for mode, way in data.ways.items() if data.has_numbers else ():

            def add(column: str, model: NaiveBayes, way=way) -> None:
                scores[column].append(by_rule(model, lambda m: way.scorer.accuracies([m])[0]))

            add(f"{data.name}, {mode}, no noise", way.model(way.sums))
            for nodes, eps in NOISES:
                for _ in range(repeats):
                    sums = way.sums + way.noise_of_total(nodes, eps, generator)
                    model = way.model(sums, way.errors(np.full(nodes, eps)))
                    if (data.name, mode) == ("Adult", "measured"):
                        rises = "a" if is_rescued(model) else "no"
                        add(f"Adult, measured: 1e-9 of all raises {rises} floor", model)
                    add(f"{data.name}, {mode}", model)


def is_rescued(model: NaiveBayes) -> bool:
    """Return whether 1e-9 of the largest variance raises a variance at the floor tenfold."""
    floors = {n: FLOOR * (x.high - x.middle) ** 2 for n, x in model.schema.numerics.items()}
    most = 1e-9 * max(v.max() for v in model.var_.values())
    return any(v.min() <= 1.01 * floors[n] < most / 9 for n, v in model.var_.items())


def of_reports(folder: Path, repeats: int, generator, scores: Scores) -> None:
    """Add the accuracies of Gaussian models of people's reports."""
    for data, (file, target, _, _) in yilmaz.NUMBERS.items():
        schema, records = yilmaz.read(folder / "uci" / file, target, numbers=True)
        for _ in range(repeats):
            places, test = yilmaz.split(records, generator)
            public, _ = np.split(places, [len(places) // 10])
            made = yilmaz.projections(records.rows(places), records.rows(public), target, 1)
            for kind, projection in made.items():
                way = schema, records.rows(places), test, projection
                for (approach, eps), model, prepared in reported(*way, generator):
                    found = by_rule(model, lambda m, p=prepared: m.score(p))
                    group = "original" if kind == "original" else "projected"
                    scores[f"{data}, {group}"].append(found)
                    if (group, approach, eps) == ("original", 3, 5.0):
                        scores[f"{data}, approach 3, eps 5"].append(found)


def reported(schema, train, test, projection, generator) -> Iterator[tuple]:
    """Yield approach and eps, the model of reports, and the test records for it."""
    for approach in (1, 2, 3):
        people = None
        for eps in EPS:
            plan = ReportPlan(schema=schema, eps=eps, bins=None, projection=projection,
                              reports="one", approach=approach, oracle="de")  # fmt: skip
            people = people or People(plan, train)
            who = choose(len(plan.questions), people, generator)
            model = yilmaz.paper(collect(plan, people, generator, who))
            yield (approach, eps), model, plan.prepare(test)


def without_noise(folder: Path, seed: int, scores: Scores) -> None:
    """Add the accuracies of exact models of further tables, by the width of the bounds."""
    sets = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in SETS}
    for file, target in FILES.items():
        frame = pd.read_csv(folder / "uci" / file)
        target = target or next(c for c in frame if not pd.api.types.is_numeric_dtype(frame[c]))
        sets[file] = frame.drop(columns=target).to_numpy(float), frame[target].to_numpy(str)
    for x, y in sets.values():
        middle, half = (x.max(0) + x.min(0)) / 2, np.maximum(np.ptp(x, axis=0) / 2, 0.5)
        for width in (1, 100):
            bounds = {f"x{i}": (m - width * h, m + width * h)
                      for i, (m, h) in enumerate(zip(middle, half, strict=True))}  # fmt: skip
            for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(x, y):
                fitted = FederatedNB(None, bounds=bounds, floor=0.0).fit(x[train], y[train])
                tested = x[test], y[test]
                found = by_rule(fitted.model_, lambda _, f=fitted, t=tested: f.score(*t))
                scores[f"7 further tables, bounds x {width}"].append(found)


def main() -> None:
    """Run and show all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=30)
    given = arguments(parser, data=True)
    scores: Scores = defaultdict(list)
    with patch("vertibayes.naive_bayes.base.LEAST_VARIANCE", 0.0):
        without_noise(given.data, given.seed, scores)
        giaretta(given.data, given.repeats, np.random.default_rng(given.seed), scores)
        of_reports(given.data, given.repeats, np.random.default_rng(given.seed), scores)
    print(f"seed {given.seed}, {given.repeats} repetitions of noise\n")
    rows = []
    for name, found in ((name, np.array(found)) for name, found in scores.items()):
        gain = found[:, PLACE] - found[:, 1]  # of the rule that the project has
        error = f" ± {gain.std(ddof=1) / np.sqrt(len(gain)):.4f}" if len(gain) > 1 else ""
        means = (f"{mean:.4f}" for mean in found.mean(axis=0))
        rows.append([name, len(found), *means, f"{gain.mean():.4f}{error}"])
    header = ["data", "models", *RULES, "gain of the third rule over the second ± standard error"]
    print(table("least_variance", header, rows, spread="standard error of a gain"))


if __name__ == "__main__":
    main()
