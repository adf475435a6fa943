"""How well the estimators' probabilities are calibrated: log-loss, Brier score and AUC.

    python benchmarks/answers_calibration.py --data FOLDER [--seeds 3] [DATA ...]

FOLDER has the tables of UCI (`uci/`). Of each table 30 % are held out, by class, several times;
figures are means over these. Tables of more than MOST records are a random sample of MOST. "credit"
is simulated: 23 columns, of which 18 are three causes seen six times each, as monthly bills and
payments are. "At 1" is the estimator with `temperature=1`. "Smoothed" has `temperature=1` and CPTs
whose rows are drawn towards the rows of fewer parents, as the leave-one-out likelihood chooses from
the counts. A class that is called impossible costs 36 nats. pgmpy's naive Bayes takes columns in
ten bins; it predicts the first FEW held-out records.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from runs import arguments, seed_of
from side_by_side import on_one_thread, table

on_one_thread()

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

from vertibayes.counting import PlainCounter
from vertibayes.sklearn import BayesianNetworkClassifier, NaiveBayes
from vertibayes.sklearn.reading import known_states
from vertibayes_protocols.site.data import SiteData

MOST = 12_000
FEW = 500
LEAST = 2.0**-52
STRENGTHS = np.geomspace(1, 10_000, 25)  # of the row of fewer parents, in records
FILES = {
    "adult": ("adult_train.csv.gz", "income"),
    "australian": ("australian.csv", "class"),
    "bank": ("bank-full.csv.gz", "y"),
    "car": ("car.csv", "class"),
    "connect-4": ("connect-4.csv.gz", "class"),
    "letter": ("letter.csv.gz", "letter"),
    "mushroom": ("mushroom.csv.gz", "class"),
    "pima": ("pima-diabetes.csv.gz", "outcome"),
    "skin": ("skin-segmentation.csv.gz", "skin"),
    "spect": ("spect_train.csv spect_test.csv", "diagnosis"),
}


def credit(records: int = 30_000) -> pd.DataFrame:
    """Return a table as of credit cards: months of payments and bills repeat their causes."""
    generator = np.random.default_rng(seed_of())
    late, used = generator.normal(size=(2, records))

    def near(cause: Any, error: float) -> Any:
        return cause + error * generator.normal(size=records)

    limit = np.round(np.exp(near(11.5 - 0.5 * late, 0.8)), -4)
    columns = {
        "limit": limit,
        "sex": generator.integers(1, 3, records),
        "education": generator.integers(1, 5, records),
        "marriage": generator.integers(1, 4, records),
        "age": np.clip(generator.gamma(8, 4.5, records) + 18, 21, 79).round(),
    }
    for month in range(6):
        columns[f"late{month}"] = np.clip(np.round(1.2 * near(late, 0.5)), -2, 8).astype(int)
        bill = limit / 2 * np.exp(0.8 * near(used, 0.15) - 0.3 * near(late, 0.4))
        columns[f"bill{month}"] = np.round(bill)
        paid = np.exp(8 - 0.9 * near(late, 0.5) + 0.5 * near(used, 0.5))
        columns[f"paid{month}"] = np.round(paid * (generator.random(records) < 0.85))
    default = generator.random(records) < 1 / (1 + np.exp(1.45 - 0.8 * late))
    return pd.DataFrame(columns).assign(default=np.where(default, "yes", "no"))


def load(folder: Path, name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the features and the class of a table, or of a sample of it."""
    if name == "credit":
        frame, target = credit(), "default"
    else:
        files, target = FILES[name]
        read = [
            pd.read_csv(folder / "uci" / file, na_values="?", skipinitialspace=True)
            for file in files.split()
        ]
        frame = pd.concat(read, ignore_index=True)
    if len(frame) > MOST:
        frame, _ = train_test_split(
            frame, train_size=MOST, random_state=seed_of(), stratify=frame[target]
        )
    frame = frame.reset_index(drop=True)
    X = frame.drop(columns=target)  # noqa: N806
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return X.astype(dict.fromkeys(texts, "category")), frame[target].astype(str)


