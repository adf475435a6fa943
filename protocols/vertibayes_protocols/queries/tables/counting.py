"""A way of counting: what tables cost by it, and what each party does; how tables are divided.

A study names its way (`Study.count_by`, `vertibayes_protocols.queries.tables.ways`), and all
parties know it. The query `Tables`, policies, ledgers, memory, resuming and the forecast are the
same for all ways. A way adds two classes:

    TableCosts    what a group of tables takes: memory, work, bytes, rounds
    TablePlan     what site, dealer and analyst do for one query; which sites count; what they learn

Everything here follows from public sizes, in integers, so that all parties decide alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.query import At
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Family, Rows

NANOSECONDS_PER_BYTE = 2  # on a link of 4 Gbit/s
MOST_CELLS = 10_000_000  # revealed by one query
MOST_FAMILIES, MOST_GROUPS = 100_000, 20_000  # in one query
TABLE_BYTES, TABLE_BYTES_PER_CELL = 2_500, 32  # of revealed tables, at one party
LEAST_WEIGHT = 10**12  # picoseconds of work: a query of less is not divided,
MOST_PARTS = 16  # and one of more into so many: a session that breaks loses one of them
KEPT_COSTS = 16  # for the next query, or the other parties of a process
Holders: TypeAlias = tuple[Party, ...]  # of a table, sorted
ASKED = "which tables are asked, over which records"


# ---- groups of tables ----------------------------------------------------------------------------


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


def joint_states(
    records: int, codes: Iterable[NDArray[Any]], lengths: Sequence[int]
) -> NDArray[np.int64]:
    """Return each record's joint state of some columns; -1 if a code is beyond a column's states.

    Examples
    --------
    >>> joint_states(3, [np.array([0, 1, 1]), np.array([2, 0, 3])], lengths=[2, 3])
    array([ 2,  3, -1])
    """
    joint, counted = np.zeros(records, np.int64), np.ones(records, bool)
    for column, length in zip(codes, lengths, strict=True):
        counted &= column < length
        joint *= length
        joint += column
    joint[~counted] = -1
    return joint


# ---- costs ---------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """The cost of one table or of several, for all parties together."""

    picoseconds: int = 0  # the work
    bytes: int = 0  # the bytes sent on all links

    def __add__(self, other: object) -> Cost:
        """Add two costs."""
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.picoseconds + other.picoseconds, self.bytes + other.bytes)

    @property
    def weight(self) -> int:
        """The work plus the time on a link, which decides how tables are counted and divided."""
        return self.picoseconds + 1000 * NANOSECONDS_PER_BYTE * self.bytes


class Load(Protocol):
    """What tables take in one query; a way of counting adds what its memory and rounds need."""

    @property
    def cells(self) -> int:
        """The number of cells that are revealed."""
        ...

    @property
    def tables(self) -> int:
        """The number of tables."""
        ...

    @property
    def groups(self) -> int:
        """The number of groups of tables."""
        ...

    @property
    def cost(self) -> Cost:
        """The work and bytes."""
        ...

    def plus(self, other: Self) -> Self:
        """Return the load of one query for both."""
        ...


L = TypeVar("L", bound=Load)


class TableMemoryError(ValueError):
    """A table takes more memory than a query may take at a party."""

    def __init__(self, family: Family, needed: int, most: int, advice: str) -> None:
        super().__init__(
            f"the table of {', '.join(family.members)} takes {needed:,} bytes of memory at each "
            f"party, and a query may take {most:,}: {advice}"
        )
        self.needed, self.parents = needed, len(family.parents)


class TableCosts(ABC, Generic[L]):
    """What the tables of a study cost by one way of counting, over some of its records."""

    nothing: L  # the load of no table
    overhead: ClassVar[float] = 1.5  # seconds of a query for each second of `work`, in a forecast
    advice: ClassVar[str] = "allow more memory or fewer parents, or count by masked-tables"
    # What the opening of the study takes: bytes that each site keeps, bytes on all links, rounds.
    stored_bytes: int = 0
    commitment_bytes: int = 0
    commitment_rounds: int = 0

    def __init__(self, study: Study, records: int, missing: bool) -> None:
        self.study, self.records, self.missing = study, records, missing
        self.memory = study.memory  # that a query may take at a party

    @abstractmethod
    def load(self, group: Group) -> L:
        """Return the load of a group's tables; a ValueError if they cannot be counted."""

    @abstractmethod
    def memory_of(self, load: L) -> int:
        """Return the memory, in bytes, that a query takes at one party to count."""

    @abstractmethod
    def rounds(self, load: L) -> int:
        """Return the rounds of a query, without those in which it is asked."""

    def work(self, load: L) -> int:
        """Return the work of all parties, in picoseconds."""
        return load.cost.picoseconds

    def picoseconds(self, load: L) -> int:
        """Return the time that a query takes: the work of all parties, and that on a link."""
        return Cost(self.work(load), load.cost.bytes).weight

    def checked(self, groups: Iterable[Group]) -> Iterable[L]:
        """Return the loads of groups that may not be countable; refuses the largest table."""
        loads, refused = list[L](), list[TableMemoryError]()
        for group in groups:
            try:
                loads.append(self.load(group))
            except TableMemoryError as error:
                refused.append(error)
        if refused:
            raise max(refused, key=lambda error: error.needed)
        return loads

    def check_memory(self, needed: Mapping[Family, int]) -> None:
        """Refuse the largest of some tables if it takes more memory than a query may take."""
        largest = max(needed, key=needed.__getitem__, default=None)
        if largest is not None and needed[largest] > self.memory:
            raise TableMemoryError(largest, needed[largest], self.memory, self.advice)

    def total(self, groups: Iterable[Group]) -> L:
        """Return the load of one query for groups of tables."""
        return reduce(lambda one, other: one.plus(other), map(self.load, groups), self.nothing)

    def memory_with_tables(self, load: L) -> int:
        """Return the memory that a query takes at one party, revealed tables included."""
        revealed = TABLE_BYTES * load.tables + TABLE_BYTES_PER_CELL * load.cells
        return self.memory_of(load) + revealed

    def planned(self, load: L) -> Planned:
        """Return the memory at a party, and the time of all."""
        return Planned(self.memory_with_tables(load), self.picoseconds(load))

    def fits(self, load: L) -> bool:
        """Whether one query may have this load."""
        few = load.cells <= MOST_CELLS and load.tables <= MOST_FAMILIES
        return few and load.groups <= MOST_GROUPS and self.memory_with_tables(load) <= self.memory


