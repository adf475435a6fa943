"""The estimators of `vertibayes.sklearn` beside scikit-learn's naive Bayes: accuracy and seconds.

    VERTIBAYES_DATA=DIR python benchmarks/estimators.py [DATA ...]

DATA are adult, letter, accelerometer or diabetes; all without a name. Adult has its own test part;
of the others 20 % are held out, drawn once. "diabetes" is the Pima data with 10 % of the cells of
its features missing, which GaussianNB cannot take: its columns are imputed by their means there.
Seconds are CPU seconds, medians of RUNS fits and predictions, all estimators in turns in one
process, ours with `temperature=1`: scikit-learn's have no temperature. A ratio is that of the
seconds to those of GaussianNB for NaiveBayes, and to those of CategoricalNB on the same numbers of
bins for the networks. Three algorithms are then run once over three sites, too, and diabetes by
cross-validation.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from runs import arguments, seed_of
from side_by_side import Rows, table
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

from vertibayes.sklearn import BayesianNetworkClassifier, NaiveBayes

RUNS = 5
DATA = Path(os.environ.get("VERTIBAYES_DATA", "."))
NUMBERS = make_column_selector(dtype_include="number")
OTHERS = make_column_selector(dtype_exclude="number")


class Records(NamedTuple):
    """What to fit to, and what to predict."""

    X: pd.DataFrame
    y: pd.Series
    X_new: pd.DataFrame
    y_new: pd.Series


def adult() -> Records:
    read = [pd.read_csv(DATA / f"uci/adult_{part}.csv.gz", na_values="?") for part in PARTS]
    frames = [(part.drop(columns="income"), part["income"].str.strip(" .")) for part in read]
    return Records(*frames[0], *frames[1])


PARTS = ("train", "test")


def held_out(path: str, target: str, **given: Any) -> Records:
    frame = pd.read_csv(DATA / path, **given)
    fitted, new = train_test_split(frame, test_size=0.2, random_state=seed_of())
    features = (part.drop(columns=target) for part in (fitted, new))
    return Records(next(features), fitted[target], next(features), new[target])


def diabetes() -> Records:
    records = held_out("diabetes/diabetes.csv", "Outcome", index_col="record_id")
    generator = np.random.default_rng(seed_of())
    holes = [part.mask(generator.random(part.shape) < 0.1) for part in (records.X, records.X_new)]
    return Records(holes[0], records.y, holes[1], records.y_new)


SETS: dict[str, Callable[[], Records]] = {
    "adult": adult,
    "letter": lambda: held_out("uci/letter.csv.gz", "letter"),
    "accelerometer": lambda: held_out("uci/accelerometer.csv.gz", "wconfid"),
    "diabetes": diabetes,
}


def categorical_nb() -> Any:
    bins = KBinsDiscretizer(10, encode="ordinal", quantile_method="averaged_inverted_cdf")
    numbers = make_pipeline(SimpleImputer(strategy="most_frequent"), bins)
    texts = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99)
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), texts)
    columns = make_column_transformer((numbers, NUMBERS), (texts, OTHERS))
    return make_pipeline(columns, CategoricalNB(min_categories=100))


def gaussian_nb() -> Any:
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((SimpleImputer(), NUMBERS), (texts, OTHERS))
    return make_pipeline(columns, GaussianNB())


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "GaussianNB, one-hot": gaussian_nb,
    "CategoricalNB, ten bins": categorical_nb,
    "NaiveBayes": lambda: NaiveBayes(temperature=1),
    "network, hybrid": lambda: BayesianNetworkClassifier(temperature=1),
    "network, tan": lambda: BayesianNetworkClassifier("tan", temperature=1),
    "network, tan, mdlp": lambda: BayesianNetworkClassifier("tan", binning="mdlp", temperature=1),
    "network, chow_liu": lambda: BayesianNetworkClassifier("chow_liu", temperature=1),
}


def measured(make: Callable[[], Any], records: Records) -> tuple[float, float, Any]:
    start = process_time()
    model = make().fit(records.X, records.y)
    fitted = process_time()
    probabilities = model.predict_proba(records.X_new)
    return fitted - start, process_time() - fitted, (model, probabilities)


def scores(model: Any, probabilities: Any, y: pd.Series) -> list[str]:
    accuracy = (model.classes_[probabilities.argmax(axis=1)] == y).mean()
    loss = log_loss(y, probabilities, labels=model.classes_)
    binary = len(model.classes_) == 2
    auc = f"{roc_auc_score(y == model.classes_[1], probabilities[:, 1]):.4f}" if binary else ""
    return [f"{accuracy:.4f}", auc, f"{loss:.3f}"]


def compare(name: str) -> Iterator[list[str]]:
    """Yield the row of each estimator."""
    records = SETS[name]()
    seconds: dict[str, list[tuple[float, float]]] = {each: [] for each in ESTIMATORS}
    last: dict[str, Any] = {}
    for _ in range(RUNS):
        for each, make in ESTIMATORS.items():
            fit, predict, last[each] = measured(make, records)
            seconds[each].append((fit, predict))
    medians = {
        each: [median(column) for column in zip(*s, strict=True)] for each, s in seconds.items()
    }
    for each, (fit, predict) in medians.items():
        beside = "GaussianNB, one-hot" if each == "NaiveBayes" else "CategoricalNB, ten bins"
        base = medians[each if each.endswith(("one-hot", "bins")) else beside]
        seconds_and_ratios = [f"{fit:.3f}", f"{predict:.3f}"]
        seconds_and_ratios += [f"{fit / base[0]:.2f}", f"{predict / base[1]:.2f}"]
        yield [name, each, *scores(*last[each], records.y_new), *seconds_and_ratios]


def cross_validate(name: str) -> Iterator[list[str]]:
    """Yield the accuracies by ten folds, dealt three times: for sets whose test part is small."""
    records = SETS[name]()
    X, y = pd.concat([records.X, records.X_new]), pd.concat([records.y, records.y_new])  # noqa: N806
    for each, make in ESTIMATORS.items():
        folds = (StratifiedKFold(10, shuffle=True, random_state=seed_of(seed)) for seed in range(3))
        parts = np.concatenate([cross_val_score(make(), X, y, cv=fold) for fold in folds])
        error = parts.std(ddof=1) / len(parts) ** 0.5
        yield [name, each, f"{parts.mean():.3f}", f"{error:.3f}"]


def compare_sites(name: str) -> Iterator[list[str]]:
    """Learn the networks over three sites too, once: equal, how many cells, how long."""
    records, sites = SETS[name](), {}
    columns = np.array_split(np.array(list(records.X.columns)), 3)
    for place, held in enumerate(columns):
        sites[f"site-{place + 1}"] = records.X[list(held)]
    sites["site-3"] = sites["site-3"].assign(**{records.y.name: records.y})
    for algorithm in ("hybrid", "tan", "chow_liu"):
        pooled, apart = (
            BayesianNetworkClassifier(algorithm, temperature=1) for _ in ("pooled", "sites")
        )
        start = process_time()
        pooled.fit(records.X, records.y)
        middle = process_time()
        apart.fit(sites, records.y.name)
        seconds = middle - start, process_time() - middle
        equal = pooled.network_.structure == apart.network_.structure and all(
            np.array_equal(cpt, apart.network_.cpts[node])
            for node, cpt in pooled.network_.cpts.items()
        )
        texts = [*(f"{each:.2f}" for each in seconds), f"{apart.ledger_.cells:,}"]
        yield [name, algorithm, *texts, "equal" if equal else "DIFFERENT"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; default: all")
    chosen = arguments(parser).only or [*SETS]
    header = ["data", "estimator", "accuracy", "AUC", "log loss", "fit s", "predict s"]
    header += ["ratio of fit", "ratio of predict"]
    print(table("estimators", header, Rows(row for name in chosen for row in compare(name))), "\n")
    header = ["data", "algorithm", "pooled s", "three sites s", "cells revealed", "network"]
    rows = Rows(row for name in chosen for row in compare_sites(name))
    print(table("estimators_sites", header, rows), "\n")
    if "diabetes" in chosen:
        header = ["data", "estimator", "accuracy by 30 folds", "standard error"]
        print(table("estimators_folds", header, list(cross_validate("diabetes"))))
