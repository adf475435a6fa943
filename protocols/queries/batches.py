"""Families in batches whose extensions fit a memory budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

from mpc.ring import Ring
from protocols.queries.tables import grouped
from protocols.roles import Study
from protocols.variables import Family

COPIES = 3  # of an extension at one party, while it is put together and multiplied
MOST_CELLS = 10_000_000  # opened by one query
MOST_FAMILIES = 500_000  # in one query


def batches(
    study: Study, families: Sequence[Family], records: int, budget: int
) -> Iterator[list[Family]]:
    """Cut families into batches, each for one query; those with one prefix come together.

    Parameters
    ----------
    study : Study
    families : sequence of Family
    records : int
        How many are counted.
    budget : int
        Bytes that a batch's extensions, in one block of rows and at all parties in one process,
        may take.

    Raises
    ------
    ValueError
        If the extensions of one prefix alone take more: it names the prefix.
    """
    rows = min(records, study.block_rows)
    unit = rows * Ring.holding(study.records).dtype.itemsize * COPIES * (len(study.sites) + 1)
    batch: list[Family] = []
    terms: set[frozenset[str]] = set()
    size = cells = 0
    for (prefix, extended), places in grouped(families).items():
        own = _terms(prefix) if extended else set()
        _check_prefix(prefix, _width(study, own) * unit, rows, budget)
        for family in (families[i] for i in places):
            added = _width(study, own - terms) * unit
            more = _cells(study, family)
            full = cells + more > MOST_CELLS or len(batch) == MOST_FAMILIES
            if batch and (full or size + added > budget):
                yield batch
                batch, terms, size, cells = [], set(), 0, 0
                added = _width(study, own) * unit
            batch.append(family)
            terms |= own
            size += added
            cells += more
    if batch:
        yield batch


def _check_prefix(prefix: tuple[str, ...], size: int, rows: int, budget: int) -> None:
    if size > budget:
        raise ValueError(
            f"the extension of {', '.join(prefix)} takes {size:,} bytes in a block of {rows} "
            f"records, the memory budget is {budget:,}: fewer parents or smaller blocks are wanted"
        )


def _terms(prefix: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the products of several variables that a prefix's tables need."""
    sizes = range(2, len(prefix) + 1)
    return {frozenset(term) for size in sizes for term in combinations(prefix, size)}


def _cells(study: Study, family: Family) -> int:
    return prod(study.variables[name].codes for name in family.members)


def _width(study: Study, terms: set[frozenset[str]]) -> int:
    """Return the number of columns of terms."""
    return sum(prod(study.variables[name].codes - 1 for name in term) for term in terms)
