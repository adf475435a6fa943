"""Tables: reveal the contingency tables of groups of families, over all records or some.

How they are counted follows from the study's way of counting
(`vertibayes_protocols.queries.tables.ways`), whose plan this query runs. A site first checks the
query against its policy and its memory of record sets, and notes it in its ledger.

Leakage: the tables, cell by cell, to the analyst; which tables are asked for, over which records,
to the sites concerned and the dealer; and what the way of counting shows (`TablePlan.shows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.budget import Released
from vertibayes_protocols.effects import Effects, Freely, Later, Number
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.queries.tables.counting import (
    MOST_FAMILIES,
    MOST_GROUPS,
    Group,
    TablePlan,
    grouped,
)
from vertibayes_protocols.queries.tables.ways import WAYS
from vertibayes_protocols.query import (
    At,
    Give,
    StudyQuery,
    check_each_once,
    check_most,
    check_places,
    check_variables,
    numbered,
    numbers,
)
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Family, Rows, axis_lengths


@dataclass(frozen=True, slots=True)
class Tables(StudyQuery[list[NDArray[np.int64]], TablePlan]):
    """Ask for the tables of some groups of families."""

    kind: ClassVar[str] = "tables"
    is_dealt: ClassVar[bool] = True
    by_any_way: ClassVar[bool] = True
    variables: tuple[str, ...]
    # Of each group, the places in `variables` of the child with its first parents, and of the last
    # parents; without last parents the group is the table of the child alone.
    prefixes: tuple[NDArray[np.uint32], ...]
    lasts: tuple[NDArray[np.uint32], ...]
    missing: bool  # whether a missing value is a state
    rows: Rows

    def __post_init__(self) -> None:
        if len(self.prefixes) != len(self.lasts):
            raise ValueError("the numbers of prefixes and of last parents must be equal")
        check_each_once(self.variables)
        check_most("groups of tables", len(self.prefixes), MOST_GROUPS)
        check_most("tables", sum(max(lasts.size, 1) for lasts in self.lasts), MOST_FAMILIES)
        for places in (*self.prefixes, *self.lasts):
            check_places(places, self.variables)
            if len(set(places.tolist())) < len(places):  # a product has each factor once
                raise ValueError("a variable appears twice in a group")
        for prefix, lasts in zip(self.prefixes, self.lasts, strict=True):
            if not prefix.size:
                raise ValueError("a group must have a child")
            if len(prefix) > 1 and not lasts.size:
                raise ValueError("a group of several variables must have a last one")
            if not set(prefix.tolist()).isdisjoint(lasts.tolist()):
                raise ValueError("a variable appears twice in a group")

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of tables, with the names of their variables."""
        names = self.variables
        return tuple(
            Group(tuple(names[i] for i in prefix), tuple(names[i] for i in lasts))
            for prefix, lasts in zip(self.prefixes, self.lasts, strict=True)
        )

    def plan(self, at: At) -> TablePlan:
        """Return the plan; a ValueError if the groups do not fit the study."""
        joined, groups = self.joined(at), self.groups
        check_variables(joined.study, self.variables)
        seen: set[tuple[tuple[str, ...], bool]] = set()
        for prefix, lasts in groups:
            if (key := (prefix, bool(lasts))) in seen:
                named = ", ".join(prefix)
                raise ValueError(f"two groups have the same prefix {named}; ask for one")
            seen.add(key)
        way = WAYS[joined.study.count_by]
        return way(joined, groups, self.rows, self.missing, self.number)

    def effects(self, plan: TablePlan, at: At) -> Effects:
        """Return the effects: exact tables, each cell, to the analyst."""
        study = plan.joined.study
        tables = sum(max(len(group.lasts), 1) for group in plan.groups)
        cells = sum(cells for _, cells in _sizes(study, plan.groups, self.missing))
        return Effects(
            asks=study.with_dealer(plan.parties),
            columns=(),
            tables=tuple(_sizes(study, plan.groups, missing=True)),
            counts=self.rows,
            takes=Later(plan.takes),
            number=Number(self.number),
            leaves=Freely(Released(tables, cells)),
            says=Later(partial(plan.facts, at, self.parties)),
            opens=Later(partial(_revealed, study, self, at.analyst)),
        )

    def run_site(self, site: SiteRole, plan: TablePlan, give: Give) -> Program[None]:
        """Count the tables, and reveal them to the analyst."""
        yield from plan.run_site(site)

    def run_dealer(self, dealer: DealerRole, plan: TablePlan) -> Program[None]:
        """Deal what the tables need."""
        yield from plan.run_dealer(dealer)

    def run_analyst(
        self, analyst: AnalystRole, plan: TablePlan
    ) -> Program[list[NDArray[np.int64]]]:
        """Receive the tables, and refuse those that no records can have."""
        with uniform_errors(analyst, plan.joined.study):
            tables = yield from plan.run_analyst()
            _check_possible(plan, tables)
        return tables


