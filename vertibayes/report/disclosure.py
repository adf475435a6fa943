"""How much the revealed tables say about single records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes.counting import Table
from vertibayes.words import percent
from vertibayes_protocols.variables import Rows

MOST_LOOKUPS = 1 << 28  # of records in tables: a few seconds

# A table, with its variables and the records that it counts.
Revealed: TypeAlias = tuple[tuple[str, ...], Rows, Table]


class KnownRecords(NamedTuple):
    """The records that tables count, in a process that has all of them."""

    codes: Mapping[str, NDArray[np.integer]]  # by variable, in the order of the study
    chosen: Callable[[Rows], NDArray[np.integer] | None] = lambda _: None  # places; None for all


class Disclosure(NamedTuple):
    """Cells that count 1: exactly one record has these values."""

    tables: int  # the number of revealed tables with such a cell
    cells: int  # the number of such cells in all tables
    records: int  # how many records these cells count; if not `exact`, a lower bound
    share: float  # the share of `records` in all records
    exact: bool = False

    def sentence(self, remedy: str) -> str:
        """Return the warning that a command prints; `remedy` says what to do."""
        of = round(self.records / self.share)
        are = "is" if self.records == 1 else "are"
        return (
            f"{'' if self.exact else 'at least '}{self.records:,} of {of:,} records "
            f"({percent(self.share)}) {are} alone in a revealed cell: {remedy}"
        )


def disclosure(
    tables: Iterable[Revealed], records: int, known: KnownRecords | None = None
) -> Disclosure:
    """Count the cells of revealed tables that count a single record, and these records.

    Several cells can count one record, so that tables alone give a lower bound: what one table
    counts, or tables of disjoint records. With `known`, the number is exact, unless a table has an
    axis that is no variable, as the bins of a score table.
    """
    cells, looked = list[int](), 0
    most: dict[Rows, int] = {}
    alone, exact = np.zeros(records, bool), known is not None
    for members, rows, table in tables:
        one = table == 1
        if not (count := int(one.sum())):
            continue
        cells.append(count)
        most[rows] = max(most.get(rows, 0), count)
        looked += records
        if known is not None and looked <= MOST_LOOKUPS and known.codes.keys() >= {*members}:
            here = _counted_by(one, members, rows, known)
            if len(here) == count:
                alone[here] = True
                continue
            known, alone = None, np.zeros(records, bool)  # the table counts other records
        exact = False
    least = max(int(alone.sum()), _least(most, records))
    return Disclosure(len(cells), sum(cells), least, least / max(records, 1), exact)


def _counted_by(
    cells: NDArray[np.bool_], members: tuple[str, ...], rows: Rows, known: KnownRecords
) -> NDArray[np.intp]:
    """Return the places of the records that some cells of a table count."""
    places = known.chosen(rows)
    codes = [known.codes[name] if places is None else known.codes[name][places] for name in members]
    pairs = list(zip(codes, cells.shape, strict=True))
    inside = np.logical_and.reduce([column < length for column, length in pairs])
    here = np.flatnonzero(inside & cells[tuple(np.minimum(c, length - 1) for c, length in pairs)])
    return here if places is None else np.asarray(places[here], np.intp)


def _least(most: Mapping[Rows, int], records: int) -> int:
    """Return how many records are alone at least, given the most cells of 1 of a table of each."""
    splits = [[rows for rows in most if rows.seed == seed] for seed in {r.seed for r in most}]
    sums = [sum(most[rows] for rows in split) for split in splits if _are_disjoint(split, records)]
    return max([*most.values(), *sums], default=0)


def _are_disjoint(split: list[Rows], records: int) -> bool:
    ends = sorted((rows.first, records if rows.last is None else rows.last) for rows in split)
    return all(last <= first for (_, last), (first, _) in pairwise(ends))