# ---- the candidate that counts alone would choose ------------------------------------------------


def smoothed(table: Any) -> Any:
    """Return a CPT whose rows are drawn towards the rows of fewer parents, in the best order.

    The weight of the row of fewer parents is the one under which the records, each left out in
    turn, are most probable: at each number of parents, a function of the counts.
    """
    counts = np.asarray(table, float)
    orders = permutations(range(1, counts.ndim))
    return max((drawn_to_fewer(counts, order) for order in orders), key=lambda each: each[1])[0]


def drawn_to_fewer(counts: Any, parents: Sequence[int]) -> tuple[Any, float]:
    """Return the CPT if the last of the parents is left out first, and its log-likelihood."""
    cpt = left_out = np.full(counts.shape, 1 / len(counts))
    best = -np.inf
    for level in range(len(parents) + 1):
        fewer = counts.sum(axis=tuple(parents[level:]), keepdims=True)
        totals, one = fewer.sum(axis=0, keepdims=True), np.minimum(fewer, 1.0)
        tried = [(fewer - one + s * left_out) / (totals - one + s) for s in STRENGTHS]
        values = [float((counts * np.log(each)).sum()) for each in tried]
        place = int(np.argmax(values))
        best, left_out = values[place], tried[place]
        cpt = (fewer + STRENGTHS[place] * cpt) / (totals + STRENGTHS[place])
    return np.broadcast_to(cpt, counts.shape), best


