"""The columns of a data frame or an array as features: numbers between bounds, or categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

Bounds: TypeAlias = tuple[float, float] | Mapping[Any, tuple[float, float]] | None
Categories: TypeAlias = Mapping[Any, Sequence[Any]] | None

WIDEST = 1e150  # squares of wider ranges overflow


@dataclass(frozen=True)
class Columns:
    """What the columns of a data set are, as a model uses them."""

    schema: Schema  # the class and the features, by the columns' names as text
    names: tuple[Any, ...]  # the columns' names as the data frame has them, in its order
    values: Mapping[str, Sequence[Any]]
    by_dtype: tuple[str, ...]  # the columns whose values only a categorical dtype declares

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        classes: Sequence[Any],
        *,
        bounds: Bounds,
        categories: Categories,
        private: bool,
        missing: bool = False,
    ) -> Columns:
        """Return the columns of a data frame."""
        texts = pd.Index([str(name) for name in frame.columns])
        if not len(texts):
            raise ValueError("X must have at least one column, got 0")
        if not texts.is_unique:
            raise ValueError(f"two columns are named {texts[texts.duplicated()][0]!r}: rename one")
        reader = _Reader(frame, bounds, dict(categories or {}), private, missing)
        features = {str(name): reader.feature(name) for name in frame.columns}
        target = "class" if "class" not in features else "the class of the records"
        schema = Schema(Variable(target, _texts(target, classes)), features, centred=private)
        values = reader.values | {target: list(classes)}
        return cls(schema, tuple(frame.columns), values, tuple(reader.by_dtype))

    def records(self, frame: pd.DataFrame, y: Any = None) -> LocalData:
        """Return records, with their classes if given."""
        if absent := [name for name in self.names if name not in frame.columns]:
            raise ValueError(f"X has no column {absent[0]!r}, which the model was fitted with")
        named = {str(name): frame[name] for name in self.names}
        if y is not None:
            named[self.schema.target.name] = pd.Series(np.asarray(y))
        variables = {n: v for n, v in self.schema.variables.items() if n in named}
        codes = {name: self._codes(name, named[name]) for name in variables}
        numbers = {name: _numbers(name, named[name]) for name in self.schema.numeric}
        return LocalData(variables, codes, self.schema.numerics, numbers)

    def _codes(self, name: str, column: pd.Series[Any]) -> NDArray[np.int64]:
        values = list(self.values[name])
        declared = pd.Index(values, tupleize_cols=False)
        try:
            codes = declared.get_indexer(pd.Index(column, tupleize_cols=False))
        except TypeError as error:  # lists, for example
            raise ValueError(f"{name}: a value is not a category ({error})") from None
        unknown = np.flatnonzero((codes < 0) & ~column.isna().to_numpy())
        if len(unknown):
            (given,) = column.iloc[unknown[:1]].tolist()
            raise ValueError(
                f"{name}: the value {given!r} was never declared; the declared values are "
                f"{', '.join(map(repr, values[:10]))}{', ...' if len(values) > 10 else ''}; "
                "declare the value, or replace it by a missing value"
            )
        return np.where(codes < 0, len(values), codes).astype(np.int64)


@dataclass
class _Reader:
    """Reads what the columns of a data frame are."""

    frame: pd.DataFrame
    bounds: Bounds
    categories: dict[Any, Sequence[Any]]
    private: bool
    missing: bool

    def __post_init__(self) -> None:
        self.values: dict[str, Sequence[Any]] = {}
        self.by_dtype: list[str] = []
        given = self.bounds if isinstance(self.bounds, Mapping) else {}
        for name in (*given, *self.categories):
            if name not in self.frame.columns:
                known = ", ".join(map(repr, self.frame.columns))
                raise ValueError(f"X has no column {name!r}; its columns are {known}")
            if name in given and name in self.categories:
                raise ValueError(f"{name}: declare bounds or categories, not both")

    def feature(self, name: Any) -> Variable | Numeric:
        """Return a column as a feature."""
        column, text = self.frame[name], str(name)
        if name in self.categories:
            return self._category(text, self.categories[name])
        if column.dtype.kind in "cmM":  # complex numbers, dates and durations
            raise ValueError(
                f"{text}: columns of dtype {column.dtype} are not supported; convert the column to "
                "real numbers or to categories"
            )
        if isinstance(self.bounds, Mapping) and name in self.bounds:
            return _number(text, self.bounds[name])
        if isinstance(column.dtype, pd.CategoricalDtype):
            self.by_dtype.append(text)
            return self._category(text, list(column.dtype.categories))
        if pd.api.types.is_bool_dtype(column):
            return self._category(text, (False, True))
        if pd.api.types.is_numeric_dtype(column):
            return self._unbounded(text, column)
        return self._undeclared(text, column)

    def _undeclared(self, name: str, column: pd.Series[Any]) -> Variable:
        if self.private:
            raise ValueError(
                f"{name}: declare the values of the column, as categories={{{name!r}: [...]}} or "
                f"by a categorical dtype; or bounds={{{name!r}: (low, high)}} if they are numbers"
            )
        try:
            observed = sorted(column.dropna().unique(), key=str)
        except TypeError as error:  # lists, for example
            raise ValueError(f"{name}: a value is not a category ({error})") from None
        return self._category(name, observed)

    def _unbounded(self, name: str, column: pd.Series[Any]) -> Numeric:
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            return _number(name, self.bounds)
        if self.private:
            raise ValueError(
                f"{name}: declare the bounds of its numbers, as bounds={{{name!r}: (low, high)}}: "
                "they limit by how much one record changes a sum, and so determine the noise"
            )
        numbers = _numbers(name, column)
        known = numbers[~np.isnan(numbers)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        narrow = not low < low + (high - low) / 2 < high
        return _number(name, (low, low + max(abs(low), 1.0) if narrow else high))

    def _category(self, name: str, given: Sequence[Any]) -> Variable:
        values = [given] if isinstance(given, str) else list(given)
        if not values:
            raise ValueError(f"{name}: a categorical column needs at least one value, got none")
        if any(pd.isna(value) is True for value in values):
            raise ValueError(f"{name}: a missing value must not be declared; it needs no category")
        self.values[name] = values
        return Variable(name, _texts(name, values), self.missing)


def _number(name: str, bounds: Any) -> Numeric:
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: bounds must be a pair of numbers, got {bounds!r}") from None
    if not (low < low + (high - low) / 2 < high and high - low < WIDEST):
        raise ValueError(f"{name}: bounds must be finite and ascend, got {low} to {high}")
    return Numeric(name, low, high)


def _texts(name: str, values: Sequence[Any]) -> tuple[str, ...]:
    texts = tuple(map(str, values))
    if len(set(texts)) < len(texts) or len(set(values)) < len(values):
        raise ValueError(f"{name}: two values are equal, or the same as text: {', '.join(texts)}")
    return texts


def _numbers(name: str, column: pd.Series[Any]) -> NDArray[np.float64]:
    try:
        numbers = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: a value is not a number ({error})") from None
    if np.isinf(numbers).any():
        raise ValueError(f"{name}: numbers must be finite, got infinity")
    return numbers
