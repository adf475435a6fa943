"""From choices to winners: share tables, look up logarithms in them, add up scores, take the best.

    sites, dealer    shares of the cells of all tables          mpc.masked_tables
    sites, dealer    shares of logarithms of the counts         mpc.lookups
    each site        its shares of the candidates' values       sums
    sites, dealer    the winner of each set                     mpc.argmax

The counts of a table are looked up by its holders: together they know the table. A site that holds
a table alone computes the logarithms itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc import masked_tables
from mpc.argmax import ArgmaxPlan, argmax, deal_argmax
from mpc.commitments import Commitments, Holder, Selection
from mpc.lookups import Batch, LookupPlan, PublicFunction, deal_lookups, log_gamma, look_up
from mpc.masked_tables import Plan, deal_tables, share_tables
from mpc.randomness import Stream, label
from mpc.ring import Elements, Ring
from mpc.rounds import Party, Program
from protocols.queries.choice_tables import ChoiceTables, Lookup, Names
from protocols.queries.costs import MOST_CELLS, Costs

VALUES = Ring(64)  # of logarithms and scores
MOST_SCORES = 500_000  # in one query
COUNT_BYTES = 64  # at one party, for each count: its place, share and logarithm


@dataclass(frozen=True)
class Logarithms:
    """What is looked up, by whom, and how exact it is: all that depends on public sizes alone.

    Parameters
    ----------
    tables : ChoiceTables
    """

    tables: ChoiceTables

    @property
    def sites(self) -> tuple[Party, ...]:
        """All sites of the study: they share the scores."""
        return self.tables.study.sites

    def argmax(self, name: bytes = b"", shown: bytes = b"") -> ArgmaxPlan:
        """Return the plan of the argmax; the arguments are its labels."""
        return ArgmaxPlan(name, self.sites, self.tables.sizes, VALUES, shown=shown)

    @cached_property
    def fraction_bits(self) -> int:
        """How many bits of a value are behind the point."""
        return self.tables.fraction_bits(self.argmax().tie_bits)

    @cached_property
    def functions(self) -> dict[int, PublicFunction]:
        """The function of each shift."""
        shifts = sorted({lookup.shift for lookup in self.tables.lookups})
        records, bits = self.tables.records, self.fraction_bits
        return {shift: log_gamma(shift, records, bits) for shift in shifts}

    @property
    def error(self) -> float:
        """The most, in nats, by which a candidate's value differs from its K2 scores."""
        error = max((f.error for f in self.functions.values()), default=0.0)
        return self.tables.approximations * error

    @cached_property
    def by_holders(self) -> dict[tuple[Party, ...], list[int]]:
        """The places of the lookups of each group of holders, equal shifts together."""
        holders, lookups = self.tables.holders, self.tables.lookups
        by_holders: dict[tuple[Party, ...], list[int]] = {}
        for place in sorted(range(len(lookups)), key=lambda at: lookups[at].shift):
            if lookups[place].table:
                by_holders.setdefault(holders[lookups[place].table], []).append(place)
        return dict(sorted(by_holders.items()))

    def lookups(self, name: bytes = b"") -> LookupPlan:
        """Return the plan of the lookups among several holders, under a label."""
        batches = [
            Batch(holders, tuple(self.pieces(holders)))
            for holders in self.by_holders
            if len(holders) > 1
        ]
        return LookupPlan(name, VALUES, tuple(batches))

    def pieces(self, holders: tuple[Party, ...]) -> Iterator[tuple[PublicFunction, int]]:
        """Return which functions some holders look up, and of how many counts."""
        lookups = [self.tables.lookups[place] for place in self.by_holders[holders]]
        for shift, equal in groupby(lookups, key=lambda lookup: lookup.shift):
            yield self.functions[shift], sum(map(self.tables.counts, equal))

    @cached_property
    def memory(self) -> int:
        """The most bytes that the query takes at one party: one protocol follows the other."""
        costs = Costs(self.tables.study, self.tables.records, missing=True)
        products = costs.products_memory(*costs.columns([g.prefix for g in self.tables.groups]))
        steps = products, self.lookups().memory, self.argmax().memory
        return max(steps) + COUNT_BYTES * self.tables.cells

    @property
    def fits(self) -> bool:
        """Whether one query may ask for so much."""
        scores = sum(map(len, self.tables.candidates))
        few = self.tables.cells <= MOST_CELLS and scores <= MOST_SCORES
        most = self.tables.study.memory
        return few and self._largest()[1] <= most and self.memory <= most

    def check_fits(self) -> None:
        """Refuse what does not fit into one query, with a ValueError that names a table."""
        if not self.fits:
            table, memory = self._largest()
            raise ValueError(
                f"the table of {', '.join(table)} takes {memory:,} bytes of memory at each party, "
                f"the tables of its whole set {self.memory:,}"
                f", and a query may take {self.tables.study.memory:,}: allow more memory or fewer "
                "parents"
            )

    def _largest(self) -> tuple[Names, int]:
        """Return the table that takes the most memory, and how many bytes it takes."""
        costs = Costs(self.tables.study, self.tables.records, missing=True)
        memory = {}
        for table, (_, cells) in zip(self.tables.tables, self.tables.table_sizes, strict=True):
            width = costs.width(table[:-1])
            rows = width + sum(costs.codes[name] - 1 for name in table[:-1])
            memory[table] = costs.products_memory(width, rows) + COUNT_BYTES * cells
        return max(memory.items(), key=lambda item: item[1], default=((), 0))


