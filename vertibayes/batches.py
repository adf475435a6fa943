"""Families in batches whose extensions fit a memory budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

from mpc.ring import Ring
from protocols.roles import Study
from protocols.variables import Family

COPIES = 5  # of an extension at one party, while it is put together and multiplied


def batches(
    study: Study, families: Sequence[Family], records: int, budget: int
) -> Iterator[list[Family]]:
    """Cut families into batches; those with one prefix stay together.

    A batch's extensions, in one block of rows and with all parties in one process, take at most
    `budget` bytes, unless those of a single prefix take more.
    """
    rows = min(records, study.block_rows)
    unit = rows * Ring.holding(study.records).dtype.itemsize * COPIES * (len(study.sites) + 1)
    groups: dict[tuple[str, ...], list[Family]] = {}
    for family in families:
        groups.setdefault(family.members[:-1], []).append(family)
    batch: list[Family] = []
    terms: set[frozenset[str]] = set()
    for prefix, members in groups.items():
        new = {
            frozenset(t) for size in range(1, len(prefix) + 1) for t in combinations(prefix, size)
        }
        if batch and _width(study, terms | new) * unit > budget:
            yield batch
            batch, terms = [], set()
        batch += members
        terms |= new
    if batch:
        yield batch


def _width(study: Study, terms: set[frozenset[str]]) -> int:
    """Return the columns of terms of several variables."""
    return sum(
        prod(study.variables[name].codes - 1 for name in term) for term in terms if len(term) > 1
    )
