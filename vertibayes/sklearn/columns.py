"""The columns of a data frame or an array as features: numbers between bounds, or categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from protocols.schema import Schema
from protocols.site.statistics import LocalData, Numeric
from protocols.variables import Variable

Bounds: TypeAlias = tuple[float, float] | Mapping[Any, tuple[float, float]] | None
Categories: TypeAlias = Mapping[Any, Sequence[Any]] | None


@dataclass(frozen=True)
class Columns:
    """What the columns of a data set are, as a model uses them.

    Parameters
    ----------
    schema : Schema
        The class and the features, by the columns' names as text.
    names : tuple
        The columns' own names, in their order.
    values : mapping of str to list
        The declared values of each categorical column, and of the class.
    """

    schema: Schema
    names: tuple[Any, ...]
    values: Mapping[str, Sequence[Any]]

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
        """Return the columns of a data frame.

        Parameters
        ----------
        frame : DataFrame
            The features.
        classes : sequence
            The values of the class.
        bounds : (float, float) or mapping, optional
            The bounds of all numbers, or of each column of numbers.
        categories : mapping, optional
            The values of each categorical column whose dtype does not declare them.
        private : bool
            Whether to refuse columns without declared bounds or values: if they are taken from the
            records, they tell of the records.
        missing : bool, default=False
            Whether people report that a value is missing (`LocalNB`).

        Raises
        ------
        ValueError
            If bounds or values are missing or cannot be used; the message names the column.
        """
        columns = _Reader(frame, bounds, dict(categories or {}), private, missing)
        features = {str(name): columns.feature(name) for name in frame.columns}
        if len(features) < len(frame.columns):
            raise ValueError("two columns have the same name as text: rename one of them")
        target = "class" if "class" not in features else "the class of the records"
        states = _texts(target, classes)
        schema = Schema(Variable(target, states), features, centred=private)
        return cls(schema, tuple(frame.columns), columns.values | {target: list(classes)})

    def records(self, frame: pd.DataFrame, y: Any = None) -> LocalData:
        """Return records, with their classes if given.

        Raises
        ------
        ValueError
            If a value was never declared, or a number is infinite; the message names the column.
        """
        named = {str(name): frame[name] for name in self.names}
        target = self.schema.target.name
        if y is not None:
            named[target] = pd.Series(np.asarray(y), index=frame.index)
        variables = {n: v for n, v in self.schema.variables.items() if n in named}
        codes = {name: self._codes(name, named[name]) for name in variables}
        numbers = {name: _numbers(name, named[name]) for name in self.schema.numeric}
        return LocalData(variables, codes, self.schema.numerics, numbers)

    def _codes(self, name: str, column: pd.Series[Any]) -> NDArray[np.int64]:
        values = list(self.values[name])
        codes = pd.Index(values).get_indexer(pd.Index(column))
        unknown = np.flatnonzero((codes < 0) & ~column.isna().to_numpy())
        if len(unknown):
            given = column.iloc[int(unknown[0])]
            raise ValueError(
                f"{name}: the value {given!r} was never declared; the declared values are "
                f"{', '.join(map(repr, values[:10]))}{', ...' if len(values) > 10 else ''}"
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
        given = self.bounds if isinstance(self.bounds, Mapping) else {}
        for name in (*given, *self.categories):
            if name not in self.frame.columns:
                there = ", ".join(map(str, self.frame.columns))
                raise ValueError(f"there is no column {name!r}; there are {there}")

    def feature(self, name: Any) -> Variable | Numeric:
        """Return a column as a feature."""
        column, text = self.frame[name], str(name)
        if isinstance(self.bounds, Mapping) and name in self.bounds:
            return self._number(text, self.bounds[name])
        if name in self.categories or isinstance(column.dtype, pd.CategoricalDtype):
            declared = self.categories.get(name, getattr(column.dtype, "categories", ()))
            return self._category(text, list(declared))
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            return self._unbounded(text, column)
        if self.private:
            raise ValueError(
                f"{text}: declare its values, as categories={{{name!r}: [...]}} or by a categorical"
                " dtype: values that are taken from the records tell of them"
            )
        return self._category(text, sorted(column.dropna().unique(), key=str))

    def _unbounded(self, name: str, column: pd.Series[Any]) -> Numeric:
        if isinstance(self.bounds, tuple | list):
            return self._number(name, (self.bounds[0], self.bounds[1]))
        if self.private:
            raise ValueError(
                f"{name}: declare the bounds of its numbers, as bounds={{{name!r}: (low, high)}}: "
                "the noise is as large as they permit one record to change a sum"
            )
        numbers = _numbers(name, column)
        known = numbers[~np.isnan(numbers)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        return Numeric(name, low, high if high > low else low + max(abs(low), 1.0))

    def _number(self, name: str, bounds: tuple[float, float]) -> Numeric:
        low, high = map(float, bounds)
        if not -np.inf < low < high < np.inf:
            raise ValueError(f"{name}: bounds must be finite and ascend, got {low} to {high}")
        return Numeric(name, low, high)

    def _category(self, name: str, values: list[Any]) -> Variable:
        if not values:
            raise ValueError(f"{name}: a categorical column needs one value or more, got none")
        self.values[name] = values
        return Variable(name, _texts(name, values), self.missing)


def _texts(name: str, values: Sequence[Any]) -> tuple[str, ...]:
    texts = tuple(map(str, values))
    if len(set(texts)) < len(texts):
        raise ValueError(f"{name}: two values are the same as text: {', '.join(texts)}")
    return texts


def _numbers(name: str, column: pd.Series[Any]) -> NDArray[np.float64]:
    try:
        numbers = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: a value is not a number ({error})") from None
    if np.isinf(numbers).any():
        raise ValueError(f"{name}: numbers must be finite, got infinity")
    return numbers
