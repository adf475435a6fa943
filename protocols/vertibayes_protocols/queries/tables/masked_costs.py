"""What a table of masked columns costs by products and by shuffle, and by which it is counted.

The costs are integers and depend on public sizes only, so that all parties on all machines agree on
which is cheaper, and the analyst cannot choose. The constants are part of the protocol: parties
with different constants would count differently. The work is that of all parties together
(`benchmarks/ways.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import NamedTuple

from vertibayes_mpc.commitments.operands import CODE_RING, FLAG_RING
from vertibayes_mpc.masked_tables.plan import STEP_BYTES
from vertibayes_mpc.ring import TILE_CELLS, TILE_ROWS, Ring
from vertibayes_protocols.queries.tables.counting import Cost, Group, TableCosts
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import axis_lengths

KEPT_GROUPS = 1_024  # of tables, for the next query, or the other parties of a process

# Work in picoseconds. By shuffle: each holder's step counts three times (holder, dealer, seal).
SHUFFLE_STEP_PS, SHUFFLE_STEP_PS_PER_RECORD, STEPS_PER_HOLDER = 100_000_000, 8_000, 3
MISSING_PERCENT = 280  # of the work of a shuffle, if records drop out
# A table that one site holds alone.
LOCAL_PS, LOCAL_PS_PER_RECORD = 20_000_000, 8_000
# By products: an element of an extension at each party that sends, receives or multiplies it; a
# cell of a table, for each record, at each party.
EXTENSION_PS_PER_ELEMENT, PRODUCT_PS_PER_CELL_AND_RECORD = 650, 75

# What a query takes at one party (`tests/protocols/test_budgets.py`).
EXTENSION_COPIES = 5  # masked, masks, unmasked, stacked, multiplied; the dealer has a mask per site
DOT_BYTES = 32  # of a product, while its sums are exact in floating point and in 64 bits
TERM_BYTES, TERM_PS = 5_000, 300_000_000  # plans, labels, arrays; at each party, for each block
SHUFFLE_BYTES_PER_RECORD = 40  # an order, its sort keys, and the vectors that are sorted
CHOICE_BYTES_PER_CELL = 64  # at one party: the place, the share and the logarithm of a count
KEPT_BYTES = 1_600  # at one party: a kept sum of logarithms, and what it is of
MOST_KEPT = 100_000  # sums of logarithms, by a party in a session
KEPT_PART = 8  # sums that are kept take at most this part of a study's memory
SCORE_BYTES = 2_500  # at one party: a score, its lookups and their tables
LOOKUP_PS_PER_BYTE = 20_000  # of the messages of lookups and comparisons, at all parties
FUNCTION_BYTES_PER_RECORD, FUNCTION_PS_PER_RECORD = 24, 250_000  # of each function, at each party
MOST_TERMS = 400_000  # that are listed for one query, equal ones included


class TableSize(NamedTuple):
    """What the cost of a table depends on, beside the number of records."""

    cells: int  # the number of cells
    holders: int  # the number of sites that hold its columns
    missing: bool  # whether records drop out of the table because a value is missing
    narrow: bool  # whether all its columns are committed as indicators

    @property
    def code_ring(self) -> Ring:
        """The ring of the joint code of a record."""
        return Ring(max(self.cells - 1, 1).bit_length())


class Columns(NamedTuple):
    """What the products of prefixes consist of."""

    extended: int = 0
    rows: int = 0
    terms: int = 0  # the number of products
    widest: int = 0  # the number of columns of the widest product

    def plus(self, other: Columns) -> Columns:
        """Return the products of both."""
        extended, rows, terms = (a + b for a, b in zip(self[:3], other[:3], strict=True))
        return Columns(extended, rows, terms, max(self.widest, other.widest))


class Load(NamedTuple):
    """What tables take in one query; see `counting.Load`."""

    columns: Columns = Columns()  # the columns of products
    shuffle_bytes: int = 0  # the memory of the shuffled tables
    cells: int = 0
    tables: int = 0
    groups: int = 0
    cost: Cost = Cost()
    steps: int = 0  # the rounds of the longest extension, for a block of records
    chain: int = 0  # the rounds of the longest shuffle

    def plus(self, other: Load) -> Load:
        """Return the load of one query for both."""
        return Load(
            self.columns.plus(other.columns),
            self.shuffle_bytes + other.shuffle_bytes,
            self.cells + other.cells,
            self.tables + other.tables,
            self.groups + other.groups,
            self.cost + other.cost,
            max(self.steps, other.steps),
            max(self.chain, other.chain),
        )


class Shuffled(NamedTuple):
    """Which tables of a group are counted by shuffle; the others are by products."""

    shuffled: tuple[bool, ...]  # of each table
    load: Load  # what all tables of the group take


class MaskedCosts(TableCosts[Load]):
    """The costs of a study's tables by masked columns."""

    nothing = Load()

    def __init__(self, study: Study, records: int, missing: bool) -> None:
        super().__init__(study, records, missing)
        self.parties = len(study.sites) + 1
        self.ring = Ring.holding(study.records)
        self.block_rows = min(records, study.block_rows)
        self.blocks = self.commitment_rounds = -(-records // study.block_rows)
        self.codes = {name: v.codes for name, v in study.variables.items()}
        self.holders = {name: frozenset(sites) for name, sites in study.holders.items()}
        self.indicators = sum(c - 1 for c in self.codes.values() if c - 1 <= study.most_indicators)
        words = self.indicators * self.ring.dtype.itemsize
        words += len(self.codes) * CODE_RING.dtype.itemsize
        words += FLAG_RING.dtype.itemsize * sum(v.missing for v in study.variables.values())
        self.stored_bytes = study.records * words
        sent = sum(len(study.holders[name]) * self._form_bytes(study, name) for name in self.codes)
        self.commitment_bytes = sent * (len(study.sites) - 1)
        lengths = axis_lengths(study.variables, missing)
        self._axes = {
            name: TableSize(
                lengths[name],
                len(self.holders[name]),
                missing=v.missing and not missing,
                narrow=v.codes - 1 <= study.most_indicators,
            )
            for name, v in study.variables.items()
        }
        self.both = lru_cache(maxsize=1 << 14)(self._both)

    def _form_bytes(self, study: Study, name: str) -> int:
        """Return what a holder of a column sends to another site, in bytes."""
        variable, records = study.variables[name], study.records
        width = variable.codes - 1
        sent = CODE_RING.packed_size(records) + FLAG_RING.packed_size(records) * variable.missing
        return sent + self.ring.packed_size(width * records) * (width <= study.most_indicators)

    def load(self, group: Group) -> Load:
        """Return the load of a group's tables; raises as `choose_shuffled`."""
        return choose_shuffled(self, group).load

    def checked(self, groups: Iterable[Group]) -> Iterable[Load]:
        """Go through the loads of groups, unless the memory suffices to shuffle any table."""
        return () if self.all_can_shuffle else super().checked(groups)

    def memory_of(self, load: Load) -> int:
        """Return the memory, in bytes, at a party: products are done before shuffles begin."""
        products = self.products_memory(load.columns) if load.columns.rows else 0
        shuffles = self.shuffling_memory + load.shuffle_bytes if load.shuffle_bytes else 0
        return max(products, shuffles)

    def picoseconds(self, load: Load) -> int:
        """Return the time that a query takes, with that of its products beside their columns."""
        return load.cost.weight + self.terms_time(load.columns)

    def rounds(self, load: Load) -> int:
        """Return the rounds: of extensions, of the correction and the shares, and of shuffles."""
        return load.steps * self.blocks + 2 * bool(load.columns.rows) + load.chain

    def sizes(self, prefix: Sequence[str], lasts: Sequence[str]) -> list[TableSize]:
        """Return the size of the table of a prefix with each last variable, or of the prefix."""
        axes = [self._axes[name] for name in prefix]
        cells = prod(axis.cells for axis in axes)
        missing, narrow = any(axis.missing for axis in axes), all(axis.narrow for axis in axes)
        holders = frozenset[str]().union(*(self.holders[name] for name in prefix))
        if not lasts:
            return [TableSize(cells, len(holders), missing, narrow)]
        sizes = []
        for last in lasts:
            axis = self._axes[last]
            size = cells * axis.cells, len(holders | self.holders[last])
            sizes.append(TableSize(*size, missing or axis.missing, narrow and axis.narrow))
        return sizes

    # ---- by products -----------------------------------------------------------------------------

    def width(self, prefix: Sequence[str]) -> int:
        """Return the number of columns in all products of two or more variables of a prefix."""
        widths = [self.codes[name] - 1 for name in prefix]
        return prod(width + 1 for width in widths) - 1 - sum(widths)

    def columns(self, prefixes: Sequence[tuple[str, ...]]) -> Columns:
        """Return the columns of the products of all prefixes, each product once."""
        sizes = {prefix: range(1, len(prefix) + 1) for prefix in prefixes}
        terms = {frozenset(t) for p, ks in sizes.items() for k in ks for t in combinations(p, k)}
        widths = [(len(term), prod(self.codes[name] - 1 for name in term)) for term in terms]
        extended = sum(width for size, width in widths if size > 1)
        each = [width for _, width in widths]
        return Columns(extended, sum(each), len(terms), max(each, default=0))

    def columns_of(self, prefix: Sequence[str]) -> Columns:
        """Return the `columns` of one prefix, without listing its products."""
        widths = [self.codes[name] - 1 for name in prefix]
        extended = self.width(prefix)
        return Columns(extended, extended + sum(widths), (1 << len(prefix)) - 1, prod(widths))

    def extension(self, prefix: Sequence[str]) -> Cost:
        """Return the cost of the products that all tables of a prefix share."""
        holders = len(frozenset[str]().union(*(self.holders[name] for name in prefix)))
        elements = self.records * self.width(prefix)
        messages = (holders if holders > 1 else 0) + self.parties - 2
        work = elements * (2 * holders + messages) * EXTENSION_PS_PER_ELEMENT
        return Cost(work, self.ring.packed_size(elements * messages))

    def products(self, size: TableSize) -> Cost:
        """Return the cost of one table, without the extension of its prefix."""
        work = self.records * size.cells * self.parties * PRODUCT_PS_PER_CELL_AND_RECORD
        return Cost(work, self.ring.packed_size(size.cells * self.parties))

    def products_memory(self, columns: Columns) -> int:
        """Return the memory, in bytes, that the products of a query take at one party.

        A site holds messages to all others, and their encodings, of one step of an extension. It
        multiplies tiles of columns as floating-point numbers (`vertibayes_mpc.ring.Ring.dot`).
        """
        copies = max(EXTENSION_COPIES, self.parties + 1)
        step = STEP_BYTES // max(self.block_rows * self.ring.dtype.itemsize, 1)  # columns
        sent = min(columns.extended, max(step, columns.widest))
        blocks = copies * columns.extended + 2 * self.parties * sent + 4 * self.indicators
        products = columns.rows * self.indicators * (self.parties + 3)
        words = self.block_rows * blocks + products
        multiplied = columns.rows + self.indicators
        tile = min(self.block_rows * multiplied, max(TILE_ROWS * multiplied, TILE_CELLS))
        floats = (8 + self.ring.dtype.itemsize) * tile + DOT_BYTES * columns.rows * self.indicators
        return self.ring.dtype.itemsize * words + floats + TERM_BYTES * columns.terms

    def listed_terms(self, prefixes: Sequence[tuple[str, ...]]) -> int:
        """Return how many products `columns` lists."""
        return sum((1 << len(prefix)) - 1 for prefix in prefixes)

    def products_time(self, groups: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> int:
        """Return the time, in picoseconds, of groups of tables that are counted by products."""
        total = 0
        for prefix, lasts in groups:
            total += self.extension(prefix).weight + self.terms_time(self.columns_of(prefix))
            total += sum(self.products(size).weight for size in self.sizes(prefix, lasts))
        return total

    def terms_time(self, columns: Columns) -> int:
        """Return the work, in picoseconds, of products beside that on their columns."""
        return columns.terms * TERM_PS * self.parties * max(self.blocks, 1)

    def choice_memory(self, prefix: Sequence[str], cells: int) -> int:
        """Return the memory, in bytes, at one party for choices by tables of one prefix."""
        products = self.products_memory(self.columns_of(prefix))
        return products + CHOICE_BYTES_PER_CELL * cells

    # ---- by shuffle ------------------------------------------------------------------------------

    def shuffle(self, size: TableSize) -> Cost:
        """Return the cost of one table; a site that holds all its columns counts it alone."""
        if size.holders == 1:
            work = LOCAL_PS + LOCAL_PS_PER_RECORD * self.records
            return Cost(work, self.ring.packed_size(size.cells))
        work = SHUFFLE_STEP_PS + SHUFFLE_STEP_PS_PER_RECORD * self.records
        work *= STEPS_PER_HOLDER * size.holders
        sent = size.code_ring.packed_size(2 * size.holders * self.records)
        if size.missing:
            work = work * MISSING_PERCENT // 100
            sent += FLAG_RING.packed_size(self.records * (4 * size.holders - 3))
        return Cost(work, sent)

    def _both(self, size: TableSize) -> tuple[Cost, Cost]:
        """Return the costs of a table by shuffle and by products."""
        return self.shuffle(size), self.products(size)

    def can_shuffle(self, size: TableSize) -> bool:
        """Whether the memory of a query suffices to count a table by shuffle."""
        return self.shuffling_memory + self.shuffle_memory(size) <= self.memory

    def shuffle_memory(self, size: TableSize) -> int:
        """Return the memory, in bytes, that one table takes beside `shuffling_memory`."""
        packed, width = 3 * size.code_ring.packed_size(self.records), 2 * CODE_RING.dtype.itemsize
        if size.missing:
            packed += 3 * FLAG_RING.packed_size(self.records)
            width += 3 * FLAG_RING.dtype.itemsize
        return packed + width * self.records

    @property
    def all_can_shuffle(self) -> bool:
        """Whether the memory of a query suffices to count every table by shuffle."""
        return self.can_shuffle(TableSize(1 << CODE_RING.bits, 2, True, False))

    @property
    def shuffling_memory(self) -> int:
        """How many bytes the first shuffled table takes at each party, beside its own memory."""
        return SHUFFLE_BYTES_PER_RECORD * self.records


@lru_cache(maxsize=KEPT_GROUPS)
def choose_shuffled(costs: MaskedCosts, group: Group) -> Shuffled:
    """Choose products or a shuffle for each table of a group: what is cheaper.

    Tables by products share the extension of their prefix: either it pays for all tables that are
    then cheaper than by shuffle, or no table uses it. If products do not fit the memory, the tables
    are shuffled. The reverse never happens: products would tell more to a dealer that works with
    the analyst, who sets the memory.
    """
    columns, extension = costs.columns_of(group.prefix), costs.extension(group.prefix)
    extends = costs.products_memory(columns) <= costs.memory
    sizes = costs.sizes(*group)
    both = [costs.both(size) for size in sizes]
    weights = [(shuffle.weight, products.weight) for shuffle, products in both]
    shuffled = [
        not (extends and size.narrow and products < shuffle)
        for size, (shuffle, products) in zip(sizes, weights, strict=True)
    ]
    mixed = sum(w[not by_shuffle] for w, by_shuffle in zip(weights, shuffled, strict=True))
    if all_shuffled := sum(w[0] for w in weights) <= mixed + extension.weight:
        shuffled = [True] * len(sizes)
    for family, size, by_shuffle in zip(group.families, sizes, shuffled, strict=True):
        if by_shuffle and not costs.can_shuffle(size):
            needed = costs.shuffling_memory + costs.shuffle_memory(size)
            raise ValueError(
                f"the table of {', '.join(family.members)} takes {needed:,} bytes of memory at "
                f"each party, and `memory` lets a query take {costs.memory:,}: allow more memory "
                "or fewer parents"
            )
    chosen = [each[not by_shuffle] for each, by_shuffle in zip(both, shuffled, strict=True)]
    cost = sum(chosen, Cost() if all_shuffled else extension)
    shuffles = [size for size, by_shuffle in zip(sizes, shuffled, strict=True) if by_shuffle]
    load = Load(
        Columns() if all_shuffled else columns,
        sum(map(costs.shuffle_memory, shuffles)),
        sum(size.cells for size in sizes),
        len(sizes),
        1,
        cost,
        0 if all_shuffled or len(group.prefix) == 1 else 2 * len(group.prefix) - 1,
        max((size.holders + 2 * size.missing for size in shuffles), default=0),
    )
    return Shuffled(tuple(shuffled), load)


def most_kept(study: Study) -> int:
    """Return how many sums of logarithms each party keeps at most."""
    return min(MOST_KEPT, study.memory // KEPT_PART // KEPT_BYTES)


def choice_room(study: Study) -> int:
    """Return the bytes that a query of choices may take beside the sums that are kept."""
    return study.memory - KEPT_BYTES * most_kept(study)
