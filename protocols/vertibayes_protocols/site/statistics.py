"""Additive statistics of a site's records, which are summed over sites that hold other records.

A statistic of all records is the sum of the statistics of the sites. Counts are integers; numbers
are measured on a grid between declared bounds, so that their sums are integers too, and the effect
of one record on a sum is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf, prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.variables import Family, Variable

GRID_BITS = 20  # of a number between its bounds
MOST_SQUARES = (2**63 - 1) >> 2 * GRID_BITS  # of places on the grid that add up within int64
HALF_BITS = 11  # of a number between the middle of its bounds and a bound, where noise is added


class Numeric(NamedTuple):
    """A column of numbers."""

    name: str
    low: float  # the declared bounds; a number beyond a bound counts as the bound
    high: float

    def check(self) -> None:
        """Refuse bounds that do not ascend, are not finite, or leave no number between them."""
        if not -inf < self.low < self.middle < self.high < inf:
            raise DataError(
                f"{self.name}: bounds must be finite and ascend, got {self.low:g} to {self.high:g}"
            )

    def beyond(self, values: NDArray[np.float64]) -> int:
        """Return how many numbers lie beyond the bounds."""
        return int(((values < self.low) | (values > self.high)).sum())

    def grid(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the places of numbers on the grid, from 0 to 2**20; -1 where one is missing."""
        missing = np.isnan(values)
        within = np.clip(values, self.low, self.high)
        share = np.where(missing, 0.0, (within - self.low) / (self.high - self.low))
        places = np.rint(np.clip(share, 0.0, 1.0) * 2**GRID_BITS).astype(np.int64)
        return np.where(missing, -1, places)

    @property
    def step(self) -> float:
        """The distance between two places of the grid, in the column's unit."""
        return (self.high - self.low) / (1 << GRID_BITS)

    def centred(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return places about the middle of the bounds, from -2**11 to 2**11; 0 where missing."""
        within = np.clip(values, self.low, self.high)
        share = np.nan_to_num((within - self.middle) / (self.high - self.middle))
        return np.asarray(np.rint(np.clip(share, -1.0, 1.0) * 2**HALF_BITS), np.int64)

    @property
    def middle(self) -> float:
        """The middle of the bounds."""
        return self.low + (self.high - self.low) / 2

    @property
    def centred_step(self) -> float:
        """The distance between two places about the middle, in the column's unit."""
        return (self.high - self.middle) / (1 << HALF_BITS)


class Counts(NamedTuple):
    """The tables of families, each over the records that are complete in the family."""

    families: tuple[Family, ...]


class Moments(NamedTuple):
    """The count, sum and sum of squares of numbers on their grids, in each state of `by`.

    Centred, they are the sum and the sum of squares about the middle of the bounds. Noise is added
    to these: a record changes two sums of a column, each by as little as the bounds permit. A
    missing number counts as the middle.
    """

    columns: tuple[str, ...]
    by: str
    centred: bool = False


Statistic: TypeAlias = Counts | Moments
N = TypeVar("N", bound=np.generic)


class Part(NamedTuple):
    """Values of a statistic of which one record changes one at most, and by how much at most."""

    cells: int
    Delta: int


def parts(statistic: Statistic, variables: Mapping[str, Variable]) -> list[Part]:
    """Return the parts of a statistic, in the order of its values."""
    sizes = shapes(statistic, variables)
    if isinstance(statistic, Counts):
        return [Part(prod(shape), 1) for shape in sizes]
    if not statistic.centred:
        raise ValueError(f"{', '.join(statistic.columns)}: noise needs centred moments")
    return [Part(states, 1 << power * HALF_BITS) for _, states in sizes for power in (1, 2)]


@dataclass(frozen=True)
class LocalData:
    """The records of one party; other parties hold other records with the same columns."""

    variables: Mapping[str, Variable]  # with declared states, the same at all parties
    codes: Mapping[str, NDArray[np.integer]] = field(repr=False)  # ``len(states)`` where missing
    numerics: Mapping[str, Numeric] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)  # or NaN

    def __post_init__(self) -> None:
        if set(self.variables) != set(self.codes) or set(self.numerics) != set(self.numbers):
            raise DataError("the data must have one column per variable, and no other columns")
        if len({len(column) for column in (*self.codes.values(), *self.numbers.values())}) != 1:
            raise DataError("the data must have at least one column, all of the same length")
        for name, column in self.codes.items():
            states = len(self.variables[name].states)
            if len(column) and not 0 <= column.min() <= column.max() <= states:
                raise DataError(f"{name}: codes must be between 0 and {states}")
        check_numbers(self.numerics, self.numbers)

    @property
    def records(self) -> int:
        """The number of records."""
        return len(next(iter((*self.codes.values(), *self.numbers.values()))))

    def rows(self, places: NDArray[np.integer]) -> LocalData:
        """Return the data of some records."""
        codes = {name: column[places] for name, column in self.codes.items()}
        numbers = {name: column[places] for name, column in self.numbers.items()}
        return LocalData(self.variables, codes, self.numerics, numbers)


