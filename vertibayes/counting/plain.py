"""A counter over pooled data: the oracle of every test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting.counter import Table, check_families
from vertibayes_protocols.variables import Family, Rows, Variable, axis_lengths

if TYPE_CHECKING:
    from vertibayes_protocols.site.data import SiteData

_States: TypeAlias = tuple[NDArray[np.unsignedinteger], NDArray[np.bool_] | None]  # and complete


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
        sets = [tuple(sorted(family.members)) for family in families]
        joint = _JointStates(self._data, missing, self._chosen(rows))
        # Sorted sets share prefixes with their neighbours.
        tables = {members: joint.table(members) for members in sorted(set(sets))}
        return [
            tables[one].transpose([one.index(name) for name in family.members]).copy("C")
            for one, family in zip(sets, families, strict=True)
        ]

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that cannot be counted; see `Counter.check`."""
        check_families(self.variables, families, missing)

    def _chosen(self, rows: Rows) -> NDArray[np.intp] | None:
        if rows.count(self.records) == self.records:
            return None
        order = np.random.default_rng((self._seed, rows.seed)).permutation(self.records)
        return np.sort(order[rows.first : rows.last])


class _JointStates:
    """The joint state of some variables in each record; the states of a prefix are kept.

    Joint states are numbered as the cells of a table. They have few bytes: the time of a count is
    mostly that of memory.
    """

    def __init__(self, data: SiteData, missing: bool, chosen: NDArray[np.intp] | None) -> None:
        self._data, self._chosen = data, chosen
        self._lengths = axis_lengths(data.variables, missing)
        self._codes: dict[str, NDArray[np.unsignedinteger]] = {}
        records = data.records if chosen is None else len(chosen)
        self._prefix: list[str] = []
        self._states: list[_States] = [(np.zeros(records, np.uint8), None)]  # of each length of it

    def table(self, members: Sequence[str]) -> Table:
        """Count the joint states of variables, one axis each."""
        shared = 0
        while list(members[: shared + 1]) == self._prefix[: shared + 1] and shared < len(members):
            shared += 1
        del self._prefix[shared:], self._states[shared + 1 :]
        for name in members[shared:]:
            self._append(name)
        states, complete = self._states[-1]
        shape = [self._lengths[name] for name in members]
        counted = states if complete is None else states[complete]
        return np.bincount(counted, minlength=prod(shape)).reshape(shape)

    def _append(self, name: str) -> None:
        """Add a variable to the prefix."""
        codes, length = self._codes_of(name), self._lengths[name]
        before, complete = self._states[-1]
        if self._data.variables[name].codes > length:  # a missing value is not a state
            complete = codes < length if complete is None else complete & (codes < length)
        self._prefix.append(name)
        cells = prod(map(self._lengths.__getitem__, self._prefix))
        states = before.astype(np.min_scalar_type(cells))  # may overflow where it is not complete
        states *= states.dtype.type(length)
        states += codes.astype(states.dtype, copy=False)
        self._states.append((states, complete))

    def _codes_of(self, name: str) -> NDArray[np.unsignedinteger]:
        if name not in self._codes:
            codes = self._data.codes[name]
            self._codes[name] = codes if self._chosen is None else codes[self._chosen]
        return self._codes[name]
