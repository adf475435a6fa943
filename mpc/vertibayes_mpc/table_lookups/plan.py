"""What all parties know of table lookups: the axes of tables, their holders, parts, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from vertibayes_mpc.commitments import Commitments, Selection, Term
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party

MOST_CELLS = 1 << 12  # rows of a table: a unit vector then has 32 KiB for each record
WORDS = Ring(64)
PART_BYTES = 1 << 23  # the unit vectors of the records that are treated together
COPIES = 5  # of the unit vectors of a part in a site's memory: packed, words, doubled, turned


@dataclass(frozen=True)
class TableLookupPlan:
    """All that the parties do to look records up in tables.

    Parameters
    ----------
    label : bytes
        Names the query, with its number: no two plans have the same.
    selection : Selection
        The records.
    tables : tuple of tuple of int
        The operands that are the axes of each table, at least one.
    columns : int
        The number of columns of each table.
    ring : Ring, default=Ring(64)
        The ring of the tables' numbers.

    Raises
    ------
    ValueError
        If a table has no axis, more than `MOST_CELLS` rows, or an axis twice.
    """

    label: bytes
    selection: Selection
    tables: tuple[Term, ...]
    columns: int
    ring: Ring = WORDS

    def __post_init__(self) -> None:
        for place, axes in enumerate(self.tables):
            if not axes or len(set(axes)) < len(axes):
                raise ValueError(f"a table must have one axis or more, each once, got {axes}")
            if self.rows(place) > MOST_CELLS:
                raise ValueError(
                    f"a table has {self.rows(place):,} rows; at most {MOST_CELLS:,} are allowed"
                )
            if self.index_ring(place).bits > self.commitments.code_ring.bits:
                raise ValueError("the ring of codes must hold the indices of tables")
        if self.columns < 1:
            raise ValueError(f"tables must have at least one column, got {self.columns}")

    @property
    def commitments(self) -> Commitments:
        """The commitments of the study."""
        return self.selection.commitments

    # ---- tables ----------------------------------------------------------------------------------

    def lengths(self, table: int) -> tuple[int, ...]:
        """Return the length of each axis of a table."""
        return tuple(self.commitments.operands[place].width + 1 for place in self.tables[table])

    def rows(self, table: int) -> int:
        """Return the number of rows of a table; the last axis changes fastest."""
        return prod(self.lengths(table))

    def index_ring(self, table: int) -> Ring:
        """Return the ring of the indices of a table: the smallest that holds them."""
        return Ring(max((self.rows(table) - 1).bit_length(), 1))

    def size(self, table: int) -> int:
        """Return the length of a unit vector."""
        return 1 << self.index_ring(table).bits

    def holders(self, table: int) -> tuple[Party, ...]:
        """Return the sites that hold an axis of a table, sorted."""
        return self.commitments.holders(self.tables[table])

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The tables of several holders."""
        return tuple(t for t in range(len(self.tables)) if len(self.holders(t)) > 1)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that take part, sorted."""
        return tuple(sorted({site for t in range(len(self.tables)) for site in self.holders(t)}))

    @property
    def is_dealt(self) -> bool:
        """Whether the dealer takes part."""
        return bool(self.shared)

    def between(self, one: Party, other: Party) -> list[int]:
        """Return the tables of which two sites hold axes: they exchange masked indices."""
        return [t for t in self.shared if {one, other} <= set(self.holders(t))]

    def dealt_to(self, site: Party) -> list[int]:
        """Return the tables of which a site is the first holder: it receives unit vectors."""
        return [t for t in self.shared if self.holders(t)[0] == site]

    # ---- labels and parts ------------------------------------------------------------------------

    @cached_property
    def name(self) -> bytes:
        """A digest of all that the plan says: part of every label."""
        parts: list[bytes | int] = [self.label, self.commitments.label, self.selection.name]
        parts += [self.selection.records, self.columns, self.ring.bits, PART_BYTES]
        for axes in self.tables:
            parts += [len(axes), *axes]
        return label("table lookups", *parts)

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The records in parts of bounded memory."""
        each = max(PART_BYTES // max(self._unit_bytes, 1), 1)
        return tuple(self._parts(each)) if self.is_dealt else ()

    def _parts(self, each: int) -> Iterator[slice]:
        for start in range(0, self.selection.records, each):
            yield slice(start, min(start + each, self.selection.records))

    @cached_property
    def _unit_bytes(self) -> int:
        return sum(self.size(table) for table in self.shared) * self.ring.bytes

    # ---- costs -----------------------------------------------------------------------------------

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends, labels aside."""
        return self._unit_bytes * self.selection.records

    @property
    def sent_bytes(self) -> int:
        """The bytes that sites send each other and the analyst, labels aside."""
        pairs = sum(
            len(self.holders(t)) * (len(self.holders(t)) - 1) * self.index_ring(t).bytes
            for t in self.shared
        )
        shown = len(self.parties) * self.columns * self.ring.bytes
        return (pairs + shown) * self.selection.records

    @property
    def memory(self) -> int:
        """The bytes that a site needs at a time, about."""
        records = self.selection.records
        each = 8 * (len(self.shared) + 3 * self.columns + 2)
        part = max((part.stop - part.start for part in self.parts), default=0)
        tables = sum(self.size(table) for table in range(len(self.tables))) * self.columns
        return records * each + COPIES * part * self._unit_bytes + 16 * tables
