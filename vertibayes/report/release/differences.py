"""Small counts that released tables show: alone, or as the difference of two margins.

Two tables that have variables in common have a margin over these variables in common. If a rule
hides counts of one of the tables, the margins differ, and the difference is a count that one table
hides and the other shows. The margin over no variables is the sum of a table. The number of
records is public, so that the sum is compared with this number too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from vertibayes.counting import Table
from vertibayes_protocols.variables import Family

Tables: TypeAlias = Sequence[tuple[Family, Table]]


class Difference(NamedTuple):
    """A margin of one table less the same margin of another table."""

    variables: tuple[str, ...]  # the variables of the margin; empty for the sums of the tables
    codes: tuple[int, ...]  # the state of each variable
    # The places of the tables with the larger and the smaller count.
    larger: int | None
    smaller: int | None
    counted: int  # the difference


class SmallCell(NamedTuple):
    """A small count of a table or of a margin of it."""

    variables: tuple[str, ...]  # the variables of the margin
    codes: tuple[int, ...]  # the state of each variable
    table: int  # the place of the first table that shows the count
    counted: int  # the count


def differences(tables: Tables, records: int, fewest: int) -> list[Difference]:
    """List the differences of margins that are at least 1 and below a limit.

    Each pair of tables is compared over each set of variables that both tables have. The sum of
    each table is also compared with the number of records.
    """
    margins = _margins(tables)
    margins.setdefault((), {})[None] = np.array(records)
    return [
        Difference(variables, codes, *pair, count)
        for variables, of_tables in margins.items()
        for codes, pair, count in _small_changes(of_tables, fewest)
    ]


def small_cells(tables: Tables, fewest: int) -> list[SmallCell]:
    """List the cells of tables and of their margins that are at least 1 and below a limit.

    A cell that several tables show with the same count is listed once.
    """
    first: dict[tuple[tuple[str, ...], tuple[int, ...], int], int] = {}
    for variables, of_tables in _margins(tables).items():
        for place, counts in of_tables.items():
            for codes in map(tuple, np.argwhere((counts >= 1) & (counts < fewest)).tolist()):
                first.setdefault((variables, codes, int(counts[codes])), place or 0)
    return [SmallCell(*key[:2], place, key[2]) for key, place in first.items()]


def _margins(tables: Tables) -> dict[tuple[str, ...], dict[int | None, Table]]:
    """Return the margins over each set of variables, by the place of the table."""
    margins: dict[tuple[str, ...], dict[int | None, Table]] = {}
    for place, (family, table) in enumerate(tables):
        for variables in _subsets(family.members):
            margins.setdefault(variables, {})[place] = _margin(family.members, table, variables)
    return margins


def _subsets(members: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return the sets of variables, each in one order for all tables."""
    for size in range(len(members) + 1):
        yield from combinations(sorted(members), size)


def _margin(members: tuple[str, ...], table: Table, variables: tuple[str, ...]) -> Table:
    kept = [name for name in members if name in variables]
    others = tuple(axis for axis, name in enumerate(members) if name not in variables)
    margin: Table = np.asarray(table.sum(axis=others))
    return margin.transpose([kept.index(name) for name in variables])


def _small_changes(
    of_tables: Mapping[int | None, Table], fewest: int
) -> Iterator[tuple[tuple[int, ...], tuple[int | None, int | None], int]]:
    """Return the small differences of all pairs: the cell, (larger, smaller), and the count."""
    places, counts = list(of_tables), np.stack(list(of_tables.values()))
    for first in range(len(places) - 1):
        change = counts[first] - counts[first + 1 :]
        for where in np.argwhere((change != 0) & (np.abs(change) < fewest)).tolist():
            value = int(change[tuple(where)])
            pair = places[first], places[first + 1 + where[0]]
            yield tuple(where[1:]), pair if value > 0 else pair[::-1], abs(value)