@lru_cache(maxsize=KEPT_COSTS)
def kept_costs(
    kind: type[TableCosts[Any]], study: Study, records: int, missing: bool, *key_bits: int
) -> TableCosts[Any]:
    """Return the costs of a study's tables: the same object for equal studies."""
    return kind(study, records, missing, *key_bits)


def batches(costs: TableCosts[L], families: Sequence[Family]) -> Iterator[list[Family]]:
    """Divide families into queries that fit the memory; families of one prefix stay together.

    A query also has no more than a sixteenth of the predicted time of all, unless that is short or
    families of one prefix take longer.
    """
    batch: dict[tuple[tuple[str, ...], bool], Group] = {}
    total = costs.nothing
    pieces = [piece for group in grouped(families) for piece in _pieces(costs, group)]
    most = max(LEAST_WEIGHT, sum(load.cost.weight for _, load in pieces) // MOST_PARTS)
    for piece, load in pieces:
        key, larger = (piece.prefix, bool(piece.lasts)), total.plus(load)
        if batch and (key in batch or larger.cost.weight > most or not costs.fits(larger)):
            yield [family for group in batch.values() for family in group.families]
            batch, total = {}, costs.nothing
            larger = load
        batch[key], total = piece, larger
    if batch:
        yield [family for group in batch.values() for family in group.families]


def _pieces(costs: TableCosts[L], group: Group) -> Iterator[tuple[Group, L]]:
    """Halve a group until each piece fits into one query."""
    taken = costs.load(group)
    if len(group.lasts) < 2 or costs.fits(taken):
        yield group, taken
        return
    half = len(group.lasts) // 2
    yield from _pieces(costs, group._replace(lasts=group.lasts[:half]))
    yield from _pieces(costs, group._replace(lasts=group.lasts[half:]))


# ---- what the parties do -------------------------------------------------------------------------


@dataclass(frozen=True)
class TablePlan(ABC):
    """How the parties count the tables of one query; long work waits until it is used."""

    costs_type: ClassVar[type[TableCosts[Any]]]
    joined: Joined  # the study, and its commitments
    groups: tuple[Group, ...]
    rows: Rows  # the records that are counted
    missing: bool  # whether a missing value is a state
    number: int  # the number of the query in the study

    @cached_property
    def selection(self) -> Selection:
        """The records that are counted."""
        return self.joined.selection(self.rows)

    @cached_property
    def costs(self) -> Any:
        """What its tables cost: of the type `costs_type`."""
        study = self.joined.study
        records, key_bits = self.rows.count(study.records), self.joined.key_bits
        return kept_costs(self.costs_type, study, records, self.missing, *key_bits)

    @property
    def planned(self) -> Planned:
        """What the query takes; no table is listed for it."""
        planned: Planned = self.costs.planned(self.costs.total(self.groups))
        return planned

    @property
    def families(self) -> list[Family]:
        """The families whose tables are counted, in the order of the result."""
        return [family for group in self.groups for family in group.families]

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that hold a column of a table, sorted."""
        names = (name for group in self.groups for name in (*group.prefix, *group.lasts))
        return self.joined.study.holders_of(names)

    def facts(self, at: At, asked: Iterable[Party]) -> Iterator[Fact]:
        """Go through what parties learn: which tables are asked, and what a site shows."""
        if at.party == at.analyst:
            yield from (Fact(ASKED, at.party, (party,)) for party in asked)
        else:
            yield from self.shows(at.party)

    def takes(self) -> Iterator[Planned]:
        """Go through what the query takes; list what is computed once that was allowed."""
        yield self.planned

    def shows(self, site: Party) -> Iterator[Fact]:
        """Go through what a site shows of its records to others than the analyst."""
        del site
        yield from ()

    @abstractmethod
    def run_site(self, site: SiteRole) -> Program[None]:
        """Count, and reveal the tables to the analyst: a site's program."""

    @abstractmethod
    def run_dealer(self, dealer: DealerRole) -> Program[None]:
        """Deal what the tables need."""

    @abstractmethod
    def run_analyst(self) -> Program[list[NDArray[np.int64]]]:
        """Return the tables of all families, in the order of the query."""
