"""What queries about the log odds of records have in common: their fields, checks and numbers.

`predict` reveals the log odds, `score_table` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange
from vertibayes_mpc.table_lookups import TableLookupPlan
from vertibayes_protocols import wire
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.odds import Odds, OddsShape, digest_of
from vertibayes_protocols.queries.names import check_most, check_variables
from vertibayes_protocols.query import At, StudyQuery
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Rows

MOST_NUMBERS = 4_000_000  # of all tables: 32 MB

R_co = TypeVar("R_co", covariant=True)
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class OddsNumbers(Message):
    """The numbers of all tables, one after the other: int64 of shape (numbers,)."""

    kind: ClassVar[str] = "odds numbers"
    values: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OddsQuery(StudyQuery[R_co, P]):
    """Ask for something of the log odds of records.

    Further fields are those of `StudyQuery`.
    """

    odds: OddsShape  # what is predicted from which variables
    rows: Rows  # the records
    numbers: Sequence[NDArray[np.int64]] = field(
        default=(), kw_only=True, repr=False, compare=False, metadata=wire.LOCAL
    )

    @classmethod
    def of(cls, joined: Joined, odds: Odds, rows: Rows = Rows(), **more: Any) -> Self:
        """Return the next query of a study."""
        study = joined.study
        check_variables(study, odds.shape.variables)
        for table in odds.tables:
            shape = tuple(study.variables[name].codes for name in table.variables)
            if table.numbers.shape[:-1] != shape:
                raise ValueError(
                    f"the table of {', '.join(table.variables)} must have the codes {shape}, got "
                    f"{table.numbers.shape[:-1]}"
                )
        joined.asked += 1
        asked = study.id, joined.asked, odds.shape, rows.whole
        numbers = [table.flat for table in odds.tables]
        return cls(cls.asked_of(study, odds.shape), *asked, **more, numbers=numbers)

    @classmethod
    def asked_of(cls, study: Study, odds: OddsShape) -> tuple[Party, ...]:
        """Return whom the query asks: the holders of the tables, and the dealer if it is needed."""
        holders = study.holders_of(odds.variables)
        is_dealt = any(len(study.holders_of(names)) > 1 for names in odds.tables)
        return (*holders, study.dealer) if is_dealt else holders

    def lookups(self, at: At) -> TableLookupPlan:
        """Return the plan of the lookups, or refuse what does not fit the study."""
        joined = self.joined(at)
        if not self.rows.count(joined.study.records):
            raise ValueError("no records are predicted; choose at least one")
        check_variables(joined.study, self.odds.variables)
        places = [tuple(map(joined.study.place, names)) for names in self.odds.tables]
        name = label(self.kind, joined.commitments.label, wire.encode(self))
        selection, columns = joined.selection(self.rows), len(self.odds.states) - 1
        plan = TableLookupPlan(name, selection, tuple(places), columns)
        check_most("numbers", sum(_sizes(plan)), MOST_NUMBERS)
        return plan

    def send_numbers(self, sites: Sequence[Party]) -> Program[None]:
        """Send the numbers of all tables to the sites that look them up: the analyst's side."""
        message = OddsNumbers(np.concatenate([table.ravel() for table in self.numbers]))
        yield from exchange(dict.fromkeys(sites, message), {})

    def received_numbers(
        self, site: SiteRole, plan: TableLookupPlan
    ) -> Program[list[NDArray[np.int64]]]:
        """Receive the numbers of the tables, which must be those of the query."""
        sizes, analyst = _sizes(plan), site.analyst
        expect = {analyst: Expect(OddsNumbers, sum(sizes) + 1)}
        flat = (yield from exchange({}, expect))[analyst].values
        if flat.shape != (sum(sizes),):
            reason = f"numbers of tables of shape {flat.shape}; expected are {sum(sizes)}"
            raise MalformedMessageError(analyst, reason)
        pieces = np.split(flat, np.cumsum(sizes)[:-1])
        tables = [piece.reshape(-1, plan.columns) for piece in pieces]
        if digest_of(tables) != self.odds.digest:
            raise MalformedMessageError(analyst, "the numbers of tables are not those of its query")
        return tables


def _sizes(plan: TableLookupPlan) -> list[int]:
    """Return how many numbers each table has."""
    return [plan.rows(table) * plan.columns for table in range(len(plan.tables))]
