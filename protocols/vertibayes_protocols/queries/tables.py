"""Tables: reveal the contingency tables of groups of families, over all records or some.

The figure, security and cost are those of `vertibayes_mpc.masked_tables` and
`vertibayes_mpc.shuffled_tables`, whose generators this module wraps: `ways` chooses between them
for each table. A site first checks the query against its policy and its memory of record sets, and
notes it in its ledger.

Leakage: the tables, cell by cell, to the analyst; which tables are asked for, over which records,
to the sites concerned and the dealer; how many records are complete in a shuffled table, if other
records drop out of it, to its holders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import index
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.costs import Planned
from vertibayes_protocols.queries.counting import TablePlan, agree, count, deal, open_, plan_tables
from vertibayes_protocols.queries.impossible import uniform_errors
from vertibayes_protocols.queries.study_checks import (
    check_at_site,
    check_most,
    check_parties,
    check_places,
    check_planned,
    check_variables,
    joined_study,
    numbered,
    numbers,
    planned,
    remember_records,
)
from vertibayes_protocols.queries.ways import MOST_FAMILIES, MOST_GROUPS, Group, grouped
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows, axis_lengths

COMPLETE = "how many records are complete in the columns of tables that miss values"


@dataclass(frozen=True, slots=True)
class Tables(Query[list[NDArray[np.int64]]]):
    """Ask for tables.

    Parameters
    ----------
    study : bytes
        The id of the study.
    variables : tuple of str
        The variables of the tables.
    prefixes, lasts : tuple of ndarray, dtype uint32
        For each group, the places in `variables` of the child with its first parents, and of the
        last parents; without last parents the group is the table of the child alone.
    missing : bool
        Whether a missing value is a state.
    seed, first, last : int
        The records (`Rows`); last = -1 for all records from the first on.
    number : int
        The number of the query, above all earlier ones in the study: masks are used once.
    """

    kind: ClassVar[str] = "tables"
    study: bytes
    variables: tuple[str, ...]
    prefixes: tuple[NDArray[np.uint32], ...]
    lasts: tuple[NDArray[np.uint32], ...]
    missing: bool
    seed: int
    first: int
    last: int
    number: int

    @property
    def rows(self) -> Rows:
        """The records."""
        return Rows(self.seed, self.first, None if self.last < 0 else self.last)

    @property
    def groups(self) -> list[Group]:
        """The groups of tables, with the names of their variables."""
        names = self.variables
        return [
            Group(tuple(names[i] for i in prefix), tuple(names[i] for i in lasts))
            for prefix, lasts in zip(self.prefixes, self.lasts, strict=True)
        ]


def parties_of(study: Study, names: Iterable[str]) -> tuple[Party, ...]:
    """Return the parties that count tables of variables: their holders and the dealer."""
    return (*study.holders_of(names), study.dealer)


def ask_tables(
    joined: Joined, families: Sequence[Family], missing: bool, rows: Rows
) -> tuple[Tables, list[int]]:
    """Return the next query of a study, and the place of each family's table in the query's result.

    Parameters
    ----------
    joined : Joined
        The study, and the number of its queries so far.
    families : sequence of Family
        The families; those that differ only in the last parent become one group.
    missing : bool
        Whether a missing value is a state.
    rows : Rows
        The records that are counted.
    """
    study, groups = joined.study, grouped(families)
    joined.asked += 1
    places = numbered(family.members for family in families)
    query = Tables(
        parties=parties_of(study, places),
        study=study.id,
        variables=tuple(places),
        prefixes=tuple(numbers(places[name] for name in prefix) for prefix, _ in groups),
        lasts=tuple(numbers(places[name] for name in lasts) for _, lasts in groups),
        missing=missing,
        seed=index(rows.seed),
        first=index(rows.first),
        last=-1 if rows.last is None else index(rows.last),
        number=joined.asked,
    )
    asked = [family for group in groups for family in group.families]
    where = {family: place for place, family in enumerate(asked)}
    return query, [where[family] for family in families]


def _plan(joined: Joined, query: Tables, check: Callable[[Planned], None] = agree) -> TablePlan:
    return planned(joined, query, TablePlan, lambda: _make_plan(joined, query, check))


def _make_plan(joined: Joined, query: Tables, check: Callable[[Planned], None]) -> TablePlan:
    selection = joined.selection(query.rows)
    return plan_tables(
        joined.study,
        joined.commitments,
        query.groups,
        selection,
        query.missing,
        query.number,
        check,
    )


def _check_numbers(query: Tables) -> None:
    """Refuse too many groups or tables, before anything is made of them."""
    if len(query.prefixes) != len(query.lasts):
        raise ValueError("the numbers of prefixes and of last parents must be equal")
    check_most("groups of tables", len(query.prefixes), MOST_GROUPS)
    check_most("tables", sum(max(lasts.size, 1) for lasts in query.lasts), MOST_FAMILIES)


def _sizes(study: Study, query: Tables) -> Iterator[tuple[int, int]]:
    """Return (variables, cells, those of missing values included) of each group's tables."""
    check_variables(study, query.variables)
    seen: set[tuple[tuple[str, ...], bool]] = set()
    for places in (*query.prefixes, *query.lasts):
        check_places(places, query.variables)
        if len(np.unique(places)) < len(places):  # a product has no more factors than variables
            raise ValueError("a variable appears twice in a group")
    for prefix, lasts in query.groups:
        if not prefix:
            raise ValueError("a group must have a child")
        key = prefix, bool(lasts)
        if key in seen:
            raise ValueError(f"two groups have the same prefix {', '.join(prefix)}; ask for one")
        seen.add(key)
        cells = prod(study.variables[name].codes for name in prefix)
        columns = sum(study.variables[name].codes for name in lasts)
        yield len(prefix) + bool(lasts), cells * max(columns, 1)