class _Reader(NamedTuple):
    """How a group of holders reads its counts from the shares of all cells.

    Attributes
    ----------
    cells : ndarray of intp
        The cells that are added up to counts, count after count.
    starts : ndarray of intp, or None
        Where the cells of each count begin; None if each count is one cell.
    ends : ndarray of intp
        Where the counts of each lookup begin.
    """

    cells: NDArray[np.intp]
    starts: NDArray[np.intp] | None
    begins: NDArray[np.intp]

    def counts(self, shares: Elements) -> Elements:
        """Return shares of the counts."""
        cells = shares[self.cells]
        if self.starts is None:
            return cells
        return np.asarray(np.add.reduceat(cells, self.starts, dtype=cells.dtype))


@dataclass(frozen=True)
class ChoicePlan:
    """All that the parties do for one query.

    Parameters
    ----------
    logarithms : Logarithms
        What is looked up.
    commitments : Commitments
    selection : Selection
        The records that are counted.
    missing : bool
        Whether a missing value is a state.
    number : int
        The number of the query in the study.
    query : bytes
        A digest of the query.
    """

    logarithms: Logarithms
    commitments: Commitments
    selection: Selection
    missing: bool
    number: int
    query: bytes

    # ---- the protocols ---------------------------------------------------------------------------

    @cached_property
    def label(self) -> bytes:
        """Names the query and the commitments, whose ids are new in each session."""
        return label("choose", self.commitments.label, self.query)

    @cached_property
    def products(self) -> Plan:
        """The plan of the tables."""
        place = self.logarithms.tables.study.place
        groups = tuple(
            masked_tables.Group(tuple(map(place, group.prefix)), tuple(map(place, group.lasts)))
            for group in self.logarithms.tables.groups
        )
        return Plan(self.commitments, groups, self.selection, self.missing, self.number)

    @cached_property
    def lookups(self) -> LookupPlan:
        """The plan of the lookups."""
        return self.logarithms.lookups(self.label)

    @cached_property
    def argmax(self) -> ArgmaxPlan:
        """The plan of the argmax; the analyst, who does not know the ids, checks the query."""
        return self.logarithms.argmax(self.label, self.query)

    # ---- cells, counts and scores ----------------------------------------------------------------

    @cached_property
    def _cells(self) -> dict[Names, NDArray[np.intp]]:
        """Where the cells of each table lie among the shares: an axis for each variable."""
        tables, cells, at = self.logarithms.tables, {}, 0
        for group in tables.groups:
            lengths = [tables.states[name] for name in group.prefix]
            widths = [tables.states[name] for name in group.lasts]
            height, width = int(np.prod(lengths)), sum(widths) if widths else 1
            block = np.arange(at, at + height * width).reshape(height, width)
            at += block.size
            if not widths:
                cells[group.prefix] = block[:, 0]
            start = 0
            for last, states in zip(group.lasts, widths, strict=True):
                table = block[:, start : start + states].reshape(*lengths, states)
                cells[(*group.prefix, last)] = table
                start += states
        return cells

    def _cells_of(self, lookup: Lookup) -> NDArray[np.intp]:
        """Return the cells of each count of a lookup: shape (counts, cells of each)."""
        cells = self._cells[lookup.table]
        if lookup.table == lookup.kept:
            return cells.reshape(-1, 1)
        axes = {name: axis for axis, name in enumerate(lookup.table)}
        kept = [axes.pop(name) for name in lookup.kept]
        counts = self.logarithms.tables.counts(lookup)
        return cells.transpose(*kept, *axes.values()).reshape(counts, -1)

    def reader(self, holders: tuple[Party, ...]) -> _Reader:
        """Return how some holders read their counts."""
        lookups = self.logarithms.tables.lookups
        cells = [self._cells_of(lookups[at]) for at in self.logarithms.by_holders[holders]]
        begins = np.cumsum([0, *map(len, cells)])[:-1]
        lengths = np.repeat([c.shape[1] for c in cells], [len(c) for c in cells])
        starts = None if lengths.max() == 1 else np.cumsum(lengths) - lengths
        return _Reader(np.concatenate([c.ravel() for c in cells]), starts, begins)

    def scores(self, party: Party, sums: Elements) -> Elements:
        """Return a site's shares of the candidates' values.

        Parameters
        ----------
        party : Party
        sums : ndarray of shape (lookups,), dtype uint64
            The site's shares of the sums of all lookups; 0 for those in which it takes no part.
        """
        uses = self._uses
        values = self._constants.copy() if party == self.logarithms.sites[0] else self._zeros
        np.add.at(values, uses.candidates, uses.signs * sums[uses.lookups])
        return values

    @property
    def _zeros(self) -> Elements:
        return np.zeros(len(self.logarithms.tables.candidates), np.uint64)

    @cached_property
    def _uses(self) -> _Uses:
        uses = [
            use
            for place, signed in enumerate(self.logarithms.tables.candidates)
            for sign, parts in signed
            for use in ((place, parts.cells, sign), (place, parts.columns, -sign))
        ]
        candidates, lookups, signs = np.array(uses, np.int64).reshape(-1, 3).T
        return _Uses(candidates, lookups, signs.astype(np.uint64))

    @cached_property
    def _constants(self) -> Elements:
        """What everyone knows of each candidate: ln G(r) of its columns, and the record count."""
        tables, functions = self.logarithms.tables, self.logarithms.functions
        of_none = {shift: int(f(np.zeros(1, np.int64))[0]) for shift, f in functions.items()}
        constants = [
            sum(sign * parts.column_count * of_none[parts.child_states] for sign, parts in signed)
            for signed in tables.candidates
        ]
        values = np.array([constant % 2**64 for constant in constants], np.uint64)
        public = np.zeros(len(tables.lookups), np.uint64)
        for place, lookup in enumerate(tables.lookups):
            if not lookup.table:
                records = np.array([tables.records])
                public[place] = functions[lookup.shift](records).astype(np.uint64)[0]
        np.add.at(values, self._uses.candidates, self._uses.signs * public[self._uses.lookups])
        return values


