"""How the tables of one query are counted: some by products, the others by shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from typing import TypeAlias

from vertibayes_mpc import masked_tables
from vertibayes_mpc.commitments import Holder, Selection
from vertibayes_mpc.lookups import LookupPlan, look_up
from vertibayes_mpc.masked_tables import Plan
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.shuffled_tables import ShufflePlan
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.tables.costs import Costs
from vertibayes_protocols.queries.tables.ways import Group, Load, Ways, choose_ways
from vertibayes_protocols.query import At
from vertibayes_protocols.study import Joined
from vertibayes_protocols.variables import Rows

ASKED = "which tables are asked, over which records"
Holders: TypeAlias = tuple[Party, ...]  # of a table, sorted
COMPLETE = "how many records are complete in the columns of tables that miss values"


@dataclass(frozen=True)
class TablePlan:
    """How the parties count the tables of one query; long work waits until it is used."""

    joined: Joined  # the study, and its commitments
    groups: tuple[Group, ...]
    rows: Rows  # the records that are counted
    missing: bool  # whether a missing value is a state
    number: int  # the number of the query in the study
    by_products: bool = False

    @cached_property
    def selection(self) -> Selection:
        """The records that are counted."""
        return self.joined.selection(self.rows)

    @cached_property
    def costs(self) -> Costs:
        """What its tables cost."""
        study = self.joined.study
        return Costs(study, self.rows.count(study.records), self.missing)

    @cached_property
    def _ways(self) -> list[Ways]:
        return [choose_ways(self.costs, group) for group in self.groups]

    @property
    def planned(self) -> Planned:
        """What the query takes, before its products are listed."""
        return reduce(Load.plus, (ways.load for ways in self._ways), Load()).planned(self.costs)

    @cached_property
    def shuffled(self) -> tuple[bool, ...]:
        """Of each table, in the order of the query, whether it is counted by shuffle."""
        if self.by_products:
            return tuple(False for group in self.groups for _ in group.families)
        return tuple(chain.from_iterable(ways.shuffled for ways in self._ways))

    @cached_property
    def multiplied(self) -> tuple[Group, ...]:
        """The tables that are counted by products."""
        if self.by_products:
            return self.groups
        groups = []
        for group, (ways, _) in zip(self.groups, self._ways, strict=True):
            if not all(ways):
                lasts = [last for last, way in zip(group.lasts, ways, strict=False) if not way]
                groups.append(Group(group.prefix, tuple(lasts)))
        return tuple(groups)

    @cached_property
    def products(self) -> Plan:
        """The plan of these tables."""
        return plan_products(self.joined, self.multiplied, self.rows, self.missing, self.number)

    @cached_property
    def shuffles(self) -> ShufflePlan:
        """The plan of the tables that are counted by shuffle."""
        families = chain.from_iterable(group.families for group in self.groups)
        tables = tuple(
            tuple(map(self.joined.study.place, family.members))
            for family, way in zip(families, self.shuffled, strict=True)
            if way
        )
        commitments = self.joined.commitments
        return ShufflePlan(commitments, tables, self.selection, self.missing, self.number)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that hold a column of a table, sorted."""
        names = (name for group in self.groups for name in (*group.prefix, *group.lasts))
        return self.joined.study.holders_of(names)

    def facts(self, at: At, asked: Iterable[Party]) -> Iterator[Fact]:
        """Go through what parties learn: which tables are asked, or complete records of a site."""
        if at.party == at.analyst:
            yield from (Fact(ASKED, at.party, (party,)) for party in asked)
            return
        for table in self.shuffles.dropping:
            yield Fact(COMPLETE, at.party, tuple(sorted(set(table.chain) - {at.party})))


def plan_products(
    joined: Joined, groups: Iterable[Group], rows: Rows, missing: bool, number: int
) -> Plan:
    """Return the plan of tables that are all counted by products."""
    place = joined.study.place
    places = (
        masked_tables.Group(tuple(map(place, prefix)), tuple(map(place, lasts)))
        for prefix, lasts in groups
    )
    return Plan(joined.commitments, tuple(places), joined.selection(rows), missing, number)


def look_up_held(
    site: Holder,
    plan: LookupPlan,
    counts: Mapping[Holders, Elements],
    known: Callable[[Elements], Elements],
) -> Program[dict[Holders, Elements]]:
    """Return a site's shares of a function of counts, by their holders; one alone computes it."""
    batches = {at: b.holders for at, b in enumerate(plan.batches) if b.holders in counts}
    shared = {at: counts[holders] for at, holders in batches.items()}
    looked_up = (yield from look_up(site, plan, shared)) if shared else {}
    values = {batches[at]: of_counts for at, of_counts in looked_up.items()}
    alone = (site.party,)
    if alone in counts:
        values[alone] = known(counts[alone])
    return values
