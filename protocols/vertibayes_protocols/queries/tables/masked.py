"""Tables of masked columns, which the sites sent when they committed: by products or by shuffle.

`vertibayes_protocols.queries.tables.masked_costs` chooses one of both for each table. The figures,
security and costs are those of `vertibayes_mpc.masked_tables` and `vertibayes_mpc.shuffled_tables`,
whose generators this module wraps. Leakage: how many records are complete in a shuffled table, if
other records drop out of it, to its holders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc import masked_tables
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.lookups import LookupPlan, look_up
from vertibayes_mpc.masked_tables import (
    Plan,
    count_tables,
    deal_tables,
    open_tables,
    share_tables,
)
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.shuffled_tables import (
    ShufflePlan,
    count_shuffled,
    deal_shuffled,
    open_shuffled,
)
from vertibayes_protocols.effects import Planned
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.tables.counting import Group, Holders, TablePlan
from vertibayes_protocols.queries.tables.masked_costs import (
    Columns,
    MaskedCosts,
    Shuffled,
    choose_shuffled,
)
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Rows

COMPLETE = "how many records are complete in the columns of tables that miss values"


def cells_of(
    groups: Sequence[Group], states: Mapping[str, int]
) -> dict[tuple[str, ...], NDArray[np.intp]]:
    """Return where the cells of each table lie among those that the sites share.

    Examples
    --------
    >>> cells_of([Group(("z",), ("x", "y"))], {"x": 2, "y": 1, "z": 2})["z", "x"]
    array([[0, 1],
           [3, 4]])
    """
    cells, at = dict[tuple[str, ...], NDArray[np.intp]](), 0
    for prefix, lasts in groups:
        lengths, widths = [states[name] for name in prefix], [states[name] for name in lasts]
        size = prod(lengths) * (sum(widths) if lasts else 1)
        block = np.arange(at, at + size).reshape(*lengths, -1)
        at += size
        if not lasts:
            cells[prefix] = block[..., 0]
        ends = np.cumsum(widths)[:-1]
        tables = np.split(block, ends, axis=-1) if lasts else []
        cells |= {(*prefix, last): table for last, table in zip(lasts, tables, strict=True)}
    return cells


def check_multiplied(study: Study, names: Sequence[str], why: str) -> None:
    """Refuse a table of a column whose indicators are not committed, with a ValueError."""
    for name in names:
        codes, most = study.variables[name].codes, study.most_indicators + 1
        if codes > most:
            raise ValueError(
                f"the table of {', '.join(names)} {why}: {name!r} has {codes} states, a missing "
                f"value included, and the study multiplies columns of up to {most}; put states "
                "together, leave it out, or open the study for choices"
            )


@dataclass(frozen=True)
class MaskedPlan(TablePlan):
    """How the parties count the tables of one query from masked columns."""

    costs_type: ClassVar[type[MaskedCosts]] = MaskedCosts
    by_products: bool = False

    @cached_property
    def _chosen(self) -> list[Shuffled]:
        return [choose_shuffled(self.costs, group) for group in self.groups]

    @cached_property
    def shuffled(self) -> tuple[bool, ...]:
        """Of each table, in the order of the query, whether it is counted by shuffle."""
        if self.by_products:
            return tuple(False for group in self.groups for _ in group.families)
        return tuple(chain.from_iterable(chosen.shuffled for chosen in self._chosen))

    @cached_property
    def multiplied(self) -> tuple[Group, ...]:
        """The tables that are counted by products."""
        if self.by_products:
            return self.groups
        groups = []
        for group, (shuffled, _) in zip(self.groups, self._chosen, strict=True):
            if not all(shuffled):
                lasts = [z for z, skip in zip(group.lasts, shuffled, strict=False) if not skip]
                groups.append(Group(group.prefix, tuple(lasts)))
        return tuple(groups)

    @cached_property
    def products(self) -> Plan:
        """The plan of these tables."""
        return plan_products(self.joined, self.multiplied, self.rows, self.missing, self.number)

    @cached_property
    def shuffles(self) -> ShufflePlan:
        """The plan of the tables that are counted by shuffle."""
        tables = tuple(
            tuple(map(self.joined.study.place, family.members))
            for family, by_shuffle in zip(self.families, self.shuffled, strict=True)
            if by_shuffle
        )
        commitments = self.joined.commitments
        return ShufflePlan(commitments, tables, self.selection, self.missing, self.number)

    def takes(self) -> Iterator[Planned]:
        """Go through what the query takes; list products and shuffles once that was allowed."""
        yield self.planned
        _ = self.products, self.shuffles

    def shows(self, site: Party) -> Iterator[Fact]:
        """Go through the shuffled tables that show the other holders how many records remain."""
        for table in self.shuffles.dropping:
            yield Fact(COMPLETE, site, tuple(sorted(set(table.chain) - {site})))

    def run_site(self, site: SiteRole) -> Program[None]:
        """Count the tables, and reveal them to the analyst."""
        assert site.holder is not None  # it has joined the study
        if site.party in self.products.parties:
            yield from count_tables(site.holder, self.products, site.analyst)
        if site.party in self.shuffles.parties:
            yield from count_shuffled(site.holder, self.shuffles, site.analyst)

    def run_dealer(self, dealer: DealerRole) -> Program[None]:
        """Deal what the tables need."""
        yield from deal_tables(dealer.mask_keys, self.products)
        yield from deal_shuffled(dealer.mask_keys, self.shuffles)

    def run_analyst(self) -> Program[list[NDArray[np.int64]]]:
        """Add up the shares."""
        products = iter((yield from open_tables(self.products)))
        shuffles = iter((yield from open_shuffled(self.shuffles)))
        return [next(shuffles if by_shuffle else products) for by_shuffle in self.shuffled]


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


def divided(costs: MaskedCosts, groups: Iterable[Group], memory: int) -> list[list[Group]]:
    """Divide groups into parts whose products fit the memory; a group that does not is a part."""
    parts, columns = list[list[Group]](), Columns()
    for group in groups:
        own = costs.columns_of(group.prefix)
        if not parts or costs.products_memory(columns.plus(own)) > memory:
            parts.append([])
            columns = Columns()
        parts[-1].append(group)
        columns = columns.plus(own)
    return parts


def share_parts(site: Holder, parts: Iterable[Plan]) -> Program[Elements]:
    """Return a site's shares of all cells, counted part after part; zeros of others' tables."""
    shares = [np.zeros(0, site.commitments.ring.dtype)]
    for number, part in enumerate(parts):
        of_part = np.zeros(part.cells, site.commitments.ring.dtype)
        if site.party in part.parties:
            of_part = yield from share_tables(site, part, number)
        shares.append(of_part)
    return np.concatenate(shares)


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