def check_numbers(
    numerics: Mapping[str, Numeric], numbers: Mapping[str, NDArray[np.float64]]
) -> None:
    """Refuse columns of numbers whose bounds are out of range, or whose numbers are not finite."""
    for name, numeric in numerics.items():
        numeric.check()
        if np.isinf(numbers[name]).any():
            raise DataError(f"{name}: numbers must be finite")


def shapes(statistic: Statistic, variables: Mapping[str, Variable]) -> list[tuple[int, ...]]:
    """Return each array's shape: a family's; of a column (3, states), or (2, states) if centred."""
    named = (
        [statistic.by]
        if isinstance(statistic, Moments)
        else [name for family in statistic.families for name in family.members]
    )
    unknown = [name for name in named if name not in variables]
    if unknown:
        raise DataError(f"variable not found: {unknown[0]!r}")
    if isinstance(statistic, Moments):
        rows = 2 if statistic.centred else 3
        return [(rows, len(variables[statistic.by].states)) for _ in statistic.columns]
    return [
        tuple(len(variables[name].states) for name in family.members)
        for family in statistic.families
    ]


def measure(statistics: Sequence[Statistic], data: LocalData) -> NDArray[np.int64]:
    """Return the statistics of a party's records as one flat array."""
    arrays = [array for statistic in statistics for array in _arrays(statistic, data)]
    return np.concatenate([array.reshape(-1) for array in arrays] or [np.zeros(0, np.int64)])


def length(statistics: Sequence[Statistic], variables: Mapping[str, Variable]) -> int:
    """Return the number of integers in the statistics."""
    return sum(prod(shape) for s in statistics for shape in shapes(s, variables))


def apart(
    statistics: Sequence[Statistic], variables: Mapping[str, Variable], values: NDArray[N]
) -> list[list[NDArray[N]]]:
    """Return the arrays of each statistic from their flat values: the inverse of `measure`."""
    expected = length(statistics, variables)
    if values.shape != (expected,):
        raise ValueError(f"the values must have the shape {(expected,)}, got {values.shape}")
    ends = accumulate(prod(shape) for s in statistics for shape in shapes(s, variables))
    arrays = iter(np.split(values, [*ends]))
    return [
        [next(arrays).reshape(shape) for shape in shapes(statistic, variables)]
        for statistic in statistics
    ]


def _arrays(statistic: Statistic, data: LocalData) -> list[NDArray[np.int64]]:
    if isinstance(statistic, Moments):
        return [_moments(data, name, statistic) for name in statistic.columns]
    pairs = zip(statistic.families, shapes(statistic, data.variables), strict=True)
    return [_table(data, family, shape) for family, shape in pairs]


def _table(data: LocalData, family: Family, shape: tuple[int, ...]) -> NDArray[np.int64]:
    codes = np.array([data.codes[name] for name in family.members], np.int64)
    complete = (codes < np.array(shape)[:, None]).all(axis=0)
    places = np.ravel_multi_index(tuple(codes[:, complete]), shape)
    return np.bincount(places, minlength=prod(shape)).reshape(shape)


def _moments(data: LocalData, name: str, moments: Moments) -> NDArray[np.int64]:
    if name not in data.numerics:
        raise DataError(f"column of numbers not found: {name!r}")
    numeric, numbers = data.numerics[name], data.numbers[name]
    if moments.centred:
        every = np.ones(len(numbers), bool)
        return _powers(data, moments.by, numeric.centred(numbers), every, range(1, 3))
    places = numeric.grid(numbers)
    return _powers(data, moments.by, places, places >= 0, range(3))


def _powers(
    data: LocalData, by: str, places: NDArray[np.int64], known: NDArray[np.bool_], powers: range
) -> NDArray[np.int64]:
    """Return the sums of powers of the known places, in each state of a variable."""
    states = len(data.variables[by].states)
    known = known & (data.codes[by] < states)
    group, numbers = data.codes[by][known].astype(np.int64), places[known]
    pieces: list[NDArray[np.int64]] = []
    for at in range(0, max(len(numbers), 1), MOST_SQUARES):
        pieces.append(np.zeros((len(powers), states), np.int64))
        piece = slice(at, at + MOST_SQUARES)
        for row, power in zip(pieces[-1], powers, strict=True):
            np.add.at(row, group[piece], numbers[piece] ** power)
    return pieces[0] if len(pieces) == 1 else exact_sum(pieces)


def exact_sum(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the sum of arrays of one shape; that of integers is exact."""
    if any(array.dtype.kind == "f" for array in arrays):
        return np.asarray(np.sum([array.astype(np.float64) for array in arrays], axis=0))
    total = np.asarray(np.sum([array.astype(object) for array in arrays], axis=0))
    try:
        return np.asarray(total.astype(np.int64))
    except OverflowError:
        return np.asarray(total)
