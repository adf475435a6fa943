"""The query `ScoreTable`, and what all parties derive from it: bins, lookups and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

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
from vertibayes_protocols.queries.costs import LOOKUP_PS_PER_BYTE, Planned
from vertibayes_protocols.queries.odds_query import (
    OddsQuery,
)
from vertibayes_protocols.queries.release_plan import ReleaseNoise
from vertibayes_protocols.release import FamilyTables, Rule, RuleKind
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family

MOST_THRESHOLDS = 255
RANKED_TOGETHER = 1 << 11  # records whose log odds are compared with all thresholds at a time
NOISY = Ring(32)


@dataclass(frozen=True, slots=True)
class ScoreTable(OddsQuery[NDArray[np.int64]]):
    """Ask for a table of records by bin of their log odds, and class: shape (bins, codes).

    Further fields are those of `OddsQuery`; the target has two states, and the study has it.

    Parameters
    ----------
    thresholds : ndarray of shape (bins - 1,), dtype int64
        Ascending, in the units of the tables' numbers. A bin begins at its threshold.
    rule : str
        The kind of the rule.
    fewest : int
        As of `Rule`.
    noise : ndarray of shape (3,), dtype float64
        epsilon, delta and dishonest of the rule.
    """

    kind: ClassVar[str] = "score table"
    thresholds: NDArray[np.int64]
    rule: str
    fewest: int
    noise: NDArray[np.float64]

    @classmethod
    def parties_of(
        cls, study: Study, tables: Sequence[Sequence[str]], target: str
    ) -> tuple[Party, ...]:
        """Return whom the query asks: all holders, and the dealer if they are several.

        Parameters
        ----------
        study, tables, target
            As of `OddsQuery.parties_of`.
        """
        sites = study.holders_of({target, *(name for names in tables for name in names)})
        return (*sites, study.dealer) if len(sites) > 1 else sites

    @property
    def released(self) -> FamilyTables:
        """The rule, as that of one table.

        Raises
        ------
        ValueError
            If the rule or the thresholds are not valid.
        """
        thresholds = self.thresholds
        if thresholds.ndim != 1 or thresholds.dtype != np.int64:
            raise ValueError("thresholds must be whole numbers")
        if not 1 <= len(thresholds) <= MOST_THRESHOLDS or (np.diff(thresholds) <= 0).any():
            raise ValueError(f"thresholds must be from 1 to {MOST_THRESHOLDS}, ascending")
        if max(abs(int(thresholds[0])), abs(int(thresholds[-1]))) >= 1 << 62:
            raise ValueError("thresholds must stay below 2**62")
        if self.noise.shape != (3,) or self.noise.dtype != np.float64:
            raise ValueError("a rule must have three numbers: epsilon, delta and dishonest")
        epsilon, delta, dishonest = self.noise.tolist()
        rule = Rule(cast("RuleKind", self.rule), self.fewest, epsilon, delta, dishonest)
        return FamilyTables((Family(self.target),), True, rule)


def rule_fields(rule: Rule) -> dict[str, object]:
    """Return the fields of a rule in a query."""
    noise = np.array([rule.epsilon, rule.delta, rule.dishonest])
    return {"rule": rule.kind, "fewest": rule.fewest, "noise": noise}


@dataclass(frozen=True)
class ScorePlan:
    """All that the parties do for one score table.

    Parameters
    ----------
    study : Study
    lookups : TableLookupPlan
        The log odds.
    thresholds : ndarray of shape (bins - 1,), dtype int64
    target : str
    released : FamilyTables
        The rule.
    """

    study: Study
    lookups: TableLookupPlan
    thresholds: NDArray[np.int64]
    target: str
    released: FamilyTables

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
        is_noisy = self.released.rule.is_noisy
        return ReleaseNoise(self.released, len(self.sites)) if is_noisy else None

    @property
    def ring(self) -> Ring:
        """The ring of the counts."""
        return NOISY if self.released.rule.is_noisy else self.lookups.commitments.ring

    @cached_property
    def function(self) -> PublicFunction | None:
        """What is looked up of each count; None for nothing."""
        rule = self.released.rule
        return cut(rule.fewest, self.study.records) if rule.kind == "cut" else None

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
        """Refuse a target that has no such table, or noise beyond the ring, with a ValueError."""
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


def check_target(study: Study, target: str) -> None:
    """Refuse a target that no site holds, or of other than two states, with a ValueError."""
    if target not in study.variables:
        raise ValueError(
            f"no site of the study holds the target {target!r}: nobody has its classes"
        )
    states = study.variables[target].states
    if len(states) != 2:
        raise ValueError(
            f"the target {target!r} has {len(states)} states; a score table needs two states"
        )
