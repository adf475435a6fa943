"""Score tables: how many records of each class have log odds between public thresholds.

    sites, dealer    shares of the log odds of each record      vertibayes_mpc.table_lookups
    sites, dealer    shares of how many thresholds they reach   vertibayes_mpc.argmax: `share_ranks`
    sites, dealer    shares of the counts by bin and class      vertibayes_mpc.table_lookups
    sites, dealer    cut, rounded: shares of these counts       vertibayes_mpc.lookups
    each site        laplace, gaussian: + its own noise         vertibayes_mpc.noise
    sites -> analyst its shares + zero shares

The table says how well a model predicts records that nobody has together: it gives the ROC curve
and the area under it, without the log odds of a single record.

Security: honest-but-curious, that of the protocols above. No party has more than random shares of a
record's log odds, bin or class, except what it computes from its own columns. Rules act on shares
before anything is revealed. The class of a record does not leave its site.
Leakage: to the analyst the table, by the rule; to all parties the target, the variables and sizes
of the tables, the thresholds, which records; to the sites the numbers of the tables. The analyst
chooses tables and thresholds, so that a bin can stand for any values of the named variables: an
exact table is as revealing as an exact table of these variables, with fewer cells.
Cost: that of `vertibayes_mpc.table_lookups`; for each record and threshold about 36 bytes dealt,
and 13 bytes from each site to each other; for each record as many elements dealt as the table has
cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax import RankPlan, deal_argmax, share_ranks
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.lookups import Batch, LookupPlan, PublicFunction, deal_lookups, look_up
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.sharing import open_sum, send_share, zero_share
from vertibayes_mpc.table_lookups import (
    CountPlan,
    TableLookupPlan,
    Tables,
    deal_counts,
    deal_rows,
    share_counts,
    share_rows,
)
from vertibayes_protocols.budget import Released
from vertibayes_protocols.effects import Effects, Later, Number, Planned
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.odds import OddsShape
from vertibayes_protocols.queries.predictions.predict import OddsQuery
from vertibayes_protocols.queries.releases.plan import ReleaseNoise, by_rule, function_of
from vertibayes_protocols.queries.tables.masked_costs import LOOKUP_PS_PER_BYTE
from vertibayes_protocols.query import At, Give
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family
from vertibayes_protocols.wire import Most

RANKED_TOGETHER = 1 << 11  # records whose log odds are compared with all thresholds at a time
NOISY = Ring(32)
MOST_THRESHOLDS = 255


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
        exceeds = self.rule.kind not in ("exact", "cut")  # all counts
        return NOISY if exceeds else self.lookups.commitments.ring

    @cached_property
    def function(self) -> PublicFunction | None:
        """What is looked up of each count; None for nothing."""
        return function_of(self.rule, self.study.records)

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


@dataclass(frozen=True, slots=True)
class ScoreTable(OddsQuery[NDArray[np.int64], ScorePlan]):
    """Ask for a table of records by bin of their log odds, and class: shape (bins, codes).

    The target has two states, and the study has it.
    """

    kind: ClassVar[str] = "score table"
    is_dealt: ClassVar[bool] = True
    # Ascending, in the units of the tables' numbers; a bin begins at its threshold: (bins - 1,).
    thresholds: Annotated[NDArray[np.int64], Most(MOST_THRESHOLDS)]
    rule: Rule

    def __post_init__(self) -> None:
        thresholds = self.thresholds
        if thresholds.dtype != np.int64 or thresholds.ndim != 1:
            raise ValueError("thresholds must be whole numbers")
        if not 1 <= len(thresholds) <= MOST_THRESHOLDS or (np.diff(thresholds) <= 0).any():
            raise ValueError(f"thresholds must be from 1 to {MOST_THRESHOLDS}, ascending")
        if max(abs(int(thresholds[0])), abs(int(thresholds[-1]))) >= 1 << 62:
            raise ValueError("thresholds must stay below 2**62")

    @classmethod
    def asked_of(cls, study: Study, odds: OddsShape) -> tuple[Party, ...]:
        """Return whom the query asks: all holders, and the dealer if they are several."""
        sites = study.holders_of({odds.target, *odds.variables})
        return (*sites, study.dealer) if len(sites) > 1 else sites

    def plan(self, at: At) -> ScorePlan:
        """Return the plan; a ValueError if the study has no such target, or the noise no room."""
        study, odds = self.joined(at).study, self.odds
        check_target(study, odds.target)
        if study.variables[odds.target].states != odds.states:
            raise ValueError(
                f"the target {odds.target!r} must be a variable of the study, with these two states"
            )
        plan = ScorePlan(study, self.lookups(at), self.thresholds, odds.target, self.rule)
        plan.check()
        return plan

    def effects(self, plan: ScorePlan, at: At) -> Effects:
        """Return the effects: a table leaves by the rule, of values that the analyst chooses."""
        target, named = self.odds.target, ", ".join(self.odds.variables)
        shown = (
            f"counts of {plan.records} records by {target} and {len(self.thresholds) + 1} bins of "
            f"its log odds from {named}: {self.rule.words}"
        )
        return Effects(
            asks=self.asked_of(plan.study, self.odds),
            columns=(),
            tables=((2, plan.cells),),
            counts=self.rows,
            takes=Later(lambda: [plan.planned]),
            number=Number(self.number),
            leaves=by_rule(self.rule, Released(1, plan.cells), plan.noise),
            says=(
                Fact(shown, ", ".join(plan.sites), (at.analyst,)),
                Fact(f"tables to predict {target} from {named}", at.analyst, plan.lookups.parties),
            ),
            opens=(),
        )

    def run_site(self, site: SiteRole, plan: ScorePlan, give: Give) -> Program[None]:
        """Share bins and classes, count them, apply the rule, and send the share."""
        holder, lookups = site.holder, plan.lookups
        assert holder is not None  # it has joined the study
        holder.begin("score table", self.number)
        bins = np.zeros(plan.records, np.uint64)
        if site.party in lookups.parties:
            tables = yield from self.received_numbers(site, lookups)
            bins = yield from _bins(holder, plan, tables)
        indices = (bins << np.uint64(plan.class_bits)) + _classes(holder, plan)
        own = plan.counts.indices.reduce(indices.astype(plan.counts.indices.dtype))
        counts = yield from share_counts(holder, plan.counts, own)
        values = yield from _by_the_rule(holder, plan, counts, site.randomness)
        yield from send_share(values, plan.ring, site.analyst)

    def run_dealer(self, dealer: DealerRole, plan: ScorePlan) -> Program[None]:
        """Deal what lookups, comparisons and counts need."""
        keys = dealer.mask_keys
        yield from deal_rows(keys, plan.lookups)
        for _, ranks in plan.ranks:
            yield from deal_argmax(keys, ranks)
        yield from deal_counts(keys, plan.counts)
        yield from deal_lookups(keys, plan.cuts)

    def run_analyst(self, analyst: AnalystRole, plan: ScorePlan) -> Program[NDArray[np.int64]]:
        """Send the numbers, and add up the shares of the table."""
        yield from self.send_numbers(plan.lookups.parties)
        table = plan.read((yield from open_sum(plan.sites, plan.ring, plan.cells)))
        if self.rule.kind == "exact" and table.sum() != plan.records:
            check = f"the score table counts {table.sum()} of {plan.records} records"
            raise ImpossibleTablesError(plan.sites, plan.study.dealer, check)
        return table


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


def _bins(site: Holder, plan: ScorePlan, tables: Tables) -> Program[Elements]:
    """Return this site's shares of how many thresholds the log odds of each record reach."""
    (scores,) = yield from share_rows(site, plan.lookups, tables)
    bins = np.zeros(plan.records, np.uint64)
    for part, ranks in plan.ranks:
        values = np.zeros((part.stop - part.start, 1 + len(plan.thresholds)), np.uint64)
        values[:, 0] = scores[part]
        if site.party == plan.lookups.parties[0]:
            values[:, 1:] = plan.thresholds.view(np.uint64)
        bins[part] = yield from share_ranks(site, ranks, values.ravel())
    return bins


