"""Tables that were counted, and every table that is a margin of one of them.

A table answers for each subset of its variables, in any order of axes, if the subset's table counts
the same records. A table with missing values as a state counts all records, so that it has all its
margins, and the tables without missing values too. Without that state, a table leaves out the
records in which one of its variables misses a value: the variables that a margin leaves out must
not miss values then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting.counter import Table, margin
from vertibayes_protocols.variables import Family, Rows, Variable

_Records: TypeAlias = tuple[bool, Rows]  # of a table: missing values are a state; its records


class Asked(NamedTuple):
    """A table that is asked for, or was revealed."""

    family: Family  # the variables, in the order of the axes
    missing: bool  # whether a missing value is a state
    rows: Rows  # which records are counted


@dataclass(frozen=True)
class _KeptTable:
    """A revealed table, stored in few bytes: most cells of wide tables are 0.

    `cells` are all cells or, if `places` is given, the cells at these places; all others are 0.
    """

    family: Family
    shape: tuple[int, ...]
    cells: NDArray[np.unsignedinteger]
    places: NDArray[np.uint32] | None

    @classmethod
    def of(cls, family: Family, table: Table) -> _KeptTable:
        """Keep a table."""
        dense = table.ravel().astype(np.min_scalar_type(int(table.max(initial=0))))
        places = np.flatnonzero(dense).astype(np.uint32)
        if len(places) * (4 + dense.itemsize) < dense.nbytes:
            return cls(family, table.shape, dense[places], places)
        return cls(family, table.shape, dense, None)

    @property
    def table(self) -> Table:
        """The table, with the axes of its family."""
        if self.places is None:
            return self.cells.astype(np.int64).reshape(self.shape)
        table = np.zeros(prod(self.shape), np.int64)
        table[self.places] = self.cells
        return table.reshape(self.shape)


class _Members:
    """Sets of variables, numbered, and which of them contain a set: bit masks over the numbers."""

    def __init__(self) -> None:
        self.number = 0
        self._having: dict[str, int] = {}

    def add(self, members: Iterable[str]) -> None:
        """Add a set; its number is that of the sets before it."""
        for name in members:
            self._having[name] = self._having.get(name, 0) | 1 << self.number
        self.number += 1

    def containing(self, members: Iterable[str], excluded: Iterable[str]) -> Iterator[int]:
        """Return the sets that contain all members and no excluded variable, in order."""
        sets = (1 << self.number) - 1
        for name in members:
            sets &= self._having.get(name, 0)
        for name in excluded if sets else ():
            sets &= ~self._having.get(name, 0)
        while sets:
            yield (sets & -sets).bit_length() - 1
            sets &= sets - 1


class RevealedTables:
    """A store of tables, which answers for their margins.

    Examples
    --------
    >>> variables = {name: Variable(name, ("no", "yes")) for name in ("a", "b")}
    >>> store = RevealedTables(variables)
    >>> store.add(Asked(Family("b", ("a",)), False, Rows()), np.array([[3, 1], [2, 4]]))
    >>> store.table(Asked(Family("a"), False, Rows()))
    array([5, 5])
    """

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        self._variables = variables
        self._with_gaps = {name for name, variable in variables.items() if variable.missing}
        self._tables: dict[_Records, list[_KeptTable]] = {}
        self._members: dict[_Records, _Members] = {}

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], Rows, Table]]:
        """Return all tables, each with its variables and its records."""
        return (
            (kept.family.members, rows, kept.table)
            for (_, rows), tables in self._tables.items()
            for kept in tables
        )

    def add(self, asked: Asked, table: Table) -> None:
        """Add a table: ndarray of the shape of its family, dtype int64."""
        records = self._records_of(asked)
        self._tables.setdefault(records, []).append(_KeptTable.of(asked.family, table))
        self._members.setdefault(records, _Members()).add(asked.family.members)

    def new(self, asked: Sequence[Asked]) -> list[Asked]:
        """Return what must be asked for: no margins of tables in the store, or of each other."""
        chosen: dict[_Records, _Members] = {}
        new: set[int] = set()
        for place in sorted(range(len(asked)), key=lambda i: -len(asked[i].family.members)):
            one = asked[place]
            if not any(any(self._sources(one, sets)) for sets in (self._members, chosen)):
                chosen.setdefault(self._records_of(one), _Members()).add(one.family.members)
                new.add(place)
        return [one for place, one in enumerate(asked) if place in new]

    def table(self, asked: Asked) -> Table:
        """Return a table of the store, or a margin of one."""
        sources = [
            (state, self._tables[state, rows][number])
            for (state, rows), number in self._sources(asked, self._members)
        ]
        if not sources:
            raise KeyError(asked)
        missing_is_state, kept = min(sources, key=lambda source: prod(source[1].shape))
        table = margin(kept.table, kept.family.members, asked.family.members)
        if missing_is_state and not asked.missing:
            states = (len(self._variables[name].states) for name in asked.family.members)
            table = table[tuple(map(slice, states))]
        return np.ascontiguousarray(table)

    def _records_of(self, asked: Asked) -> _Records:
        """Say what a table counts; if its variables miss no values, `missing` is no difference."""
        any_missing = not self._with_gaps.isdisjoint(asked.family.members)
        return asked.missing and any_missing, asked.rows

    def _sources(
        self, asked: Asked, sets: Mapping[_Records, _Members]
    ) -> Iterator[tuple[_Records, int]]:
        """Return the tables that have a margin: what each counts, and its number."""
        members = asked.family.members
        complete = self._with_gaps.difference(members)  # no record may be left out because of these
        missing, rows = self._records_of(asked)
        ways = [((True, rows), ())] if missing else [((False, rows), complete), ((True, rows), ())]
        for records, excluded in ways:
            if records in sets:
                for number in sets[records].containing(members, excluded):
                    yield records, number
