"""Tables by scalar products of the sites that hold their variables: no column is sent before.

Each cell of a table is a scalar product: of each holder a vector that is 1 where a record has the
cell's states of its variables, and 0 elsewhere, also where one of its values is missing and missing
values are not counted. Cells of tables of the same holders are multiplied together, in parts that
fit the memory of a query (`vertibayes_mpc.scalar_product`, whose figure this is):

    holders <-> holders, dealer -> holders    T(n) sub-protocols for n holders of the table
    site -> analyst                           its shares of all cells of the query + zero shares;
                                              the counts of tables that it holds alone

The published protocol sends the analyst the shares as they are. Its analyst and dealer together
have linear equations in the records: a share is a sum of the others' data times masks that the
dealer knows. Zero shares of the holders, under keys that the dealer does not know, hide them.

Security: honest-but-curious. The dealer together with one holder reads the columns of the others.
The analyst with the dealer, or with all holders except one, learns the tables. A label names the
query and the part, and keys are new in each session: no mask is used twice.
Leakage: as of the query `Tables`. Cost: `ProductCosts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import prod
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Expect, Program, exchange
from vertibayes_mpc.scalar_product import (
    Multiplier,
    Product,
    deal_product,
    share_product,
    subprotocols,
)
from vertibayes_mpc.sharing import Share, elements_of, send_share, zero_share
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.queries.tables.counting import (
    Cost,
    Group,
    Holders,
    TableCosts,
    TablePlan,
    joint_states,
)
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import axis_lengths

WAY = "scalar products"
Names: TypeAlias = tuple[str, ...]  # of a table's variables
Piece: TypeAlias = tuple[Names, range]  # a table, and which of its cells
MOST_HOLDERS = 6  # of one table: seven need 132,294 sub-protocols, and 1,182,363 vectors
ROUNDS = {2: 1, 3: 4, 4: 20, 5: 160, 6: 1982}  # of one part, without the shares to the analyst
# The following are part of the protocol: parties with other constants would have other parts.
# Memory at one party: copies of a part's vectors in a sub-protocol, beside those of the others;
# bytes for each record, and for each message that the dealer sends ahead.
COPIES, CODES_BYTES, MESSAGE_BYTES = 2, 96, 600
# Work, in picoseconds: of an element that is masked, sent, received or multiplied; of a message; of
# an element that a site counts alone.
ELEMENT_PS, MESSAGE_PS, COUNT_PS = 1_000, 60_000_000, 8_000


class Sizes(NamedTuple):
    """What the sub-protocols of one product need, for each of its elements."""

    vectors: int  # that are sent on all links
    dealt: int  # those of the dealer
    work: int  # elements that are masked, sent, received or multiplied, at all parties

    def plus(self, other: Sizes) -> Sizes:
        """Return the sum."""
        return Sizes(*(a + b for a, b in zip(self, other, strict=True)))


@cache
def sizes_of(factors: tuple[int, ...]) -> Sizes:
    """Return what a sub-protocol and all below need; of each factor, how many parties have it."""
    parties, joint = sum(factors), [size for size in factors if size > 1]
    sent = factors.count(1) * (parties - 1)
    dealt = sum(parties - size for size in joint)
    work = parties * (2 + len(factors)) + 2 * (sent + dealt) + parties + 2 * len(factors)
    total = Sizes(sent + dealt, dealt, work)
    for k in range(2, len(factors)):
        for merged in combinations(range(len(factors)), k):
            rest = [size for at, size in enumerate(factors) if at not in merged]
            below = (*rest, sum(factors[at] for at in merged))
            total = total.plus(sizes_of(tuple(sorted(below))))
    return total


def sizes_of_holders(count: int) -> Sizes:
    """Return what one product of so many holders needs.

    Examples
    --------
    >>> [sizes_of_holders(count).vectors for count in (2, 3, 4, 5)]
    [2, 15, 148, 2145]
    """
    return sizes_of((1,) * count)


class Load(NamedTuple):
    """What tables take in one query; see `counting.Load`."""

    cells_of: dict[Holders, int]  # how many cells are counted, by the holders of their tables
    tables: int = 0
    groups: int = 0
    cost: Cost = Cost()

    @property
    def cells(self) -> int:
        """The number of cells."""
        return sum(self.cells_of.values())

    def plus(self, other: Load) -> Load:
        """Return the load of one query for both."""
        cells_of = {**self.cells_of}
        for holders, cells in other.cells_of.items():
            cells_of[holders] = cells_of.get(holders, 0) + cells
        tables, groups = self.tables + other.tables, self.groups + other.groups
        return Load(cells_of, tables, groups, self.cost + other.cost)


class ProductCosts(TableCosts[Load]):
    """The costs of a study's tables by scalar products."""

    nothing = Load({})

    def __init__(self, study: Study, records: int, missing: bool) -> None:
        super().__init__(study, records, missing)
        self.ring = Ring.holding(study.records)
        self.lengths = axis_lengths(study.variables, missing)

    def load(self, group: Group) -> Load:
        """Return the load of a group's tables; a ValueError if one cannot be counted."""
        total = Load({}, groups=1)
        for family in group.families:
            cells = prod(self.lengths[name] for name in family.members)
            holders = self.study.holders_of(family.members)
            if len(holders) > MOST_HOLDERS:
                raise ValueError(
                    f"the table of {', '.join(family.members)} has {len(holders)} holders, and "
                    f"scalar products of more than {MOST_HOLDERS} need more than "
                    f"{subprotocols(7):,} sub-protocols each: count by masked-tables, or allow "
                    "fewer parents"
                )
            table = Load({holders: cells}, 1, 0, self._cost(holders, cells))
            if (needed := self.memory_with_tables(table)) > self.memory:
                raise ValueError(
                    f"the table of {', '.join(family.members)} takes {needed:,} bytes of memory at "
                    f"each party, and `memory` lets a query take {self.memory:,}: allow more "
                    "memory or fewer parents, or count by masked-tables"
                )
            total = total.plus(table)
        return total

    def _cost(self, holders: Holders, cells: int) -> Cost:
        elements, shares = cells * self.records, self.ring.packed_size(cells) * len(holders)
        if len(holders) == 1:
            return Cost(elements * COUNT_PS, shares)
        sizes = sizes_of_holders(len(holders))
        sent = sizes.vectors * self.ring.packed_size(elements)
        return Cost(elements * sizes.work * ELEMENT_PS, sent + shares)

    def part_cells(self, holders: Holders) -> int:
        """Return how many cells a part has at most: half the memory of a query holds it."""
        room = self.memory // 2 - CODES_BYTES * self.records
        return max(room // max(self._cell_bytes(holders), 1), 1)

    def _cell_bytes(self, holders: Holders) -> int:
        """Return the memory, in bytes, that a cell of a part takes at one party.

        A sub-protocol keeps its vectors while those below it run, which have a factor less.
        """
        count = len(holders)
        kept = sum(factors + 1 for factors in range(2, count + 1))
        vectors = COPIES + 2 * count + kept if count > 1 else 1
        return vectors * self.records * self.ring.dtype.itemsize

    def memory_of(self, load: Load) -> int:
        """Return the memory, in bytes, at a party: of the largest part, and all that is dealt."""
        parts = [
            min(cells, self.part_cells(holders)) * self._cell_bytes(holders)
            for holders, cells in load.cells_of.items()
        ]
        # The dealer waits for nobody: what it sends waits at the receivers.
        dealt = 0
        for holders, number in self._parts(load):
            sent = self.ring.packed_size(load.cells_of[holders] * self.records)
            vectors = sizes_of_holders(len(holders)).dealt
            dealt += vectors * (sent + MESSAGE_BYTES * number)
        return CODES_BYTES * self.records + max(parts, default=0) + dealt

    def _parts(self, load: Load) -> Iterator[tuple[Holders, int]]:
        """Go through the holders that multiply, and into how many parts they divide the cells."""
        for holders, cells in load.cells_of.items():
            if len(holders) > 1:
                yield holders, -(-cells // self.part_cells(holders))

    def rounds(self, load: Load) -> int:
        """Return the rounds: part after part, and the shares."""
        return 1 + sum(ROUNDS[len(holders)] * parts for holders, parts in self._parts(load))

    def work(self, load: Load) -> int:
        """Return the work of all parties, in picoseconds: messages cost beside their elements."""
        messages = sum(
            parts * sizes_of_holders(len(holders)).vectors for holders, parts in self._parts(load)
        )
        return load.cost.picoseconds + MESSAGE_PS * messages

    def planned(self, load: Load) -> Planned:
        """Return the memory at a party, and the time of all."""
        less = (
            f"it sends {load.cost.bytes:,} bytes by scalar-product; count by masked-tables, or "
            "have fewer records, sites or parents"
        )
        return super().planned(load)._replace(less=less)


class Part(NamedTuple):
    """Cells that the same sites count together."""

    holders: Holders
    pieces: tuple[Piece, ...]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return sum(len(cells) for _, cells in self.pieces)


@dataclass(frozen=True)
class ProductPlan(TablePlan):
    """How the parties count the tables of one query by scalar products."""

    costs_type: ClassVar[type[ProductCosts]] = ProductCosts

    @property
    def ring(self) -> Ring:
        """The ring of counts."""
        return self.joined.commitments.ring

    @cached_property
    def label(self) -> bytes:
        """A digest of the query: part of every label."""
        place, commitments = self.joined.study.place, self.joined.commitments
        parts: list[bytes | int] = [commitments.label, self.number, self.selection.name]
        parts.append(int(self.missing))
        for family in self.families:
            parts += [len(family.members), *map(place, family.members)]
        return label("tables by scalar products", *parts)

    def shape(self, table: Names) -> tuple[int, ...]:
        """Return the shape of a table."""
        return tuple(self.costs.lengths[name] for name in table)

    @cached_property
    def by_holders(self) -> dict[Holders, list[Names]]:
        """The tables by their holders."""
        tables: dict[Holders, list[Names]] = {}
        for family in self.families:
            table: Names = tuple(family.members)
            tables.setdefault(self.joined.study.holders_of(table), []).append(table)
        return tables

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in the order in which all parties take them."""
        return tuple(
            Part(holders, pieces)
            for holders, tables in self.by_holders.items()
            for pieces in self._divided(tables, self.costs.part_cells(holders))
        )

    def _divided(self, tables: Sequence[Names], most: int) -> Iterator[tuple[Piece, ...]]:
        """Divide the cells of tables into parts of at most so many."""
        pieces, room = list[Piece](), most
        for table in tables:
            cells = range(prod(self.shape(table)))
            while cells:
                pieces.append((table, cells[:room]))
                cells, room = cells[room:], room - len(cells[:room])
                if not room:
                    yield tuple(pieces)
                    pieces, room = [], most
        if pieces:
            yield tuple(pieces)

    def product(self, number: int) -> Product:
        """Return the scalar products of a part, which has several holders."""
        part, study = self.parts[number], self.joined.study
        name = label("part", self.label, number)
        shape = part.cells, self.selection.records
        return Product(self.label, name, self.ring, part.holders, *shape, study.dealer)

    # ---- the parties -----------------------------------------------------------------------------

    def run_site(self, site: SiteRole) -> Program[None]:
        """Multiply, part by part, and send the analyst the shares of all cells."""
        own = site.holder
        assert own is not None  # it has joined the study
        own.begin(WAY, self.number)
        multiplier = Multiplier(own.party, own.dealer_key)
        shares = []
        for number, part in enumerate(self.parts):
            if part.holders == (own.party,):
                shares.append(self._counted(own, part))
            elif own.party in part.holders:
                product = self.product(number)
                share = yield from share_product(multiplier, product, self._vectors(own, part))
                peers = {p: own.peer_keys[p] for p in part.holders if p != own.party}
                shares.append(
                    share + zero_share(own.party, peers, self.ring, product.label, part.cells)
                )
        yield from send_share(self.ring.reduce(np.concatenate(shares)), self.ring, site.analyst)

    def run_dealer(self, dealer: DealerRole) -> Program[None]:
        """Deal the masks of each part."""
        for number, part in enumerate(self.parts):
            if len(part.holders) > 1:
                keys = {party: dealer.mask_keys[party] for party in part.holders}
                yield from deal_product(keys, self.product(number))

    def run_analyst(self) -> Program[list[NDArray[np.int64]]]:
        """Add up the shares of each table's holders."""
        cells = {h: sum(prod(self.shape(t)) for t in ts) for h, ts in self.by_holders.items()}
        held = {site: [h for h in cells if site in h] for site in self.parties}
        counts = {site: sum(cells[h] for h in of_site) for site, of_site in held.items()}
        expect = {
            site: Expect(Share, self.ring.packed_size(count)) for site, count in counts.items()
        }
        totals = {h: np.zeros(count, self.ring.dtype) for h, count in cells.items()}
        for site, share in (yield from exchange({}, expect)).items():
            values = elements_of(share, site, self.ring, (counts[site],))
            ends = np.cumsum([cells[h] for h in held[site]])[:-1]
            for holders, part in zip(held[site], np.split(values, ends), strict=True):
                totals[holders] = self.ring.reduce(totals[holders] + part)
        tables: dict[Names, NDArray[np.int64]] = {}
        for holders, names in self.by_holders.items():
            shapes = [self.shape(table) for table in names]
            ends = np.cumsum([prod(shape) for shape in shapes])[:-1]
            of_tables = np.split(totals[holders].astype(np.int64), ends)
            for table, shape, counted in zip(names, shapes, of_tables, strict=True):
                tables[table] = counted.reshape(shape)
        return [tables[tuple(family.members)] for family in self.families]

    # ---- a site's data ---------------------------------------------------------------------------

    def _vectors(self, own: Holder, part: Part) -> Elements:
        """Return the site's factor of each cell of a part: shape (cells, records)."""
        rows = []
        for table, cells in part.pieces:
            shape, axes = self.shape(table), self._axes(own, table)
            states = np.unravel_index(np.arange(cells.start, cells.stop), shape)
            joint = np.ravel_multi_index(
                tuple(states[axis] for axis in axes), [shape[axis] for axis in axes]
            )
            rows.append(self._joint(own, table, axes) == joint[:, None])
        return np.concatenate(rows).astype(self.ring.dtype)

    def _counted(self, own: Holder, part: Part) -> Elements:
        """Return the counts of a part whose tables the site holds alone."""
        counts = []
        for table, cells in part.pieces:
            joint = self._joint(own, table, range(len(table)))
            every = np.bincount(joint[joint >= 0], minlength=prod(self.shape(table)))
            counts.append(every[cells.start : cells.stop])
        return np.concatenate(counts).astype(self.ring.dtype)

    def _axes(self, own: Holder, table: Names) -> list[int]:
        """Return the axes of a table that a site holds."""
        holders = self.joined.study.holders
        return [axis for axis, name in enumerate(table) if own.party in holders[name]]

    def _joint(self, own: Holder, table: Names, axes: Sequence[int]) -> NDArray[np.int64]:
        """Return each record's joint state of a site's axes; -1 if it is not counted."""
        codes = (self._codes(own, table[axis]) for axis in axes)
        lengths = [self.shape(table)[axis] for axis in axes]
        return joint_states(self.selection.records, codes, lengths)

    def _codes(self, own: Holder, name: str) -> Elements:
        """Return the codes of the chosen records of a column that the site holds."""
        place = self.joined.study.place(name)
        form = own.commitments.form("codes", place)
        return self.selection.whole(lambda block: own.clear(form, place, block))
