"""The data sets of Giaretta et al. (2023), and the law of local noise for experiments on them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
from fetched import voting
from noise_of_sums import noise_of_sum

from tests.model_scorer import Scorer
from vertibayes.naive_bayes.base import FLOOR, NaiveBayes
from vertibayes.naive_bayes.federated import about_zero, exact_updates
from vertibayes_mpc.noise import DiscreteLaplace
from vertibayes_protocols.accounting import Accounting, Privacy
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

MODES = {"measured": "measured (not private)", "declared": "declared bounds"}
ALPHA = {"measured": 0.0, "declared": 1.0}

# Declared beforehand, from the data sets' descriptions.
BOUNDS = {
    "Adult": {
        "age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16),
        "capital-gain": (0, 99_999), "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
    },
    "Accelerometer": {"x": (-8, 8), "y": (-8, 8), "z": (-6.09, 6.09)},
    "Skin": {"B": (0, 255), "G": (0, 255), "R": (0, 255)},
}  # fmt: skip
TARGETS = {"Adult": "income", "Accelerometer": "wconfid", "Mushroom": "class", "Skin": "skin",
           "SPECT": "diagnosis", "Voting": "Class"}  # fmt: skip
FILES = {"Accelerometer": "accelerometer.csv.gz", "Mushroom": "mushroom.csv.gz",
         "Skin": "skin-segmentation.csv.gz"}  # fmt: skip


@dataclass(frozen=True)
class Way:
    """One reading of the sensitivity: the schema, training and test records that go with it."""

    mode: str
    schema: Schema
    training: LocalData
    test: LocalData

    @cached_property
    def scorer(self) -> Scorer:
        """The test records."""
        return Scorer(self.schema, self.test)

    @cached_property
    def sums(self) -> np.ndarray:
        """The exact statistics of all training records."""
        return exact_updates(self.schema, [self.training])[0]

    @cached_property
    def largest(self) -> np.ndarray:
        """Absolute values of the numbers on their grids: shape (records, numbers)."""
        numerics = self.schema.numerics.items()
        columns = [np.abs(numeric.centred(self.training.numbers[n])) for n, numeric in numerics]
        return np.array(columns).T

    @cached_property
    def accounting(self) -> Accounting:
        """The parts of the statistics, for eps = 1 and local noise."""
        return Accounting(self.schema, Privacy(eps=1.0, noise="laplace"))

    @cached_property
    def cells(self) -> list[int]:
        """How many values each part has."""
        return [part.cells for part in self.accounting.parts]

    def changes(self, nodes: list[np.ndarray]) -> np.ndarray:
        """Return by how much a record changes each value at each node: shape (nodes, k)."""
        parts = [part.Delta for part in self.accounting.parts]
        changes = np.tile(np.repeat(parts, self.cells), (len(nodes), 1))
        if self.mode == "measured" and self.schema.numeric:
            top = self.tops(nodes)
            numbers = np.stack([top, top**2], axis=2).reshape(len(nodes), -1)
            changes[:, changes.shape[1] - numbers.shape[1] :] = numbers
        return changes

    def tops(self, nodes: list[np.ndarray]) -> np.ndarray:
        """Return the largest absolute values: shape (nodes, numbers, classes), at least 1."""
        classes = len(self.schema.target.states)
        rows, owners = np.concatenate(nodes), np.repeat(np.arange(len(nodes)), [*map(len, nodes)])
        cells = owners * classes + self.training.codes[self.schema.target.name][rows]
        tops = np.ones((self.largest.shape[1], len(nodes) * classes), np.int64)
        for top, column in zip(tops, self.largest.T, strict=True):
            np.maximum.at(top, cells, column[rows])
        return tops.reshape(-1, len(nodes), classes).swapaxes(0, 1)

    def noise(self, nodes: list[np.ndarray], eps: np.ndarray, generator) -> np.ndarray:
        """Draw the noise of each node with its own budget: shape (nodes, k)."""
        scales = self.changes(nodes) * len(self.cells) / eps[:, None]
        success = -np.expm1(-1 / scales)
        return generator.geometric(success) - generator.geometric(success)

    def noise_of_total(self, nodes: int, eps: float, generator) -> np.ndarray:
        """Draw the sum of the noise of nodes of equal sizes: shape (k,)."""
        if self.mode == "measured":
            rows = np.array_split(generator.permutation(self.training.records), nodes)
            return self.noise_of_numbers(rows, eps, generator)
        drawn = []
        for part in self.accounting.parts:
            noise = DiscreteLaplace(eps=eps / len(self.cells), Delta=part.Delta)
            drawn.append(noise_of_sum(noise, nodes, part.cells, generator))
        return np.concatenate(drawn)

    def noise_of_numbers(self, rows: list[np.ndarray], eps: float, generator) -> np.ndarray:
        """As `noise`, summed: that of counts at once, that of numbers node by node."""
        parts = 1 + len(self.schema.categorical)
        counts = sum(self.cells[:parts])
        scales = self.changes(rows)[:, counts:] * len(self.cells) / eps
        success = -np.expm1(-1 / scales)
        own = generator.geometric(success) - generator.geometric(success)
        copies = DiscreteLaplace(eps=eps / len(self.cells), Delta=1)
        shared = noise_of_sum(copies, len(rows), counts, generator)
        return np.append(shared, own.sum(axis=0))

    def errors(self, budgets: np.ndarray) -> np.ndarray | None:
        """Return the standard errors of sums of nodes with these budgets; as in the paper, None."""
        if self.mode == "measured":
            return None
        rates = [budgets / (len(self.cells) * part.Delta) for part in self.accounting.parts]
        variances = [(0.5 / np.sinh(rate / 2) ** 2).sum() for rate in rates]
        return np.sqrt(np.repeat(variances, self.cells))

    def model(
        self, sums: np.ndarray, errors: np.ndarray | None = None, floor: float = FLOOR
    ) -> NaiveBayes:
        """Return the model of sums, with the pseudo-counts of the mode."""
        return NaiveBayes(self.schema, alpha=ALPHA[self.mode], floor=floor).fit_sums(sums, errors)


@dataclass(frozen=True)
class Data:
    """A data set: its two ways."""

    name: str
    ways: Mapping[str, Way]

    @property
    def has_numbers(self) -> bool:
        """Whether the sensitivity makes a difference."""
        return bool(self.ways["declared"].schema.numeric)


def load(folder: Path, fetched: Path | None) -> Iterator[Data]:
    """Read the data sets that are there."""
    uci = folder / "uci"
    for name in TARGETS:
        if name in FILES:
            frame = read(uci / FILES[name])
            yield data_of(name, *split(frame))
        elif name == "Voting":
            try:
                yield data_of(name, *split(voting(fetched)))
            except FileNotFoundError as error:
                print(f"left out: {error}")
        else:
            suffix = ".csv.gz" if name == "Adult" else ".csv"
            pair = [read(uci / f"{name.lower()}_{part}{suffix}") for part in ("train", "test")]
            yield data_of(name, *pair)


def read(path: Path) -> pd.DataFrame:
    """Read all values as text; `?` is a value as any other."""
    return pd.read_csv(path, dtype=str, skipinitialspace=True, keep_default_na=False)


def split(
    frame: pd.DataFrame, seed: int | np.random.Generator = 42
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return nine tenths and a tenth of the records; 42 is the seed that the paper names."""
    places = np.random.default_rng(seed).permutation(len(frame))
    tenth = len(frame) // 10
    return frame.iloc[places[tenth:]], frame.iloc[places[:tenth]]


def data_of(name: str, training: pd.DataFrame, test: pd.DataFrame) -> Data:
    """Declare states and bounds, and encode."""
    target, bounds = TARGETS[name], BOUNDS.get(name, {})
    both = pd.concat([training, test])
    columns = [c for c in both if c not in bounds and (not bounds or c != "pctid")]
    variables = {c: Variable(c, tuple(sorted(both[c].unique()))) for c in columns}
    numerics = {c: Numeric(c, float(low), float(high)) for c, (low, high) in bounds.items()}
    features = {c: variables.get(c) or numerics[c] for c in both if c in variables | numerics}
    del features[target]
    schema = Schema(variables[target], features, centred=True)
    pair = []
    for frame in (training, test):
        codes = {c: pd.Categorical(frame[c], list(v.states)).codes for c, v in variables.items()}
        numbers = {c: frame[c].to_numpy(float) for c in numerics}
        codes = {c: column.astype(np.int64) for c, column in codes.items()}
        pair.append(LocalData(schema.variables, codes, numerics, numbers))
    zero, moved = about_zero(schema, pair)
    ways = {"measured": Way("measured", zero, *moved), "declared": Way("declared", schema, *pair)}
    return Data(name, ways)
