"""The plan of a score table: what all parties derive from the query, and what it takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax import RankPlan
from vertibayes_mpc.lookups import Batch, LookupPlan, PublicFunction, cut
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.table_lookups import (
    CountPlan,
    TableLookupPlan,
)
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.queries.releases.plan import ReleaseNoise
from vertibayes_protocols.queries.tables.costs import LOOKUP_PS_PER_BYTE
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family

RANKED_TOGETHER = 1 << 11  # records whose log odds are compared with all thresholds at a time
NOISY = Ring(32)


@dataclass(frozen=True)
class ScorePlan:
    """All that the parties do for one score table."""

    study: Study
    lookups: TableLookupPlan  # the log odds
    thresholds: NDArray[np.int64]
    target: str
    rule: Rule

    @property
    def sites(self) -> tuple[Party, ...]:
        """Who holds the class or a variable of the log odds, sorted."""
        return tuple(sorted({*self.lookups.parties, *self.study.holders[self.target]}))

    @property
    def records(self) -> int:
        """The number of records."""
        return self.lookups.selection.records

    @property
    def codes(self) -> int:
        """The number of codes of the target."""
        return self.study.variables[self.target].codes

    @property
    def class_bits(self) -> int:
        """The bits of an index that say the class; the higher bits say the bin."""
        return (self.codes - 1).bit_length()

    @cached_property
    def ranks(self) -> tuple[tuple[slice, RankPlan], ...]:
        """The comparisons with thresholds, of some records after the others."""
        plans = []
        for start in range(0, self.records, RANKED_TOGETHER):
            part = slice(start, min(start + RANKED_TOGETHER, self.records))
            sizes = (len(self.thresholds) + 1,) * (part.stop - start)
            name = label("score ranks", self.lookups.name, start)
            plans.append((part, RankPlan(name, self.lookups.parties, sizes)))
        return tuple(plans)

    @cached_property
    def counts(self) -> CountPlan:
        """The counts by bin and class."""
        bits = len(self.thresholds).bit_length() + self.class_bits
        return CountPlan(self.lookups.name, self.sites, self.records, bits, self.ring)

    @property
    def cells(self) -> int:
        """The number of cells that are released, of which some are empty for all records."""
        return 1 << self.counts.bits

    # ---- the rule --------------------------------------------------------------------------------

    @cached_property
    def noise(self) -> ReleaseNoise | None:
        """The noise; None if the rule adds none."""
        one = FamilyTables((Family(self.target),), True, self.rule)
        return ReleaseNoise(one, len(self.sites)) if self.rule.is_noisy else None

    @property
    def ring(self) -> Ring:
        """The ring of the counts."""
        return NOISY if self.rule.is_noisy else self.lookups.commitments.ring

    @cached_property
    def function(self) -> PublicFunction | None:
        """What is looked up of each count; None for nothing."""
        is_cut = self.rule.kind == "cut"
        return cut(self.rule.fewest, self.study.records) if is_cut else None

    @cached_property
    def cuts(self) -> LookupPlan:
        """The lookups of the counts."""
        batches: tuple[Batch, ...] = ()
        if self.function and len(self.sites) > 1:
            batches = (Batch(self.sites, ((self.function, self.cells),)),)
        return LookupPlan(self.lookups.name, self.ring, batches)

    @property
    def planned(self) -> Planned:
        """What the table takes: one protocol follows the other."""
        ranks = [plan for _, plan in self.ranks]
        memory = max(plan.memory for plan in ranks) + 24 * self.records
        memory = max(memory, self.lookups.memory, self.counts.memory, self.cuts.memory)
        links = len(self.lookups.parties) * (len(self.lookups.parties) - 1)
        sent = sum(plan.dealt_bytes + links * plan.sent_bytes for plan in ranks)
        sent += sum(
            plan.dealt_bytes + plan.sent_bytes for plan in (self.lookups, self.counts, self.cuts)
        )
        return Planned(memory, LOOKUP_PS_PER_BYTE * sent)

    def check(self) -> None:
        """Refuse noise beyond the ring, with a ValueError."""
        if self.noise is not None:
            reach = self.records + 2 * self.noise.reach(self.cells)
            if reach >= 1 << self.ring.bits:
                raise ValueError("the noise is too large for counts of 32 bits; use more epsilon")

    def read(self, cells: Elements) -> NDArray[np.int64]:
        """Return the table of revealed cells; with noise, counts can be below 0."""
        values = cells.astype(np.int64)
        if self.noise is not None:
            values = np.where(values >= 1 << 31, values - (1 << 32), values)
        table = values.reshape(-1, 1 << self.class_bits)
        return np.asarray(table[: len(self.thresholds) + 1, : self.codes])
