"""Count the tables of one query, some by products and the others by shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc import masked_tables
from vertibayes_mpc.commitments import Commitments, Holder, Selection
from vertibayes_mpc.masked_tables import Plan, count_tables, deal_tables, open_tables
from vertibayes_mpc.randomness import Stream
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.shuffled_tables import ShufflePlan, count_shuffled, deal_shuffled, open_shuffled
from vertibayes_protocols.queries.costs import Costs, Planned
from vertibayes_protocols.queries.ways import Group, Load, choose_ways
from vertibayes_protocols.study import Study


def agree(planned: Planned) -> None:
    """Agree to any plan."""


@dataclass(frozen=True)
class TablePlan:
    """How the parties count the tables of one query.

    Parameters
    ----------
    multiplied : tuple of Group
        The tables that are counted by products.
    products : Plan
        The plan of these tables.
    shuffles : ShufflePlan
        The plan of the tables that are counted by shuffle.
    shuffled : tuple of bool
        Of each table, in the order of the query, whether it is counted by shuffle.
    planned : Planned
        What the query takes.
    """

    multiplied: tuple[Group, ...]
    products: Plan
    shuffles: ShufflePlan
    shuffled: tuple[bool, ...]
    planned: Planned

    @property
    def selection(self) -> Selection:
        """The records that are counted."""
        return self.shuffles.selection

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that hold a column of a table, sorted."""
        return tuple(sorted({*self.products.parties, *self.shuffles.parties}))


def plan_tables(
    study: Study,
    commitments: Commitments,
    groups: Sequence[Group],
    selection: Selection,
    missing: bool,
    number: int,
    check: Callable[[Planned], None] = agree,
) -> TablePlan:
    """Plan a query's tables, each in the way that is cheaper.

    Parameters
    ----------
    study, commitments : Study, Commitments
        The study and its commitments.
    groups, selection : sequence of Group, Selection
        The tables that are asked for, and the records that they count.
    missing : bool
        Whether a missing value is a state.
    number : int
        The number of the query in the study.
    check : callable, optional
        Takes what the query takes, before its products are listed: a party may refuse it.

    Raises
    ------
    ValueError
        If a variable is unknown or appears twice in a table, or a table is too large.
    """
    costs = Costs(study, selection.records, missing)
    multiplied: list[Group] = []
    shuffles: list[tuple[int, ...]] = []
    shuffled: list[bool] = []
    total = Load()
    for group in groups:
        ways, taken = choose_ways(costs, group)
        total = total.plus(taken)
        shuffled += ways
        for family, way in zip(group.families, ways, strict=True):
            if way:
                shuffles.append(tuple(map(study.place, family.members)))
        if not all(ways):
            lasts = [last for last, way in zip(group.lasts, ways, strict=False) if not way]
            multiplied.append(Group(group.prefix, tuple(lasts)))
    check(total.planned(costs))
    return TablePlan(
        tuple(multiplied),
        plan_products(study, commitments, multiplied, selection, missing, number),
        ShufflePlan(commitments, tuple(shuffles), selection, missing, number),
        tuple(shuffled),
        total.planned(costs),
    )


def plan_products(
    study: Study,
    commitments: Commitments,
    groups: Sequence[Group],
    selection: Selection,
    missing: bool,
    number: int,
) -> Plan:
    """Return the plan of tables that are all counted by products; parameters as `plan_tables`."""
    places = (
        masked_tables.Group(tuple(map(study.place, prefix)), tuple(map(study.place, lasts)))
        for prefix, lasts in groups
    )
    return Plan(commitments, tuple(places), selection, missing, number)


def count(site: Holder, plan: TablePlan, analyst: Party) -> Program[None]:
    """Count the tables of a plan and reveal them: a site's side.

    Parameters
    ----------
    site, plan, analyst : Holder, TablePlan, Party
        The site's columns and keys, the plan, and the party that learns the tables.
    """
    if site.party in plan.products.parties:
        yield from count_tables(site, plan.products, analyst)
    if site.party in plan.shuffles.parties:
        yield from count_shuffled(site, plan.shuffles, analyst)


def deal(keys: Mapping[Party, Stream], plan: TablePlan) -> Program[None]:
    """Deal the randomness that the tables of a plan need: the dealer's side."""
    yield from deal_tables(keys, plan.products)
    yield from deal_shuffled(keys, plan.shuffles)


def open_(plan: TablePlan) -> Program[list[NDArray[np.int64]]]:
    """Return the tables of a plan, in the order of the query: the analyst's side."""
    products: Iterator[NDArray[np.int64]] = iter((yield from open_tables(plan.products)))
    shuffles: Iterator[NDArray[np.int64]] = iter((yield from open_shuffled(plan.shuffles)))
    return [next(shuffles if shuffled else products) for shuffled in plan.shuffled]
