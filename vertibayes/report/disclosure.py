"""How much the opened tables say about single records."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from protocols.variables import Rows
from vertibayes.counting import Table
from vertibayes.report.words import counted, percent


class Disclosure(NamedTuple):
    """Joint cells of 1: each says that one record, and no other, has these values.

    Parameters
    ----------
    tables : int
        Opened tables with such a cell.
    cells : int
        Such cells in all tables.
    records : int
        Records singled out at least: the most such cells in one table, which are of different
        records, added up over tables of disjoint record sets. How many more there are, and what
        differences of tables single out, tables alone do not tell.
    share : float
        `records` of all records.
    """

    tables: int
    cells: int
    records: int
    share: float

    def sentence(self) -> str:
        """Return the warning that `learn` prints."""
        cells, records = counted(self.cells, "cell"), counted(self.records, "record")
        count = "counts" if self.cells == 1 else "count"
        are = "is" if self.records == 1 else "are"
        return (
            f"{cells} of {counted(self.tables, 'opened table')} {count} a single record: at least "
            f"{records} ({percent(self.share)}) {are} singled out, not counting what differences "
            "of tables tell"
        )


def disclosure(opened: Iterable[tuple[Rows, Table]], records: int) -> Disclosure:
    """Count the cells of 1 in opened tables.

    Parameters
    ----------
    opened : iterable of (Rows, ndarray)
        Each table, and over which records.
    records : int
        Of all sites.
    """
    ones = [(rows, int((table == 1).sum())) for rows, table in opened]
    most: dict[Rows, int] = {}
    for rows, count in ones:
        most[rows] = max(most.get(rows, 0), count)
    splits = [[rows for rows in most if rows.seed == seed] for seed in {r.seed for r in most}]
    sums = [sum(most[rows] for rows in split) for split in splits if _are_disjoint(split, records)]
    least = max([*most.values(), *sums], default=0)
    counts = [count for _, count in ones]
    return Disclosure(sum(map(bool, counts)), sum(counts), least, least / max(records, 1))


def _are_disjoint(split: list[Rows], records: int) -> bool:
    ends = sorted((rows.first, records if rows.last is None else rows.last) for rows in split)
    return all(last <= first for (_, last), (first, _) in pairwise(ends))
