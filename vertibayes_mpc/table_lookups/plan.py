"""What all parties know of table lookups: the axes of tables, their holders, parts, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from vertibayes_mpc import unit_vectors
from vertibayes_mpc.commitments import Commitments, Selection, Term
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.unit_vectors import Indices

MOST_CELLS = 1 << 12  # rows of a table: a unit vector then has 32 KiB for each record
WORDS = Ring(64)


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

    def lengths(self, table: int) -> tuple[int, ...]:
        """Return the length of each axis of a table."""
        return tuple(self.commitments.operands[place].width + 1 for place in self.tables[table])

    def rows(self, table: int) -> int:
        """Return the number of rows of a table; the last axis changes fastest."""
        return prod(self.lengths(table))

    def index_ring(self, table: int) -> Ring:
        """Return the ring of the indices of a table: the smallest that holds them."""
        return Ring(max((self.rows(table) - 1).bit_length(), 1))

    def holders(self, table: int) -> tuple[Party, ...]:
        """Return the sites that hold an axis of a table, sorted."""
        return self.commitments.holders(self.tables[table])

    @cached_property
    def shared(self) -> Indices:
        """The indices in the tables of several holders."""
        shared = [t for t in range(len(self.tables)) if len(self.holders(t)) > 1]
        return Indices(
            "table lookup",
            self.name,
            self.selection.records,
            self.ring,
            {table: self.index_ring(table) for table in shared},
            {table: self.holders(table) for table in shared},
        )

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that take part, sorted."""
        return tuple(sorted({site for t in range(len(self.tables)) for site in self.holders(t)}))

    @property
    def is_dealt(self) -> bool:
        """Whether the dealer takes part."""
        return bool(self.shared.rings)

    @cached_property
    def name(self) -> bytes:
        """A digest of all that the plan says: part of every label."""
        parts: list[bytes | int] = [self.label, self.commitments.label, self.selection.name]
        parts += [self.selection.records, self.columns, self.ring.bits, unit_vectors.PART_BYTES]
        for axes in self.tables:
            parts += [len(axes), *axes]
        return label("table lookups", *parts)

    # ---- costs -----------------------------------------------------------------------------------

    @property
    def dealt_bytes(self) -> int:
        """The bytes that the dealer sends, labels aside."""
        return self.shared.dealt_bytes

    @property
    def sent_bytes(self) -> int:
        """The bytes that sites send each other and the analyst, labels aside."""
        shown = len(self.parties) * self.columns * self.ring.bytes
        return self.shared.sent_bytes + shown * self.selection.records

    @property
    def memory(self) -> int:
        """The bytes that a site needs at a time, about."""
        each = 8 * (len(self.shared.rings) + 3 * self.columns + 2)
        sizes = (1 << self.index_ring(table).bits for table in range(len(self.tables)))
        tables = 16 * sum(sizes) * self.columns
        return self.selection.records * each + self.shared.memory + tables