def _checked(party: Party, policy: Policy, joined: Joined | None, query: Tables) -> TablePlan:
    """Return the plan of a query, or refuse the query.

    Sizes are checked first: the time to plan doubles with each variable of a table.
    """
    joined = joined_study(party, joined, query)
    policy.check_records(party, query.rows, joined.study.records)
    with refusing(party):
        _check_numbers(query)
        policy.check_tables(party, _sizes(joined.study, query))
        plan = _plan(joined, query, partial(check_planned, party, policy))
    check_parties(party, query, (*plan.parties, joined.study.dealer))
    return plan


def _consider_at_site(site: SiteRole, query: Tables) -> None:
    plan = _checked(site.party, site.policy, site.joined, query)
    if site.party not in plan.parties:
        raise QueryRefusedError(site.party, "it holds no variable of the tables")
    check_at_site(site, query)


def _revealed(study: Study, query: Tables, analyst: Party) -> Iterator[RevealedTable]:
    rows, lengths = query.rows, axis_lengths(study.variables, query.missing)
    for prefix, lasts in query.groups:
        cells = prod(lengths[name] for name in prefix)
        for last in lasts:
            yield RevealedTable((*prefix, last), cells * lengths[last], analyst, rows)
        if not lasts:
            yield RevealedTable(prefix, cells, analyst, rows)


def _site(site: SiteRole, query: Tables) -> Program[None]:
    assert site.joined is not None and site.holder is not None  # considered
    plan = _plan(site.joined, query)
    remember_records(site, query.rows)
    revealed = list(_revealed(site.joined.study, query, site.analyst))
    site.memory.release(len(revealed), sum(table.cells for table in revealed), freely=True)
    site.ledger.open(revealed)
    for table in plan.shuffles.dropping:
        others = tuple(sorted(set(table.chain) - {site.party}))
        site.ledger.note(COMPLETE, site.party, others)
    yield from count(site.holder, plan, site.analyst)


def _consider_at_dealer(dealer: DealerRole, query: Tables) -> None:
    _checked(dealer.party, dealer.policy, dealer.joined, query)


def _dealer(dealer: DealerRole, query: Tables) -> Program[None]:
    assert dealer.joined is not None  # considered
    yield from deal(dealer.mask_keys, _plan(dealer.joined, query))


def _analyst(analyst: AnalystRole, query: Tables) -> Program[list[NDArray[np.int64]]]:
    if analyst.joined is None:
        raise ValueError("the study must be committed before tables are asked for")
    plan = _plan(analyst.joined, query)
    with uniform_errors(analyst, analyst.joined.study):
        tables = yield from open_(plan)
        _check_possible(analyst.joined.study, plan, query, tables)
    analyst.ledger.open(_revealed(analyst.joined.study, query, analyst.party))
    note_asked(analyst, query.parties)
    return tables


def _check_possible(
    study: Study, plan: TablePlan, query: Tables, tables: Sequence[NDArray[np.int64]]
) -> None:
    """Refuse a table that counts too many records, or too few where no value is missing."""
    members = [[*p, *last] for p, lasts in query.groups for last in [[z] for z in lasts] or [[]]]
    for names, table in zip(members, tables, strict=True):
        missing = not query.missing and any(study.variables[name].missing for name in names)
        counted, records = int(table.sum()), plan.selection.records
        if counted > records or (counted < records and not missing):
            check = f"the table of {', '.join(names)} counts {counted} of {records} records"
            raise ImpossibleTablesError(plan.parties, study.dealer, check)


def note_asked(analyst: AnalystRole, parties: Sequence[Party]) -> None:
    """Note in an analyst's ledger which parties know the tables that were asked for."""
    for party in parties:
        analyst.ledger.note("which tables are asked, over which records", analyst.party, (party,))


TABLES = (
    Conversation(Tables, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
