"""Families in batches whose extensions fit a memory budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

from mpc.ring import Ring
from protocols.roles import Study
from protocols.variables import Family

COPIES = 3  # of an extension at one party, while it is put together and multiplied
MOST_CELLS = 10_000_000  # opened by one query


def batches(
    study: Study, families: Sequence[Family], records: int, budget: int
) -> Iterator[list[Family]]:
    """Cut families into batches; those with one prefix stay together.

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
    groups: dict[tuple[str, ...], list[Family]] = {}
    for family in families:
        groups.setdefault(family.members[:-1], []).append(family)
    batch: list[Family] = []
    terms: set[frozenset[str]] = set()
    size = cells = 0
    for prefix, members in groups.items():
        own = _terms(prefix)
        new = own - terms
        added = _width(study, new) * unit
        more = sum(_cells(study, family) for family in members)
        if batch and (size + added > budget or cells + more > MOST_CELLS):
            yield batch
            batch, terms, size, cells = [], set(), 0, 0
            added = _width(study, own) * unit
        if added > budget:
            raise ValueError(
                f"the extension of {', '.join(prefix)} takes {added:,} bytes in a block of "
                f"{rows} records, the memory budget is {budget:,}: fewer parents (--max-parents), "
                "or smaller blocks, are wanted"
            )
        batch += members
        terms |= own
        size += added
        cells += more
    if batch:
        yield batch


def _terms(prefix: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the products of several variables that a prefix's tables need."""
    sizes = range(2, len(prefix) + 1)
    return {frozenset(term) for size in sizes for term in combinations(prefix, size)}


def _cells(study: Study, family: Family) -> int:
    return prod(study.variables[name].codes for name in family.members)


def _width(study: Study, terms: set[frozenset[str]]) -> int:
    """Return the number of columns of terms."""
    return sum(prod(study.variables[name].codes - 1 for name in term) for term in terms)
