"""Which tables are counted by products and which by shuffle, and how many fit into one query.

The choice is a function of public sizes, and all parties make it from the query: an analyst cannot
choose a way for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from protocols.queries.costs import MOST_CELLS, Costs, TableSize
from protocols.variables import Family

MOST_FAMILIES = 500_000  # in one query


class Group(NamedTuple):
    """The tables of one prefix with each of several last variables; the prefix's own if none.

    Families that agree in all but the last parent are a group: they share the products of the
    others.

    Attributes
    ----------
    prefix : tuple of str
    lasts : tuple of str
    """

    prefix: tuple[str, ...]
    lasts: tuple[str, ...]

    @property
    def families(self) -> list[Family]:
        """Its families, in order."""
        child, *parents = self.prefix
        if not self.lasts:
            return [Family(child)]
        return [Family(child, (*parents, last)) for last in self.lasts]


def grouped(families: Sequence[Family]) -> list[Group]:
    """Group families by all members but the last parent."""
    groups: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for family in families:
        prefix = family.members[:-1] or family.members
        groups.setdefault((prefix, bool(family.parents)), []).extend(family.parents[-1:])
    return [Group(prefix, tuple(lasts)) for (prefix, _), lasts in groups.items()]


class Load(NamedTuple):
    """What tables take at one party.

    Attributes
    ----------
    extended, rows : int
        Columns of products, and columns that are multiplied; see `Costs.products_memory`.
    shuffled : int
        Bytes of the shuffled tables.
    cells, tables : int
        How many are opened.
    """

    extended: int = 0
    rows: int = 0
    shuffled: int = 0
    cells: int = 0
    tables: int = 0

    def plus(self, other: Load) -> Load:
        """Return both together."""
        return Load(*(a + b for a, b in zip(self, other, strict=True)))

    def memory(self, costs: Costs) -> int:
        """Return how many bytes it takes at a party: first the products, then the shuffles."""
        products = costs.products_memory(self.extended, self.rows) if self.rows else 0
        shuffles = costs.shuffling_memory + self.shuffled if self.shuffled else 0
        return max(products, shuffles)

    def fits(self, costs: Costs) -> bool:
        """Whether one query may have all of it."""
        few = self.cells <= MOST_CELLS and self.tables <= MOST_FAMILIES
        return few and self.memory(costs) <= costs.memory


class Ways(NamedTuple):
    """How the tables of a group are counted.

    Attributes
    ----------
    shuffled : list of bool
        Of each table, whether it is counted by shuffle; else it is by products.
    load : Load
        What all of them take.
    """

    shuffled: list[bool]
    load: Load


def choose_ways(costs: Costs, group: Group) -> Ways:
    """Choose the way that is cheaper for each table of a group.

    Tables by products share the extension of their prefix: it is worth its cost for all tables
    that are then cheaper than by shuffle, or for none. Products that do not fit the memory are
    shuffled instead. A shuffle is never replaced by products, which tell the dealer more if it
    works with the analyst, who sets the memory.

    Raises
    ------
    ValueError
        If a table that is shuffled does not fit the memory: it says how much would do.
    """
    extended = costs.width(group.prefix)
    rows = extended + sum(costs.codes[name] - 1 for name in group.prefix)
    extends = costs.products_memory(extended, rows) <= costs.memory
    sizes = costs.sizes(*group)
    shuffled, apart, together = [], 0, costs.extension(group.prefix).weight
    for size in sizes:
        shuffle, products = costs.weights(size)
        shuffled.append(not (extends and size.narrow and products < shuffle))
        together += shuffle if shuffled[-1] else products
        apart += shuffle
    if apart <= together:
        shuffled = [True] * len(sizes)
    for family, size, way in zip(group.families, sizes, shuffled, strict=True):
        if way and not costs.can_shuffle(size):
            raise ValueError(_too_little(costs, size, family))
    memory = sum(costs.shuffle_memory(s) for s, way in zip(sizes, shuffled, strict=True) if way)
    products_load = (0, 0) if all(shuffled) else (extended, rows)
    cells = sum(size.cells for size in sizes)
    return Ways(shuffled, Load(*products_load, memory, cells, len(sizes)))


def _too_little(costs: Costs, size: TableSize, family: Family) -> str:
    needed = costs.shuffling_memory + costs.shuffle_memory(size)
    return (
        f"the table of {', '.join(family.members)} takes {needed:,} bytes of memory at each "
        f"party, and a query may take {costs.memory:,}: allow more memory, or fewer parents"
    )


def batches(costs: Costs, families: Sequence[Family]) -> Iterator[list[Family]]:
    """Cut families into queries that fit the study's memory; those of one prefix come together.

    Raises
    ------
    ValueError
        As `choose_ways`.
    """
    batch: dict[tuple[tuple[str, ...], bool], Group] = {}
    total = Load()
    for piece, own in (found for group in grouped(families) for found in _pieces(costs, group)):
        key = piece.prefix, bool(piece.lasts)
        if batch and (key in batch or not total.plus(own).fits(costs)):
            yield [family for group in batch.values() for family in group.families]
            batch, total = {}, Load()
        batch[key], total = piece, total.plus(own)
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