def parties_of(study: Study, names: Iterable[str]) -> tuple[Party, ...]:
    """Return the parties that count tables of variables: their holders and the dealer, if any."""
    return study.with_dealer(study.holders_of(names))


def ask_tables(
    joined: Joined, families: Sequence[Family], missing: bool, rows: Rows
) -> tuple[Tables, list[int]]:
    """Return the next query of a study, and the place of each family's table in its result."""
    study, groups = joined.study, grouped(families)
    joined.asked += 1
    places = numbered(family.members for family in families)
    query = Tables(
        parties=parties_of(study, places),
        study=study.id,
        number=joined.asked,
        variables=tuple(places),
        prefixes=tuple(numbers(places[name] for name in prefix) for prefix, _ in groups),
        lasts=tuple(numbers(places[name] for name in lasts) for _, lasts in groups),
        missing=missing,
        rows=rows.whole,
    )
    asked = [family for group in groups for family in group.families]
    where = {family: place for place, family in enumerate(asked)}
    return query, [where[family] for family in families]


def _sizes(study: Study, groups: Iterable[Group], missing: bool) -> Iterator[tuple[int, int]]:
    """Go through (variables, cells) of each group's tables: wide ones are refused before a list."""
    lengths = axis_lengths(study.variables, missing)
    for prefix, lasts in groups:
        columns = sum(lengths[name] for name in lasts) if lasts else 1
        yield len(prefix) + bool(lasts), prod(lengths[name] for name in prefix) * columns


def _revealed(study: Study, query: Tables, analyst: Party) -> Iterator[RevealedTable]:
    rows, lengths = query.rows, axis_lengths(study.variables, query.missing)
    for prefix, lasts in query.groups:
        cells = prod(lengths[name] for name in prefix)
        for last in lasts:
            yield RevealedTable((*prefix, last), cells * lengths[last], analyst, rows)
        if not lasts:
            yield RevealedTable(prefix, cells, analyst, rows)


@contextmanager
def uniform_errors(analyst: AnalystRole, study: Study) -> Iterator[None]:
    """Raise one error for all tables that no records have; the analyst's ledger says which check.

    A site that changes what it sends learns a bit per run from whether the run ends. If the error
    said which check failed, or named the sites of the table, it would learn a bit per table.
    """
    try:
        yield
    except ImpossibleTablesError as error:
        analyst.ledger.note(f"a check failed: {error.check}", analyst.party, (analyst.party,))
        raise ImpossibleTablesError(study.sites, study.dealer) from None


def _check_possible(plan: TablePlan, tables: Sequence[NDArray[np.int64]]) -> None:
    """Refuse a table that counts too many records, or too few where no value is missing."""
    study, records = plan.joined.study, plan.selection.records
    for family, table in zip(plan.families, tables, strict=True):
        drops = not plan.missing and any(study.variables[name].missing for name in family.members)
        counted = int(table.sum())
        if counted > records or (counted < records and not drops):
            names = ", ".join(family.members)
            check = f"the table of {names} counts {counted} of {records} records"
            raise ImpossibleTablesError(plan.parties, study.dealer, check)
