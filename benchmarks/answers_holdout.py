"""How often the intervals of `--validate holdout` contain what they estimate.

    python benchmarks/answers_holdout.py [tables] [studies] --data FOLDER [--seeds 20] [--folds 10]

`tables`: of each UCI table with a class, a network is learned from 80 % of the records and tested
on the others, once for each seed. Beside its intervals stand the ten-fold values: ten networks,
each tested on the tenth of the records that it has not learned from. With five folds, these
networks too learn from 80 %. Of a large table 5,000 random
records are used.

`studies`: a study draws records of a known network, learns from 80 % of them by default and has
intervals from the others. The true values are those of its network on 30,000 further records.

Pooled records: tests/vertibayes/test_holdout.py has the same figures over sites.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from runs import arguments, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

import numpy as np
from choices import read_binned

from vertibayes.counting import PlainCounter
from vertibayes.holdout import HeldOut, check_classes, held_out_validation, holdout
from vertibayes.inference.prediction import predict_proba
from vertibayes.learning import learn
from vertibayes.network import Network, read_model
from vertibayes.options import Options
from vertibayes.sampling import sample
from vertibayes.validation.measures import mean_of
from vertibayes.validation.methods import Scored
from vertibayes_protocols.site.data import SiteData

SHARE, MOST, NEW, STUDIES = 0.2, 5_000, 30_000, 1_000
MEASURES = "AUC", "log-loss", "Brier score"
CLASSES = {
    "adult_train.csv.gz": "income",
    "adult_test.csv.gz": "income",
    "australian.csv": "class",
    "bank-full.csv.gz": "y",
    "car.csv": "class",
    "connect-4.csv.gz": "class",
    "letter.csv.gz": "letter",
    "mushroom.csv.gz": "class",
    "pima-diabetes.csv.gz": "outcome",
    "skin-segmentation.csv.gz": "skin",
    "accelerometer.csv.gz": "wconfid",
    "spect_train.csv": "diagnosis",
    "spect_test.csv": "diagnosis",
}
KNOWN = (  # network, columns, target, records
    ("asia", 8, "bronc", 500),
    ("asia", 8, "dysp", 2000),
    ("alarm", 12, "HYPOVOLEMIA", 500),
    ("alarm", 12, "CVP", 1000),
)


def tested(network: Network, data: SiteData, target: str) -> HeldOut:
    """Return how a network predicts records."""
    probabilities = predict_proba(network, data, target)
    states = data.variables[target].states
    scored = Scored(data.codes[target], probabilities[:, : len(states)], 0)
    return held_out_validation(data.variables[target], scored)


def learned(data: SiteData) -> Network:
    """Return the network of the default learner."""
    return learn(PlainCounter(data), Options()).network


def estimates(result: HeldOut) -> list[tuple[float, float, float]]:
    """Return the value and the interval of each measure."""
    low, high = result.auc_interval
    return [(result.overall.auc, low, high), result.log_loss, result.brier]


def contains(result: HeldOut, values: list[float]) -> list[bool]:
    """Say of each measure whether its interval contains a value."""
    pairs = zip(estimates(result), values, strict=True)
    return [low <= value <= high for (_, low, high), value in pairs]


# ---- tables --------------------------------------------------------------------------------------


def over_folds(data: SiteData, target: str, count: int) -> list[float]:
    """Return the measures of networks on the folds from which they have not learned."""
    order = np.random.default_rng(seed_of()).permutation(data.records)
    folds = [
        tested(learned(data.rows(np.setdiff1d(order, part))), data.rows(part), target)
        for part in np.array_split(order, count)
    ]
    weights = [fold.overall.scored for fold in folds]
    means = [
        float(np.average([getattr(fold, name).value for fold in folds], weights=weights))
        for name in ("log_loss", "brier")
    ]
    return [mean_of([fold.overall for fold in folds]).auc, *means]


def hold_outs(data: SiteData, target: str, seeds: int) -> Iterator[HeldOut]:
    """Yield the results of hold-outs that are not refused."""
    for seed in range(1, seeds + 1):
        order = np.random.default_rng(seed_of(seed)).permutation(data.records)
        held, rest = np.split(order, [round(SHARE * data.records)])
        try:
            check_classes(PlainCounter(data.rows(held)), target)
        except ValueError:
            continue
        yield tested(learned(data.rows(rest)), data.rows(held), target)


def of_tables(folder: Path, seeds: int, folds: int) -> None:
    """Compare with the values over folds on every table."""
    rows, inside = [], []
    for file, target in CLASSES.items():
        data = read_binned(folder / "uci" / file)
        if data.records > MOST:
            data = data.rows(np.random.default_rng(seed_of()).permutation(data.records)[:MOST])
        values = over_folds(data, target, folds)
        results = list(hold_outs(data, target, seeds))
        own = np.array([contains(result, values) for result in results]).reshape(-1, 3)
        means = np.array([[v for v, *_ in estimates(r)] for r in results]).reshape(-1, 3)
        shown = [
            text
            for value, mean, count in zip(
                values, means.mean(axis=0) if len(own) else [None] * 3, own.sum(axis=0), strict=True
            )
            for text in (f"{value:.3f}", "" if mean is None else f"{mean:.3f}", int(count))
        ]
        rows.append([file.split(".")[0], data.records, len(results), *shown])
        inside.append(own)
        print(rows[-1], flush=True)
    every = np.concatenate(inside)
    shares = [text for share in every.mean(axis=0) for text in ("", "", f"{share:.1%}")]
    rows.append(["share of all", "", len(every), *shares])
    of = [f"{name}{what}" for name in MEASURES for what in (" over folds", " held out", " inside")]
    columns = ["table", "records", "hold-outs", *of]
    if folds == 10:
        print(table("answers_holdout", columns, rows))
    else:
        print(table("answers_holdout_five", columns, rows))


# ---- studies -------------------------------------------------------------------------------------


def of_studies(folder: Path, studies: int) -> None:
    """Compare with the true values in many studies."""
    rows = []
    for name, columns, target, records in KNOWN:
        network = read_model(folder / name / f"{name}.bif")
        names = [*dict.fromkeys([target, *network.structure.nodes])][:columns]
        new = sample(network, NEW, seed=seed_of(1)).take(names)
        inside, refused = [], 0
        for seed in range(2, 2 + studies):
            data = sample(network, records, seed=seed_of(seed)).take(names)
            held, rest = np.split(np.arange(records), [round(SHARE * records)])
            try:
                check_classes(PlainCounter(data.rows(held)), target)
            except ValueError:
                refused += 1
                continue
            known = learned(data.rows(rest))
            true = [value for value, *_ in estimates(holdout(known, PlainCounter(new), target))]
            found = holdout(known, PlainCounter(data.rows(held)), target)
            inside.append(contains(found, true))
        states, count = len(network.variables[target].states), round(SHARE * records)
        shares = [f"{share:.1%}" for share in np.mean(inside, axis=0)]
        rows.append([f"{name}, {target}", states, records, count, refused, *shares])
        print(rows[-1], flush=True)
    header = ["network, target", "states", "records", "held out", "refused", *MEASURES]
    print(table("answers_holdout_studies", header, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["tables", "studies"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--folds", type=int, default=10, choices=(10, 5))
    parser.add_argument("--studies", type=int, default=STUDIES)
    given = arguments(parser, data=True)
    if "tables" in given.parts:
        of_tables(given.data, given.seeds, given.folds)
    if "studies" in given.parts:
        of_studies(given.data, given.studies)