def _classes(site: Holder, plan: ScorePlan) -> Elements:
    """Return this site's part of the classes; 0 if it holds none."""
    place, commitments = plan.study.place(plan.target), plan.lookups.commitments
    if site.party not in commitments.operands[place].holders:
        return np.zeros(plan.records, np.uint64)
    form = commitments.form("codes", place)
    codes = plan.lookups.selection.whole(lambda block: site.clear(form, place, block))
    return codes.astype(np.uint64)


def _by_the_rule(
    site: Holder, plan: ScorePlan, counts: Elements, randomness: Randomness
) -> Program[Elements]:
    """Return this site's share of what is released, hidden under a zero share."""
    values = counts
    if plan.cuts.batches:
        values = (yield from look_up(site, plan.cuts, {0: counts}))[0]
    elif plan.function is not None:
        values = plan.function(counts.astype(np.int64)).astype(plan.ring.dtype)
    if plan.noise is not None:
        noise = plan.noise.of_a_site(randomness)(plan.cells)
        values = values + noise.astype(values.dtype)
    peers = {peer: site.peer_keys[peer] for peer in plan.sites if peer != site.party}
    name = label("score table", plan.lookups.name)
    return plan.ring.reduce(values + zero_share(site.party, peers, plan.ring, name, plan.cells))
