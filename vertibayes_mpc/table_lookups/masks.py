"""The labelled streams that one site shares with the dealer."""

from __future__ import annotations

from dataclasses import dataclass

from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.table_lookups.plan import TableLookupPlan


@dataclass(frozen=True)
class Masks:
    """The streams of one site for the lookups of a plan."""

    key: Stream
    plan: TableLookupPlan

    def indices(self, table: int) -> Elements:
        """Return r, the masks of the indices of all records: shape (records,)."""
        name = label("table lookup indices", self.plan.name, table)
        shape = (self.plan.selection.records,)
        return self.key.elements(self.plan.index_ring(table), name, shape)

    def units(self, table: int, part: slice) -> Elements:
        """Return U, the shares of the unit vectors of a part: shape (records, size)."""
        name = label("table lookup units", self.plan.name, table, part.start)
        shape = part.stop - part.start, self.plan.size(table)
        return self.key.elements(self.plan.ring, name, shape)
