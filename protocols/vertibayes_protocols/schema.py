"""A class and its features: what naive Bayes counts, declared before any data.

A `Schema` says which statistics are summed over records, parties or batches; `Declaration` says the
same of any statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.statistics import (
    Counts,
    LocalData,
    Moments,
    Numeric,
    Statistic,
    measure,
)
from vertibayes_protocols.variables import Family, Variable


class Declared(Protocol):
    """Statistics, and the variables that they are of: the same at all parties."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The categorical variables."""
        ...

    @property
    def numerics(self) -> Mapping[str, Numeric]:
        """The columns of numbers."""
        ...

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is summed."""
        ...


def check_declared(holder: str, declared: Declared, data: LocalData) -> None:
    """Refuse records of other states or bounds than declared."""
    for name, variable in declared.variables.items():
        own = data.variables.get(name)
        if own is None or own.states != variable.states:
            raise DataError(f"{holder} does not have {name!r} in the declared states")
    for name, numeric in declared.numerics.items():
        if data.numerics.get(name) != numeric:
            raise DataError(f"{holder} does not have {name!r} between the declared bounds")


@dataclass(frozen=True)
class Declaration:
    """Statistics of any variables; see `Declared`."""

    variables: Mapping[str, Variable]
    numerics: Mapping[str, Numeric]
    statistics: tuple[Statistic, ...]

    def __post_init__(self) -> None:
        check_columns(self.variables, self.numerics)
        for statistic in self.statistics:
            if isinstance(statistic, Counts):
                self._check_tables(statistic)
            else:
                self._check_moments(statistic)

    def _check_tables(self, counts: Counts) -> None:
        for family in counts.families:
            self._check_variables(family.members)
            if len(set(family.members)) < len(family.members):
                raise ValueError("a table has a variable twice")

    def _check_moments(self, moments: Moments) -> None:
        self._check_variables((moments.by,))
        if unknown := [name for name in moments.columns if name not in self.numerics]:
            raise ValueError(f"{min(unknown)!r} is not a declared column of numbers")
        if not moments.columns:
            raise ValueError("moments of no column are asked for")

    def _check_variables(self, names: Iterable[str]) -> None:
        if unknown := [name for name in names if name not in self.variables]:
            raise ValueError(f"variable not found: {unknown[0]!r}")


def check_columns(variables: Mapping[str, Variable], numerics: Mapping[str, Numeric]) -> None:
    """Refuse columns that are declared twice, or under another name, with a ValueError."""
    if both := variables.keys() & numerics.keys():
        raise ValueError(f"{min(both)!r} is declared with states and with bounds")
    columns: dict[str, Variable | Numeric] = {**variables, **numerics}
    for name, column in columns.items():
        if column.name != name:
            raise ValueError(f"the column {name!r} is named {column.name!r}")


@dataclass(frozen=True)
class Schema:
    """What a naive Bayes model is about: the same at all parties, declared before any data."""

    target: Variable
    features: Mapping[str, Variable | Numeric]  # with their states, or with their bounds
    centred: bool = False  # whether numbers are summed about the middle of their bounds, for noise

    def __post_init__(self) -> None:
        if len(self.target.states) < 2:
            raise ValueError(f"the target {self.target.name} has fewer than two classes")
        if self.target.name in self.features:
            raise ValueError(f"the target {self.target.name} is a feature too")
        for name, feature in self.features.items():
            if feature.name != name:
                raise ValueError(f"the feature {name} is named {feature.name!r}")
            if isinstance(feature, Variable) and not feature.states:
                raise ValueError(f"the feature {name} has no states")

    @property
    def categorical(self) -> tuple[str, ...]:
        """The names of the categorical features."""
        return tuple(n for n, feature in self.features.items() if isinstance(feature, Variable))

    @property
    def numeric(self) -> tuple[str, ...]:
        """The names of the features that are numbers."""
        return tuple(n for n, feature in self.features.items() if isinstance(feature, Numeric))

    @property
    def numerics(self) -> dict[str, Numeric]:
        """The features that are numbers."""
        return {n: f for n, f in self.features.items() if isinstance(f, Numeric)}

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The target and the categorical features."""
        target = {self.target.name: self.target}
        return target | {n: f for n, f in self.features.items() if isinstance(f, Variable)}

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is summed: the classes, each categorical feature by class, moments by class."""
        target = self.target.name
        families = (Family(target), *(Family(name, (target,)) for name in self.categorical))
        counts = Counts(families)
        if not self.numeric:
            return (counts,)
        return counts, Moments(self.numeric, target, self.centred)

    def measure(self, data: LocalData) -> NDArray[np.int64]:
        """Return the statistics of a party's records, flat."""
        return measure(self.statistics, data)
