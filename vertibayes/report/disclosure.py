"""How much the opened tables say about single records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vertibayes.counting import Table


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
        records. How many more the other tables single out, tables alone do not tell.
    share : float
        `records` of all records.
    """

    tables: int
    cells: int
    records: int
    share: float

    def sentence(self) -> str:
        """Return the warning that `learn` prints."""
        return (
            f"{self.cells} cells of {self.tables} opened tables count a single record: at least "
            f"{self.records} records ({self.share:.1%}), and at most one a cell, are singled out"
        )


def disclosure(tables: Iterable[Table], records: int) -> Disclosure:
    """Count the cells of 1 in opened tables."""
    ones = [int((table == 1).sum()) for table in tables]
    most = max(ones, default=0)
    return Disclosure(sum(map(bool, ones)), sum(ones), most, most / max(records, 1))
