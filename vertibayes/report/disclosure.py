"""How much the revealed tables say about single records."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from vertibayes.counting import Table
from vertibayes.words import counted, percent
from vertibayes_protocols.variables import Rows


class Disclosure(NamedTuple):
    """Cells that count 1: exactly one record has these values."""

    tables: int  # the number of revealed tables with such a cell
    cells: int  # the number of such cells in all tables
    records: int  # a lower bound for the number of singled-out records
    share: float  # the share of `records` in all records

    def sentence(self) -> str:
        """Return the warning that `learn` prints."""
        cells, records = counted(self.cells, "cell"), counted(self.records, "record")
        count = "counts" if self.cells == 1 else "count"
        are = "is" if self.records == 1 else "are"
        return (
            f"{cells} of {counted(self.tables, 'revealed table')} {count} a single record: at "
            f"least {records} ({percent(self.share)}) {are} singled out; differences of tables may "
            "single out more"
        )


def disclosure(tables: Iterable[tuple[Rows, Table]], records: int) -> Disclosure:
    """Count the cells of revealed tables that count a single record."""
    ones = [(rows, int((table == 1).sum())) for rows, table in tables]
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