class _Uses(NamedTuple):
    """Which lookups are added to which candidates: arrays of one shape."""

    candidates: NDArray[np.int64]
    lookups: NDArray[np.int64]
    signs: Elements  # 1, or -1 modulo 2^64


# ---- programs ------------------------------------------------------------------------------------


def choose(site: Holder, plan: ChoicePlan, analyst: Party) -> Program[NDArray[np.intp]]:
    """Return the winner of each set: a site's side.

    Parameters
    ----------
    site, plan, analyst : Holder, ChoicePlan, Party
        The site's columns and keys, the plan, and the party that learns the winners too.
    """
    site.begin("choose", plan.number)
    shares = np.zeros(0, site.commitments.ring.dtype)
    if site.party in plan.products.parties:
        shares = yield from share_tables(site, plan.products)
    sums = yield from _sums(site, plan, shares)
    return (yield from argmax(site, plan.argmax, plan.scores(site.party, sums), analyst))


def _sums(site: Holder, plan: ChoicePlan, shares: Elements) -> Program[Elements]:
    """Return this site's shares of the sums of all lookups."""
    by_holders = plan.logarithms.by_holders
    readers = {held: plan.reader(held) for held in by_holders if site.party in held}
    batches = [batch.holders for batch in plan.lookups.batches]
    mine = {at: readers[held] for at, held in enumerate(batches) if held in readers}
    counts = {at: reader.counts(shares) for at, reader in mine.items()}
    logarithms = (yield from look_up(site, plan.lookups, counts)) if counts else {}
    values = {batches[at]: of_counts for at, of_counts in logarithms.items()}
    alone = (site.party,)
    if alone in readers:
        values[alone] = _alone(plan, alone, readers[alone].counts(shares))
    sums = np.zeros(len(plan.logarithms.tables.lookups), np.uint64)
    for held, of_counts in values.items():
        sums[by_holders[held]] = np.add.reduceat(of_counts, readers[held].begins)
    return sums


def _alone(plan: ChoicePlan, holders: tuple[Party, ...], counts: Elements) -> Elements:
    """Return the logarithms of counts that one site knows: its shares are the counts."""
    values, at = np.empty(len(counts), np.uint64), 0
    for function, size in plan.logarithms.pieces(holders):
        values[at : at + size] = function(counts[at : at + size].astype(np.int64)).astype(np.uint64)
        at += size
    return values


def deal_choices(keys: Mapping[Party, Stream], plan: ChoicePlan) -> Program[None]:
    """Deal the randomness that a plan needs: the dealer's side."""
    yield from deal_tables(keys, plan.products)
    yield from deal_lookups(keys, plan.lookups)
    yield from deal_argmax(keys, plan.argmax)