def smoothed_tan(X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:  # noqa: N803
    model = BayesianNetworkClassifier("tan", temperature=1, classes=np.unique(y)).fit(X, y)
    network, target = model.network_, model.target_
    data = known_states(X, network, target)
    codes = np.searchsorted(model.classes_, np.asarray(y)).astype(np.uint16)
    counter = PlainCounter(SiteData(data.variables, {**data.codes, target: codes}))
    tables = counter.tables(network.structure.families)
    cpts = map(smoothed, tables)
    model.network_ = replace(network, cpts=dict(zip(network.structure.nodes, cpts, strict=True)))
    return model.predict_proba(new)


# ---- classifiers: each returns the probabilities of the classes, sorted --------------------------


def ours(make: Callable[[], Any]) -> Callable[..., Any]:
    def predict(X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:  # noqa: N803
        model = make().set_params(classes=np.unique(y)).fit(X, y)
        return model.predict_proba(new)

    return predict


def base_rate(_: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:
    return np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(new), 1))


def boosted(X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:  # noqa: N803
    one, other = (part.to_numpy(float) for part in numbers(X, new))
    return HistGradientBoostingClassifier(random_state=seed_of()).fit(one, y).predict_proba(other)


def numbers(X: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:  # noqa: N803
    """Return texts as numbers; missing and unknown values are NaN."""
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    X, new = (part.astype(dict.fromkeys(texts, object)) for part in (X, new))  # noqa: N806
    if texts:
        coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        coder.fit(X[texts])
        X[texts], new[texts] = coder.transform(X[texts]), coder.transform(new[texts])
    return X, new


def binned(X: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:  # noqa: N803
    """Return all columns as states, numbers in ten bins, for libraries of discrete variables."""
    one, other = (part.fillna(-1.0) for part in numbers(X, new))
    many = [name for name in one if one[name].nunique() > 16]
    if many:
        bins = KBinsDiscretizer(10, encode="ordinal", quantile_method="averaged_inverted_cdf")
        bins.fit(one[many])
        one[many], other[many] = bins.transform(one[many]), bins.transform(other[many])
    for name in one:  # a value that no record of `fit` had is the most frequent one
        known = other[name].isin(one[name].unique())
        other[name] = other[name].where(known, one[name].mode()[0])
    columns = [name for name in one if one[name].nunique() > 1]
    return tuple(part[columns].astype(int).astype(str) for part in (one, other))  # type: ignore[return-value]


def pyagrum_tan(X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:  # noqa: N803
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
    from pyagrum.skbn import BNClassifier

    one, other = binned(X, new)
    model = BNClassifier(
        type_processor=DiscreteTypeProcessor(),
        learningMethod="TAN",
        prior="Smoothing",
        priorWeight=0.5,
    )
    model.fit(one, np.asarray(y))
    return in_order(np.asarray(model.predict_proba(other)), model.classes_, y)


def pgmpy_naive_bayes(X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:  # noqa: N803
    from pgmpy.models import DiscreteBayesianNetwork

    one, other = binned(X, new)
    one, other = (part.add_prefix("x ") for part in (one, other))
    model = DiscreteBayesianNetwork([("class", name) for name in one])
    model.fit(one.assign(**{"class": np.asarray(y)}))
    found = model.predict_probability(other[:FEW])
    return in_order(found.to_numpy(), [n.removeprefix("class_") for n in found], y)


def in_order(probabilities: Any, classes: Any, y: Any) -> Any:
    places = {str(name): place for place, name in enumerate(classes)}
    return probabilities[:, [places[str(name)] for name in np.unique(y)]]


CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "base rate": base_rate,
    "boosted trees": boosted,
    "naive Bayes at 1": ours(lambda: NaiveBayes(temperature=1)),
    "naive Bayes": ours(NaiveBayes),
    "hybrid at 1": ours(lambda: BayesianNetworkClassifier(temperature=1)),
    "hybrid": ours(BayesianNetworkClassifier),
    "tan at 1": ours(lambda: BayesianNetworkClassifier("tan", temperature=1)),
    "tan": ours(lambda: BayesianNetworkClassifier("tan")),
    "tan smoothed": smoothed_tan,
    "pyAgrum TAN": pyagrum_tan,
    "pgmpy naive Bayes": pgmpy_naive_bayes,
}


def measures(y: Any, probabilities: Any, classes: Any) -> tuple[float, float, float]:
    """Return log-loss, Brier score and AUC (NaN with more than two classes)."""
    y = np.asarray(y)[: len(probabilities)]
    kept = np.clip(probabilities, LEAST, 1)
    hot = y[:, None] == classes
    brier = float(((probabilities - hot) ** 2).sum(axis=1).mean())
    auc = roc_auc_score(hot[:, 1], probabilities[:, 1]) if len(classes) == 2 else np.nan
    return log_loss(y, kept, labels=classes), brier, auc


def compare(folder: Path, name: str, seeds: int) -> Iterator[tuple[str, Any]]:
    """Yield the mean measures of each classifier; NaN where a peer cannot take the table."""
    X, y = load(folder, name)  # noqa: N806
    classes = np.unique(y)
    for each, predict in CLASSIFIERS.items():
        found = []
        for seed in range(seeds):
            parts = train_test_split(X, y, test_size=0.3, random_state=seed_of(seed), stratify=y)
            one, new, own, true = (part.reset_index(drop=True) for part in parts)
            try:
                found.append(measures(true, predict(one, own, new), classes))
            except Exception as error:
                if each.startswith(("py", "pg")):
                    print(name, each, type(error).__name__, str(error)[:200])
                    found.append((np.nan,) * 3)
                    continue
                raise
        yield each, np.mean(found, axis=0)
    print(name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("names", nargs="*")
    given = arguments(parser, data=True)
    names = given.names or [*FILES, "credit"]
    found = {name: dict(compare(given.data, name, given.seeds)) for name in names}
    header = ["data", *CLASSIFIERS]
    print(table("answers_calibration", header, rows_of(found, 0)), "\n")
    print(table("answers_calibration_brier", header, rows_of(found, 1)), "\n")
    binary = {name: each for name, each in found.items() if not np.isnan(each["base rate"][2])}
    print(table("answers_calibration_auc", header, rows_of(binary, 2)))


def rows_of(found: dict[str, dict[str, Any]], place: int) -> list[list[str]]:
    """Return one measure of all classifiers; nothing where a peer cannot take the table."""
    return [
        [name, *(f"{each[c][place]:.3f}".replace("nan", "") for c in CLASSIFIERS)]
        for name, each in found.items()
    ]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
