"""Choose which tables are counted by products or by shuffle, and how many fit into one query.

The choice depends on public sizes only, and each party derives it from the query: the analyst
cannot choose the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import chain
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc import masked_tables
from vertibayes_mpc.commitments import Holder, Selection
from vertibayes_mpc.lookups import LookupPlan, look_up
from vertibayes_mpc.masked_tables import Plan, share_tables
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.shuffled_tables import ShufflePlan
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.tables.costs import (
    MOST_CELLS,
    TABLE_BYTES,
    TABLE_BYTES_PER_CELL,
    Columns,
    Costs,
)
from vertibayes_protocols.query import At
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Family, Rows

MOST_FAMILIES, MOST_GROUPS = 100_000, 20_000  # in one query
LEAST_WEIGHT = 10**12  # picoseconds of work: a query of less is not divided,
MOST_PARTS = 16  # and one of more into so many: a session that breaks loses one of them
KEPT_COSTS, KEPT_WAYS = 16, 1_024  # for the next query, or the other parties of a process
ASKED = "which tables are asked, over which records"
Holders: TypeAlias = tuple[Party, ...]  # of a table, sorted
COMPLETE = "how many records are complete in the columns of tables that miss values"


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
    # The numbers of cells and tables that are revealed, and of groups of tables.
    cells: int = 0
    tables: int = 0
    groups: int = 0
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

    shuffled: tuple[bool, ...]  # of each table, whether it is counted by shuffle
    load: Load  # what all tables of the group take


@lru_cache(maxsize=KEPT_COSTS)
def costs_of(study: Study, records: int, missing: bool) -> Costs:
    """Return the costs of a study's tables: the same object for equal studies."""
    return Costs(study, records, missing)


@lru_cache(maxsize=KEPT_WAYS)
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
            needed = costs.shuffling_memory + costs.shuffle_memory(size)
            raise ValueError(
                f"the table of {', '.join(family.members)} takes {needed:,} bytes of memory at "
                f"each party, and `memory` lets a query take {costs.memory:,}: allow more memory "
                "or fewer parents"
            )
    memory = sum(costs.shuffle_memory(s) for s, way in zip(sizes, shuffled, strict=True) if way)
    cells = sum(size.cells for size in sizes)
    taken = Columns() if all(shuffled) else columns
    return Ways(tuple(shuffled), Load(taken, memory, cells, len(sizes), 1, mixed))


def load_of(costs: Costs, groups: Iterable[Group]) -> Planned:
    """Return what the tables of groups take in one query; raises as `choose_ways`."""
    loads = (choose_ways(costs, group).load for group in groups)
    return reduce(Load.plus, loads, Load()).planned(costs)


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


@dataclass(frozen=True)
class TablePlan:
    """How the parties count the tables of one query; long work waits until it is used."""

    joined: Joined  # the study, and its commitments
    groups: tuple[Group, ...]
    rows: Rows  # the records that are counted
    missing: bool  # whether a missing value is a state
    number: int  # the number of the query in the study
    by_products: bool = False

    @cached_property
    def selection(self) -> Selection:
        """The records that are counted."""
        return self.joined.selection(self.rows)

    @cached_property
    def costs(self) -> Costs:
        """What its tables cost."""
        study = self.joined.study
        return costs_of(study, self.rows.count(study.records), self.missing)

    @cached_property
    def _ways(self) -> list[Ways]:
        return [choose_ways(self.costs, group) for group in self.groups]

    @property
    def planned(self) -> Planned:
        """What the query takes, before its products are listed."""
        return reduce(Load.plus, (ways.load for ways in self._ways), Load()).planned(self.costs)

    @cached_property
    def shuffled(self) -> tuple[bool, ...]:
        """Of each table, in the order of the query, whether it is counted by shuffle."""
        if self.by_products:
            return tuple(False for group in self.groups for _ in group.families)
        return tuple(chain.from_iterable(ways.shuffled for ways in self._ways))

    @cached_property
    def multiplied(self) -> tuple[Group, ...]:
        """The tables that are counted by products."""
        if self.by_products:
            return self.groups
        groups = []
        for group, (ways, _) in zip(self.groups, self._ways, strict=True):
            if not all(ways):
                lasts = [last for last, way in zip(group.lasts, ways, strict=False) if not way]
                groups.append(Group(group.prefix, tuple(lasts)))
        return tuple(groups)

    @cached_property
    def products(self) -> Plan:
        """The plan of these tables."""
        return plan_products(self.joined, self.multiplied, self.rows, self.missing, self.number)

    @cached_property
    def shuffles(self) -> ShufflePlan:
        """The plan of the tables that are counted by shuffle."""
        families = chain.from_iterable(group.families for group in self.groups)
        tables = tuple(
            tuple(map(self.joined.study.place, family.members))
            for family, way in zip(families, self.shuffled, strict=True)
            if way
        )
        commitments = self.joined.commitments
        return ShufflePlan(commitments, tables, self.selection, self.missing, self.number)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that hold a column of a table, sorted."""
        names = (name for group in self.groups for name in (*group.prefix, *group.lasts))
        return self.joined.study.holders_of(names)

    def facts(self, at: At, asked: Iterable[Party]) -> Iterator[Fact]:
        """Go through what parties learn: which tables are asked, or complete records of a site."""
        if at.party == at.analyst:
            yield from (Fact(ASKED, at.party, (party,)) for party in asked)
            return
        for table in self.shuffles.dropping:
            yield Fact(COMPLETE, at.party, tuple(sorted(set(table.chain) - {at.party})))


def plan_products(
    joined: Joined, groups: Iterable[Group], rows: Rows, missing: bool, number: int
) -> Plan:
    """Return the plan of tables that are all counted by products."""
    place = joined.study.place
    places = (
        masked_tables.Group(tuple(map(place, prefix)), tuple(map(place, lasts)))
        for prefix, lasts in groups
    )
    return Plan(joined.commitments, tuple(places), joined.selection(rows), missing, number)


def divided(costs: Costs, groups: Iterable[Group], memory: int) -> list[list[Group]]:
    """Divide groups into parts whose products fit the memory; a group that does not is a part."""
    parts, columns = list[list[Group]](), Columns()
    for group in groups:
        own = costs.columns_of(group.prefix)
        if not parts or costs.products_memory(columns.plus(own)) > memory:
            parts.append([])
            columns = Columns()
        parts[-1].append(group)
        columns = columns.plus(own)
    return parts


def share_parts(site: Holder, parts: Iterable[Plan]) -> Program[Elements]:
    """Return a site's shares of all cells, counted part after part; zeros of others' tables."""
    shares = [np.zeros(0, site.commitments.ring.dtype)]
    for number, part in enumerate(parts):
        of_part = np.zeros(part.cells, site.commitments.ring.dtype)
        if site.party in part.parties:
            of_part = yield from share_tables(site, part, number)
        shares.append(of_part)
    return np.concatenate(shares)


def look_up_held(
    site: Holder,
    plan: LookupPlan,
    counts: Mapping[Holders, Elements],
    known: Callable[[Elements], Elements],
) -> Program[dict[Holders, Elements]]:
    """Return a site's shares of a function of counts, by their holders; one alone computes it."""
    batches = {at: b.holders for at, b in enumerate(plan.batches) if b.holders in counts}
    shared = {at: counts[holders] for at, holders in batches.items()}
    looked_up = (yield from look_up(site, plan, shared)) if shared else {}
    values = {batches[at]: of_counts for at, of_counts in looked_up.items()}
    alone = (site.party,)
    if alone in counts:
        values[alone] = known(counts[alone])
    return values
