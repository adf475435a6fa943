"""What is looked up for choices, by whom, and how scores follow: all that public sizes say.

The cells of all tables lie one after the other, group after group (`vertibayes_mpc.masked_tables`).
The holders of a table look its counts up: together they know the table. One site that holds a table
alone computes the logarithms itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from math import ceil
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax import ArgmaxPlan
from vertibayes_mpc.lookups import Batch, LookupPlan, PublicFunction, log_gamma, log_power
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.queries.choices.precision import LOOKUP_ERROR_BITS, Precision, in_units
from vertibayes_protocols.queries.choices.scored_tables import (
    OF_LIKELIHOOD,
    ChoiceTables,
    Kept,
    Lookup,
    Names,
)
from vertibayes_protocols.queries.tables.counting import MOST_CELLS, Group, Holders
from vertibayes_protocols.queries.tables.masked import cells_of, divided
from vertibayes_protocols.queries.tables.masked_costs import (
    CHOICE_BYTES_PER_CELL,
    FUNCTION_BYTES_PER_RECORD,
    FUNCTION_PS_PER_RECORD,
    LOOKUP_PS_PER_BYTE,
    MOST_TERMS,
    SCORE_BYTES,
    MaskedCosts,
    choice_room,
)
from vertibayes_protocols.query import check_most
from vertibayes_protocols.study import Study

MOST_SCORES = 100_000  # in one query
DIGIT_BITS = 6  # that are compared at a time: a round less than with 4, for few bytes


class Counts(NamedTuple):
    """How the holders of tables read counts from the shares of all cells."""

    cells: NDArray[np.intp]  # the cells that are added up to counts, count after count
    starts: NDArray[np.intp] | None  # where those of each count begin; None: one cell each
    lookups: list[int]  # the places of the lookups that use the counts, in order
    begins: NDArray[np.intp]  # where the counts of each lookup begin

    def of(self, shares: Elements) -> Elements:
        """Return shares of the counts."""
        cells = shares[self.cells]
        if self.starts is None:
            return cells
        return np.asarray(np.add.reduceat(cells, self.starts, dtype=cells.dtype))


class _Uses(NamedTuple):
    """Which lookups are added to which candidates: arrays of one shape."""

    candidates: NDArray[np.int64]
    lookups: NDArray[np.int64]
    signs: Elements  # 1, or -1 modulo 2^64


@dataclass(frozen=True)
class ChoiceLookups:
    """The lookups of choices."""

    tables: ChoiceTables

    @property
    def precision(self) -> Precision:
        """The precision of values."""
        return self.tables.precision

    def argmax(self, name: bytes = b"", shown: bytes = b"") -> ArgmaxPlan:
        """Return the plan of the argmax among all sites of the study; the arguments are labels."""
        sites, ring = self.tables.study.sites, self.precision.ring
        asked = name, sites, self.tables.sizes, ring, DIGIT_BITS
        return ArgmaxPlan(*asked, shown=shown, margin=self.margin)

    def lookups(self, name: bytes = b"") -> LookupPlan:
        """Return the plan of the lookups among several holders, under a label."""
        return LookupPlan(name, self.precision.ring, self.batches)

    # ---- functions -------------------------------------------------------------------------------

    @cached_property
    def functions(self) -> dict[int, PublicFunction]:
        """The function of each shift."""
        records, bits = self.tables.records, self.precision.fraction_bits
        functions = {
            shift: log_power(records, bits)
            if shift == OF_LIKELIHOOD
            else log_gamma(shift, records, bits)
            for shift in sorted({lookup.shift for lookup in self.tables.lookups})
        }
        if any(f.error > 2**-LOOKUP_ERROR_BITS for f in functions.values()):
            raise ValueError(
                f"the scores of {self.tables.records:,} records are too large to be compared with "
                "enough precision: choose with fewer scores in a candidate"
            )
        return functions

    @property
    def error(self) -> float:
        """The most, in nats, by which a candidate's value differs from its scores and constant."""
        error = max((f.error for f in self.functions.values()), default=0.0)
        rounded = any(self.tables.constants) / (2 << self.precision.fraction_bits)
        return self.tables.approximations * error + rounded

    @property
    def margin(self) -> int:
        """By how many units of the values a winner that is certain exceeds all others.

        A value V is at most `error` from its score s, in units of 2^-fraction_bits nats. So
        V_w - V_j > 2 error implies s_w >= V_w - error > V_j + error >= s_j.
        """
        return ceil(2 * self.error * (1 << self.precision.fraction_bits)) + 1  # floats round

    # ---- who looks up what -----------------------------------------------------------------------

    @cached_property
    def by_holders(self) -> dict[Holders, list[int]]:
        """The places of the lookups of each group of holders, equal shifts together."""
        holders, lookups = self.tables.holders, self.tables.lookups
        by_holders: dict[Holders, list[int]] = {}
        for place in sorted(self.tables.asked, key=lambda at: lookups[at].shift):
            by_holders.setdefault(holders[lookups[place].table], []).append(place)
        return dict(sorted(by_holders.items()))

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The lookups among several holders."""
        shared = (holders for holders in self.by_holders if len(holders) > 1)
        return tuple(Batch(holders, tuple(self._pieces(holders))) for holders in shared)

    def _pieces(self, holders: Holders) -> Iterator[tuple[PublicFunction, int]]:
        """Return which functions some holders look up, and of how many counts."""
        lookups = [self.tables.lookups[place] for place in self.by_holders[holders]]
        for shift, equal in groupby(lookups, key=lambda lookup: lookup.shift):
            yield self.functions[shift], sum(map(self.tables.counts, equal))

    def alone(self, site: Party, counts: Elements) -> Elements:
        """Return the logarithms of counts that a site knows alone: its shares are the counts."""
        values, at = np.empty(len(counts), np.uint64), 0
        for function, size in self._pieces((site,)):
            known = counts[at : at + size].astype(np.int64)
            values[at : at + size] = function(known).astype(np.uint64)
            at += size
        return values

    # ---- from cells to counts --------------------------------------------------------------------

    @cached_property
    def counts(self) -> dict[Holders, Counts]:
        """How each group of holders reads its counts."""
        return {holders: self._counts(places) for holders, places in self.by_holders.items()}

    def _counts(self, places: list[int]) -> Counts:
        cells = [self._cells_of(self.tables.lookups[place]) for place in places]
        begins = np.cumsum([0, *map(len, cells)])[:-1]
        lengths = np.repeat([c.shape[1] for c in cells], [len(c) for c in cells])
        starts = None if lengths.max() == 1 else np.cumsum(lengths) - lengths
        return Counts(np.concatenate([c.ravel() for c in cells]), starts, places, begins)

    def _cells_of(self, lookup: Lookup) -> NDArray[np.intp]:
        """Return the cells of each count of a lookup: shape (counts, cells of each)."""
        cells = self._cells[lookup.table]
        if lookup.table == lookup.kept:
            return cells.reshape(-1, 1)
        axes = {name: axis for axis, name in enumerate(lookup.table)}
        kept = [axes.pop(name) for name in lookup.kept]
        counts = self.tables.counts(lookup)
        return cells.transpose(*kept, *axes.values()).reshape(counts, -1)

    @cached_property
    def _cells(self) -> dict[Names, NDArray[np.intp]]:
        return cells_of(self.tables.groups, self.tables.states)

    # ---- from logarithms to values ---------------------------------------------------------------

    def values(self, party: Party, sums: Elements) -> Elements:
        """Return a site's shares of the candidates' values."""
        if party == self.tables.study.sites[0]:
            return self._constants + self._added(sums)
        return self._added(sums)

    def _added(self, sums: Elements) -> Elements:
        uses, values = self._uses, np.zeros(len(self.tables.candidates), np.uint64)
        np.add.at(values, uses.candidates, uses.signs * sums[uses.lookups])
        return values

    @cached_property
    def _uses(self) -> _Uses:
        uses = [
            use
            for place, signed in enumerate(self.tables.candidates)
            for sign, parts in signed
            for use in ((place, parts.cells, sign), (place, parts.columns, -sign))
        ]
        candidates, lookups, signs = np.array(uses, np.int64).reshape(-1, 3).T
        return _Uses(candidates, lookups, signs.astype(np.uint64))

    @cached_property
    def _constants(self) -> Elements:
        """What everyone knows of each candidate: its constant, ln G(r) of its columns, and n."""
        at_zero = {s: int(f(np.zeros(1, np.int64))[0]) for s, f in self.functions.items()}
        constants = [
            in_units(constant, self.precision.fraction_bits)
            + sum(sign * parts.column_count * at_zero[parts.column_shift] for sign, parts in signed)
            for signed, constant in zip(self.tables.candidates, self.tables.constants, strict=True)
        ]
        public = np.zeros(len(self.tables.lookups), np.uint64)
        for place, lookup in enumerate(self.tables.lookups):
            if not lookup.table:
                records = np.array([self.tables.records])
                public[place] = self.functions[lookup.shift](records).astype(np.uint64)[0]
        return self._added(public) + np.array([c % 2**64 for c in constants], np.uint64)

    # ---- memory ----------------------------------------------------------------------------------

    @cached_property
    def counted(self) -> Planned:
        """What the tables and the functions take, before either are made."""
        records, costs = self.tables.records, self._costs
        parties, shifts = costs.parties, len({lookup.shift for lookup in self.tables.lookups})
        functions = FUNCTION_BYTES_PER_RECORD * records
        work = FUNCTION_PS_PER_RECORD * shifts * records * parties
        columns = (costs.columns([group.prefix for group in part]) for part in self.parts)
        products = max(map(costs.products_memory, columns), default=0)
        time = work + costs.products_time(self.tables.groups)
        return Planned(max(products, functions) + self._held, time)

    @cached_property
    def parts(self) -> list[list[Group]]:
        """Divide the groups of tables into parts that fit the memory, each alone if it does not."""
        costs, groups = self._costs, list(self.tables.groups)
        left = choice_room(self.tables.study) - self._held
        if groups and costs.products_memory(costs.columns(self._prefixes)) <= left:
            return [groups]  # which share products
        return divided(costs, groups, left)

    @property
    def _held(self) -> int:
        """The bytes that cells and scores take."""
        return CHOICE_BYTES_PER_CELL * self.tables.cells + SCORE_BYTES * self._scores

    @cached_property
    def planned(self) -> Planned:
        """What the query takes: one protocol follows the other."""
        lookups, argmax = self.lookups(), self.argmax()
        more = max(lookups.memory, argmax.memory)
        memory = max(self.counted.memory, self._held + more)
        sites = len(self.tables.study.sites)
        compared = argmax.dealt_bytes + sites * (sites - 1) * argmax.sent_bytes
        sent = lookups.dealt_bytes + lookups.sent_bytes + compared
        return Planned(memory, self.counted.picoseconds + LOOKUP_PS_PER_BYTE * sent)

    @cached_property
    def _costs(self) -> MaskedCosts:
        return MaskedCosts(self.tables.study, self.tables.records, missing=True)

    @cached_property
    def _prefixes(self) -> list[Names]:
        return [group.prefix for group in self.tables.groups]

    @cached_property
    def _scores(self) -> int:
        return sum(map(len, self.tables.candidates))

    @property
    def _listed(self) -> Iterator[tuple[str, int, int]]:
        """What is listed, how many of it there are, and how many one query may have."""
        yield "scores", self._scores, MOST_SCORES
        yield "products", self._costs.listed_terms(self._prefixes), MOST_TERMS
        yield "cells", self.tables.cells, MOST_CELLS

    def check_sizes(self) -> None:
        """Refuse scores or products that are too many to be listed, with a ValueError."""
        for listed in self._listed:
            check_most(*listed)

    @property
    def fits(self) -> bool:
        """Whether one query may ask for so much."""
        few = all(number <= limit for _, number, limit in self._listed)
        most = choice_room(self.tables.study)
        return few and self._largest[1] <= most and self.planned.memory <= most

    def check_fits(self) -> None:
        """Refuse what does not fit into one query, with a ValueError that names a table."""
        if not self.fits:
            most = choice_room(self.tables.study)
            table, memory = self._largest
            raise ValueError(
                f"a set of {len(self.tables.candidates)} candidates, the largest with the table of "
                f"{', '.join(table)} of {memory:,} bytes, does not fit into one query, which may "
                f"take {most:,} bytes of memory at each party: allow more "
                "memory or fewer parents"
            )

    @cached_property
    def _largest(self) -> tuple[Names, int]:
        """Return the table that takes the most memory, and how many bytes it takes."""
        costs = self._costs
        largest: tuple[Names, int] = (), 0
        for table, (_, cells) in zip(self.tables.tables, self.tables.table_sizes, strict=True):
            memory = costs.choice_memory(table[:-1], cells)
            largest = max(largest, (table, memory), key=lambda item: item[1])
        return largest


@lru_cache(maxsize=32)
def choice_lookups(study: Study, choices: Choices) -> ChoiceLookups:
    """Return what choices look up beside nothing; the parties of a process compute it once."""
    return ChoiceLookups(ChoiceTables.of(study, choices))


_shared: WeakValueDictionary[tuple[Study, Choices, frozenset[Kept]], ChoiceLookups]
_shared = WeakValueDictionary()  # of the queries that run in this process, and no longer


def lookups_beside(study: Study, choices: Choices, kept: frozenset[Kept]) -> ChoiceLookups:
    """Return what choices look up beside what is kept; as `choice_lookups`, computed once.

    Fewer tables have another order, and fewer lookups other parts: what is kept is not used if the
    query would then take too much memory, so that choices that fit do so whatever is kept.
    """
    full = choice_lookups(study, choices)
    if not kept:
        return full
    beside = _shared.get((study, choices, kept)) or ChoiceLookups(full.tables.beside(kept))
    if not beside.fits:
        return full
    return _shared.setdefault((study, choices, kept), beside)
