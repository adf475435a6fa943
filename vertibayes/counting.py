"""Counters: who asks for contingency tables does not know who counts, or how.

`PlainCounter` counts pooled data and is the oracle of every test; `secure_counter.SecureCounter`
asks a federation and gives identical tables. Learners are written against `Counter` and ask for
many families at once: a call is a few rounds on the network, a family in it is almost free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from protocols.variables import Family, Rows, Variable

Table: TypeAlias = NDArray[np.int64]

MOST_CELLS = 10_000_000  # of one table
CELLS_AT_A_TIME = 1 << 22  # of the tables that a learner holds at once: 32 MiB


class Counter(Protocol):
    """Counts over all records."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the study's order."""
        ...

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def most_variables(self) -> int | None:
        """How many variables a table may have; None if that is not limited."""
        ...

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families.

        Parameters
        ----------
        families : sequence of Family
        missing : bool, default=False
            False counts the records that are complete in the family. True appends a last index,
            "missing", to each axis whose variable has missing cells.
        rows : Rows, default=Rows()
            Over which records; all by default.

        Returns
        -------
        tables : list of ndarray, dtype int64, C-contiguous
            One a family, in order; axis 0 the child, then the parents as given, each axis in the
            order of `Variable.states`.

        Raises
        ------
        ValueError
            If a variable is unknown or appears twice in a family, or a table has too many cells.
        """
        ...

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted, before any of them is.

        Raises
        ------
        ValueError
            As `tables`; also if a table would take more memory than a party allows.
        """
        ...


def axis_lengths(variables: Mapping[str, Variable], missing: bool) -> dict[str, int]:
    """Return how long the axis of each variable is in a table."""
    return {name: v.codes if missing else len(v.states) for name, v in variables.items()}


def cells_of(lengths: Mapping[str, int], family: Family) -> int:
    """Return the number of cells of a family's table."""
    return prod(map(lengths.__getitem__, family.members))


def portions(lengths: Mapping[str, int], families: Sequence[Family]) -> Iterator[list[Family]]:
    """Cut families into portions whose tables can be held in memory at once, one at least."""
    portion: list[Family] = []
    held = 0
    for family in families:
        cells = cells_of(lengths, family)
        if portion and held + cells > CELLS_AT_A_TIME:
            yield portion
            portion, held = [], 0
        portion.append(family)
        held += cells
    if portion:
        yield portion


def check_families(
    variables: Mapping[str, Variable], families: Sequence[Family], missing: bool
) -> None:
    """Refuse families that cannot be counted.

    Raises
    ------
    ValueError
        It names the variable, or the family whose table is too large.
    """
    lengths = axis_lengths(variables, missing)
    for family in families:
        for name in family.members:
            if name not in variables:
                raise ValueError(f"no variable {name!r}; known are {', '.join(variables)}")
        if len(set(family.members)) < len(family.members):
            raise ValueError(f"a variable appears twice in the family {family.members}")
        cells = cells_of(lengths, family)
        if cells > MOST_CELLS:
            raise ValueError(
                f"the table of {', '.join(family.members)} has {cells} cells; a table may have at "
                f"most {MOST_CELLS}: choose fewer parents"
            )


class PlainCounter:
    """Counts pooled data.

    Parameters
    ----------
    data : SiteData
        All columns.
    seed : int, default=0
        Of the permutations that `Rows` choose from; a federation draws its own.
    """

    most_variables = None

    def __init__(self, data: SiteData, *, seed: int = 0) -> None:
        self._data = data
        self._seed = seed

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables, in the order of the data."""
        return self._data.variables

    @property
    def records(self) -> int:
        """The number of records."""
        return self._data.records

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families; see `Counter.tables`."""
        check_families(self.variables, families, missing)
        chosen = self._chosen(rows)
        return [self._table(family, missing, chosen) for family in families]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that cannot be counted; see `Counter.check`."""
        check_families(self.variables, families, missing)

    def _chosen(self, rows: Rows) -> NDArray[np.intp] | None:
        if rows.count(self.records) == self.records:
            return None
        order = np.random.default_rng((self._seed, rows.seed)).permutation(self.records)
        return np.sort(order[rows.first : rows.last])

    def _table(self, family: Family, missing: bool, chosen: NDArray[np.intp] | None) -> Table:
        members = [self.variables[name] for name in family.members]
        shape = [v.codes if missing else len(v.states) for v in members]
        flat = np.zeros(self.records if chosen is None else len(chosen), np.int64)
        complete = np.ones(len(flat), np.bool_)
        for variable, length in zip(members, shape, strict=True):
            codes = self._data.codes[variable.name]
            codes = codes if chosen is None else codes[chosen]
            complete &= codes < length
            flat *= length
            flat += codes
        return np.bincount(flat[complete], minlength=prod(shape)).reshape(shape)


class Without:
    """A counter of all records but some: counts are additive, so it takes a difference.

    Parameters
    ----------
    counter : Counter
    rows : Rows
        Those left out.
    """

    def __init__(self, counter: Counter, rows: Rows) -> None:
        self._counter, self._rows = counter, rows
        self.variables, self.most_variables = counter.variables, counter.most_variables
        self.records = counter.records - rows.count(counter.records)

    def tables(
        self, families: Sequence[Family], *, missing: bool = False, rows: Rows = Rows()
    ) -> list[Table]:
        """Count families over all records but those left out; see `Counter.tables`.

        Raises
        ------
        ValueError
            Also if a choice of rows is asked.
        """
        if rows != Rows():
            raise ValueError("rows cannot be chosen among those of a difference")
        everything = self._counter.tables(families, missing=missing)
        some = self._counter.tables(families, missing=missing, rows=self._rows)
        return [a - b for a, b in zip(everything, some, strict=True)]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be counted; see `Counter.check`."""
        self._counter.check(families, missing=missing)
