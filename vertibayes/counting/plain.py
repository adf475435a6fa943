"""A counter over pooled data: the oracle of every test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from protocols.site.data import SiteData
from protocols.variables import Family, Rows, Variable
from vertibayes.counting.counter import Table, check_families


class PlainCounter:
    """Counts pooled data.

    It needs no session and no cryptography: it works on every platform.

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
