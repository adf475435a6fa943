"""What queries about the log odds of records have in common: their fields, checks and tables.

`vertibayes_protocols.queries.predict` reveals the log odds,
`vertibayes_protocols.queries.score_table` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import index
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange
from vertibayes_mpc.table_lookups import TableLookupPlan
from vertibayes_protocols import wire
from vertibayes_protocols.errors import refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.odds import Odds, check_states, digest_of
from vertibayes_protocols.queries.study_checks import (
    check_most,
    check_parties,
    check_places,
    check_variables,
    joined_study,
    numbered,
    numbers,
)
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.session import Query
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Rows

MOST_TABLES = 10_000
MOST_NUMBERS = 4_000_000  # of all tables: 32 MB

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class OddsNumbers(Message):
    """The numbers of all tables, one after the other: int64 of shape (numbers,)."""

    kind: ClassVar[str] = "odds numbers"
    values: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OddsQuery(Query[R_co]):
    """Ask for something of the log odds of records.

    Parameters
    ----------
    study : bytes
        The id of the study.
    target : str
        What is predicted; it need not be a variable of the study.
    states : tuple of str
        Its states.
    variables : tuple of str
        The variables of the tables.
    members : ndarray of dtype uint32
        The places in `variables` of each table's axes.
    lengths : ndarray of shape (tables,), dtype uint32
        The number of axes of each table.
    digest : bytes
        Of the numbers of all tables (`Odds.digest`).
    fraction_bits : int
        The numbers are multiples of ``2**-fraction_bits``.
    seed, first, last : int
        The records (`Rows`); last = -1 for all records from the first on.
    number : int
        The number of the query, above all earlier ones in the study: masks are used once.
    """

    study: bytes
    target: str
    states: tuple[str, ...]
    variables: tuple[str, ...]
    members: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    digest: bytes
    fraction_bits: int
    seed: int
    first: int
    last: int
    number: int

    @classmethod
    def of(cls, joined: Joined, odds: Odds, rows: Rows, **more: Any) -> Self:
        """Return the next query of a study; the numbers go from `AnalystRole.odds` to the sites.

        Parameters
        ----------
        joined : Joined
            The study, and the number of its queries so far.
        odds : Odds
            What is asked.
        rows : Rows
            The records.
        **more
            The further fields of the query.

        Raises
        ------
        ValueError
            If the tables do not fit the variables of the study.
        """
        study, members = joined.study, [table.variables for table in odds.tables]
        check_variables(study, chain.from_iterable(members))
        for table in odds.tables:
            shape = tuple(study.variables[name].codes for name in table.variables)
            if table.numbers.shape[:-1] != shape:
                raise ValueError(
                    f"the table of {', '.join(table.variables)} must have the codes {shape}, got "
                    f"{table.numbers.shape[:-1]}"
                )
        joined.asked += 1
        return replace(
            cls.declared(odds, rows, **more),
            parties=cls.parties_of(study, members, odds.target),
            study=study.id,
            number=joined.asked,
        )

    @classmethod
    def declared(cls, odds: Odds, rows: Rows, **more: Any) -> Self:
        """Return the query without a study: the fields that a contract declares.

        Parameters
        ----------
        odds, rows, **more
            As of `of`.
        """
        members = [table.variables for table in odds.tables]
        places = numbered(members)
        return cls(
            parties=(),
            study=b"",
            target=odds.target,
            states=odds.states,
            variables=tuple(places),
            members=numbers(places[name] for name in chain.from_iterable(members)),
            lengths=numbers(map(len, members)),
            digest=odds.digest,
            fraction_bits=odds.fraction_bits,
            seed=index(rows.seed),
            first=index(rows.first),
            last=-1 if rows.last is None else index(rows.last),
            number=0,
            **more,
        )

    @classmethod
    def parties_of(
        cls, study: Study, tables: Sequence[Sequence[str]], target: str
    ) -> tuple[Party, ...]:
        """Return whom the query asks: the holders of the tables, and the dealer if it is needed.

        Parameters
        ----------
        study, tables, target
            The study, the variables of each table, and what is predicted.
        """
        del target
        holders = study.holders_of(chain.from_iterable(tables))
        is_dealt = any(len(study.holders_of(names)) > 1 for names in tables)
        return (*holders, study.dealer) if is_dealt else holders

    @property
    def rows(self) -> Rows:
        """The records."""
        return Rows(self.seed, self.first, None if self.last < 0 else self.last)

    @property
    def tables(self) -> list[tuple[str, ...]]:
        """The variables of each table.

        Raises
        ------
        ValueError
            If the arrays do not describe tables, or the target is a variable of one.
        """
        check_states(self.target, self.states, self.fraction_bits)
        check_places(self.members, self.variables)
        check_most("tables", self.lengths.size, MOST_TABLES)
        lengths = self.lengths
        if lengths.ndim != 1 or lengths.dtype != np.uint32 or not lengths.size or not lengths.all():
            raise ValueError("a prediction must have tables, each with an axis")
        if int(lengths.sum(dtype=np.uint64)) != len(self.members):
            raise ValueError("the lengths of tables must fit their members")
        if self.target in self.variables:
            raise ValueError(f"the target {self.target!r} cannot be a variable of the tables")
        names = [self.variables[place] for place in self.members.tolist()]
        ends = np.cumsum(lengths).tolist()
        return [tuple(names[e - n : e]) for e, n in zip(ends, lengths.tolist(), strict=True)]


# ---- what all parties check and plan -------------------------------------------------------------


def lookups_of(joined: Joined, query: OddsQuery[object]) -> TableLookupPlan:
    """Return the plan of the lookups of a query in a study that a party has joined."""
    places = [tuple(map(joined.study.place, names)) for names in query.tables]
    selection = joined.selection(query.rows)
    name = label(query.kind, joined.commitments.label, wire.encode(query))
    return TableLookupPlan(name, selection, tuple(places), len(query.states) - 1)


def check_odds(party: Party, joined: Joined | None, query: OddsQuery[object]) -> Joined:
    """Return the study of a query, or refuse the query."""
    joined = joined_study(party, joined, query)
    with refusing(party):
        if not query.rows.count(joined.study.records):
            raise ValueError("no records are predicted; choose at least one")
        check_variables(joined.study, query.variables)
        check_most("numbers", sum(sizes_of(lookups_of(joined, query))), MOST_NUMBERS)
    check_parties(party, query, query.parties_of(joined.study, query.tables, query.target))
    return joined


def sizes_of(plan: TableLookupPlan) -> list[int]:
    """Return how many numbers each table has."""
    return [plan.rows(table) * plan.columns for table in range(len(plan.tables))]


def send_tables(analyst: AnalystRole, sites: Sequence[Party]) -> Program[None]:
    """Send the numbers of all tables to the sites that look them up: the analyst's side."""
    message = OddsNumbers(np.concatenate([table.ravel() for table in analyst.odds]))
    yield from exchange(dict.fromkeys(sites, message), {})


def received_tables(
    site: SiteRole, plan: TableLookupPlan, query: OddsQuery[object]
) -> Program[list[NDArray[np.int64]]]:
    """Receive the numbers of the tables, which must be those of the query."""
    sizes, analyst = sizes_of(plan), site.analyst
    expect = {analyst: Expect(OddsNumbers, sum(sizes) + 1)}
    flat = (yield from exchange({}, expect))[analyst].values
    if flat.shape != (sum(sizes),) or flat.dtype != np.int64:
        reason = f"numbers of tables of shape {flat.shape} and type {flat.dtype}; expected are "
        raise MalformedMessageError(analyst, f"{reason}{sum(sizes)} of type int64")
    pieces = np.split(flat, np.cumsum(sizes)[:-1])
    tables = [piece.reshape(-1, plan.columns) for piece in pieces]
    if digest_of(tables) != query.digest:
        raise MalformedMessageError(analyst, "the numbers of tables are not those of its query")
    return tables
