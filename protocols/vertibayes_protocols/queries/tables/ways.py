"""Choose which tables are counted by products or by shuffle, and how many fit into one query.

The choice depends on public sizes only, and each party derives it from the query: the analyst
cannot choose the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.effects import Planned
from vertibayes_protocols.queries.tables.costs import (
    MOST_CELLS,
    TABLE_BYTES,
    TABLE_BYTES_PER_CELL,
    Columns,
    Costs,
    TableSize,
)
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family

MOST_FAMILIES, MOST_GROUPS = 100_000, 20_000  # in one query
LEAST_WEIGHT = 10**12  # picoseconds of work: a query of less is not divided,
MOST_PARTS = 16  # and one of more into so many: a session that breaks loses one of them


class Group(NamedTuple):
    """The families that differ only in the last parent: they share the products of the others."""

    prefix: tuple[str, ...]  # the child and all parents except the last
    lasts: tuple[str, ...]  # the last parents; if empty, the group is the child alone

    @property
    def families(self) -> list[Family]:
        """The families of the group, in order."""
        child, *parents = self.prefix
        if not self.lasts:
            return [Family(child)]
        return [Family(child, (*parents, last)) for last in self.lasts]


def grouped(families: Sequence[Family]) -> list[Group]:
    """Group families by all members except the last parent.

    Examples
    --------
    >>> grouped([Family("z", ("x", "y")), Family("z", ("x", "w"))])
    [Group(prefix=('z', 'x'), lasts=('y', 'w'))]
    """
    groups: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for family in families:
        prefix = family.members[:-1] or family.members
        groups.setdefault((prefix, bool(family.parents)), []).extend(family.parents[-1:])
    return [Group(prefix, tuple(lasts)) for (prefix, _), lasts in groups.items()]


def cells_of(
    groups: Sequence[Group], states: Mapping[str, int]
) -> dict[tuple[str, ...], NDArray[np.intp]]:
    """Return where the cells of each table lie among those that the sites share.

    Examples
    --------
    >>> cells_of([Group(("z",), ("x", "y"))], {"x": 2, "y": 1, "z": 2})["z", "x"]
    array([[0, 1],
           [3, 4]])
    """
    cells, at = dict[tuple[str, ...], NDArray[np.intp]](), 0
    for prefix, lasts in groups:
        lengths, widths = [states[name] for name in prefix], [states[name] for name in lasts]
        size = prod(lengths) * (sum(widths) if lasts else 1)
        block = np.arange(at, at + size).reshape(*lengths, -1)
        at += size
        if not lasts:
            cells[prefix] = block[..., 0]
        ends = np.cumsum(widths)[:-1]
        tables = np.split(block, ends, axis=-1) if lasts else []
        cells |= {(*prefix, last): table for last, table in zip(lasts, tables, strict=True)}
    return cells


def check_multiplied(study: Study, names: Sequence[str], why: str) -> None:
    """Refuse a table of a column whose indicators are not committed, with a ValueError."""
    for name in names:
        codes, most = study.variables[name].codes, study.most_indicators + 1
        if codes > most:
            raise ValueError(
                f"the table of {', '.join(names)} {why}: {name!r} has {codes} states, a missing "
                f"value included, and the study multiplies columns of up to {most}; put states "
                "together, leave it out, or open the study for choices"
            )


class Load(NamedTuple):
    """What tables take at one party."""

    columns: Columns = Columns()  # the columns of products
    shuffled: int = 0  # the memory, in bytes, of the shuffled tables
    cells: int = 0  # the numbers of cells and tables that are revealed, and of groups of tables
    tables: int = 0  # the numbers of cells and tables that are revealed, and of groups of tables
    groups: int = 0  # the numbers of cells and tables that are revealed, and of groups of tables
    weight: int = 0  # the work and the time on a link, in picoseconds

    def plus(self, other: Load) -> Load:
        """Return the sum of two loads."""
        sums = (a + b for a, b in zip(self[1:], other[1:], strict=True))
        return Load(self.columns.plus(other.columns), *sums)

    def memory(self, costs: Costs) -> int:
        """Return the memory, in bytes, at a party: products are done before shuffles begin."""
        products = costs.products_memory(self.columns) if self.columns.rows else 0
        shuffles = costs.shuffling_memory + self.shuffled if self.shuffled else 0
        revealed = TABLE_BYTES * self.tables + TABLE_BYTES_PER_CELL * self.cells
        return max(products, shuffles) + revealed

    def planned(self, costs: Costs) -> Planned:
        """Return the memory at a party, and the time of all."""
        return Planned(self.memory(costs), self.weight + costs.terms_time(self.columns))

    def fits(self, costs: Costs) -> bool:
        """Whether one query may have this load."""
        few = self.cells <= MOST_CELLS and self.tables <= MOST_FAMILIES
        return few and self.groups <= MOST_GROUPS and self.memory(costs) <= costs.memory


class Ways(NamedTuple):
    """How the tables of a group are counted."""

    shuffled: list[bool]  # of each table, whether it is counted by shuffle
    load: Load  # what all tables of the group take


def choose_ways(costs: Costs, group: Group) -> Ways:
    """Choose the way that is cheaper for each table of a group.

    Tables by products share the extension of their prefix: either it pays for all tables that are
    then cheaper than by shuffle, or no table uses it. If products do not fit the memory, the tables
    are shuffled. The reverse never happens: products would tell more to a dealer that works with
    the analyst, who sets the memory.
    """
    columns = costs.columns_of(group.prefix)
    extends = costs.products_memory(columns) <= costs.memory
    sizes = costs.sizes(*group)
    shuffled, all_shuffled, mixed = [], 0, costs.extension(group.prefix).weight
    for size in sizes:
        shuffle, products = costs.weights(size)
        shuffled.append(not (extends and size.narrow and products < shuffle))
        mixed += shuffle if shuffled[-1] else products
        all_shuffled += shuffle
    if all_shuffled <= mixed:
        shuffled, mixed = [True] * len(sizes), all_shuffled
    for family, size, way in zip(group.families, sizes, shuffled, strict=True):
        if way and not costs.can_shuffle(size):
            raise ValueError(_too_little(costs, size, family))
    memory = sum(costs.shuffle_memory(s) for s, way in zip(sizes, shuffled, strict=True) if way)
    cells = sum(size.cells for size in sizes)
    taken = Columns() if all(shuffled) else columns
    return Ways(shuffled, Load(taken, memory, cells, len(sizes), 1, mixed))


def load_of(costs: Costs, groups: Iterable[Group]) -> Planned:
    """Return what the tables of groups take in one query; raises as `choose_ways`."""
    loads = (choose_ways(costs, group).load for group in groups)
    return reduce(Load.plus, loads, Load()).planned(costs)


def _too_little(costs: Costs, size: TableSize, family: Family) -> str:
    needed = costs.shuffling_memory + costs.shuffle_memory(size)
    return (
        f"the table of {', '.join(family.members)} takes {needed:,} bytes of memory at each "
        f"party, and a query may take {costs.memory:,}: allow more memory or fewer parents"
    )


def batches(costs: Costs, families: Sequence[Family]) -> Iterator[list[Family]]:
    """Divide families into queries that fit the memory; families of one prefix stay together.

    A query also has no more than a sixteenth of the predicted time of all, unless that is short or
    families of one prefix take longer.
    """
    batch: dict[tuple[tuple[str, ...], bool], Group] = {}
    total = Load()
    pieces = [piece for group in grouped(families) for piece in _pieces(costs, group)]
    most = max(LEAST_WEIGHT, sum(load.weight for _, load in pieces) // MOST_PARTS)
    for piece, load in pieces:
        key, larger = (piece.prefix, bool(piece.lasts)), total.plus(load)
        if batch and (key in batch or larger.weight > most or not larger.fits(costs)):
            yield [family for group in batch.values() for family in group.families]
            batch, total = {}, Load()
            larger = load
        batch[key], total = piece, larger
    if batch:
        yield [family for group in batch.values() for family in group.families]


def _pieces(costs: Costs, group: Group) -> Iterator[tuple[Group, Load]]:
    """Halve a group until each piece fits into one query."""
    taken = choose_ways(costs, group).load
    if len(group.lasts) < 2 or taken.fits(costs):
        yield group, taken
        return
    half = len(group.lasts) // 2
    yield from _pieces(costs, group._replace(lasts=group.lasts[:half]))
    yield from _pieces(costs, group._replace(lasts=group.lasts[half:]))
