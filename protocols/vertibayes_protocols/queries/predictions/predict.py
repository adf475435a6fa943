"""Predict: the log odds of a target for records whose values lie at several sites.

    analyst -> all      Predict: the target's states, the axes of each table, which records
    analyst -> sites    OddsNumbers: the numbers of all tables
    sites, dealer       shares of the sum of each record's rows       vertibayes_mpc.table_lookups
    sites -> analyst    the sums, under zero shares

For joint values of its variables, a table adds to ``ln P(state) - ln P(first state)`` of each other
state of the target. The sum over all tables is the log odds of the record: whoever has them has the
posterior, and whoever has the posterior has the log odds.

Security: honest-but-curious, that of `vertibayes_mpc.table_lookups`. A site learns nothing of the
others' values. The query has a digest of the numbers, and each message of a site has a digest of
the query: sites that were sent different tables refuse each other's messages. Leakage: to the
analyst the log odds of each record. The analyst chooses the tables: a table with another number for
each joint value shows the values themselves, of all variables that are named. A site therefore
takes the named values of predicted records for revealed; its policy limits how many such records
there are (`most_scores`, 0 by default). To the sites that hold a named variable: the numbers of all
tables, which follow from the model. To all parties: the target, the variables and sizes of the
tables, which records. The dealer does not receive the numbers. Cost: 2 rounds after the query's and
those of `vertibayes_mpc.table_lookups`.
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
from vertibayes_mpc.table_lookups import (
    TableLookupPlan,
    deal_rows,
    open_rows,
    share_rows,
    show_rows,
)
from vertibayes_protocols import wire
from vertibayes_protocols.effects import Effects, Number, Planned, Scored
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.odds import Odds, OddsShape, digest_of
from vertibayes_protocols.queries.tables.masked_costs import LOOKUP_PS_PER_BYTE
from vertibayes_protocols.query import At, Give, StudyQuery, check_most, check_variables
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.study import Joined, Study
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
    """Ask for something of the log odds of records."""

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


@dataclass(frozen=True, slots=True)
class Predict(OddsQuery[NDArray[np.float64], TableLookupPlan]):
    """Ask for the log odds of records: an ndarray of shape (records, states - 1), in nats."""

    kind: ClassVar[str] = "predict"
    is_dealt: ClassVar[bool] = True

    def plan(self, at: At) -> TableLookupPlan:
        """Return the plan of the lookups."""
        return self.lookups(at)

    def effects(self, plan: TableLookupPlan, at: At) -> Effects:
        """Return the effects: the log odds of records leave, and are as good as their values."""
        records, rows = plan.selection.records, self.rows
        target, named = self.odds.target, ", ".join(self.odds.variables)
        over = "" if rows == Rows() else f" ({rows})"
        shown = (
            f"log odds of {target} of {records} records{over} from their values of {named}; "
            "who chooses the tables may read these values off them"
        )
        work = LOOKUP_PS_PER_BYTE * (plan.dealt_bytes + plan.sent_bytes)
        return Effects(
            asks=self.asked_of(self.joined(at).study, self.odds),
            columns=(),
            tables=(),
            counts=None,
            takes=[Planned(plan.memory, work)],
            number=Number(self.number),
            leaves=Scored(records, "log odds"),
            says=(
                Fact(shown, ", ".join(plan.parties), (at.analyst,)),
                Fact(f"tables to predict {target} from {named}", at.analyst, plan.parties),
            ),
            opens=(),
        )

    def run_site(self, site: SiteRole, plan: TableLookupPlan, give: Give) -> Program[None]:
        """Look up the site's shares, and send them to the analyst."""
        assert site.holder is not None  # it has joined the study
        site.holder.begin("predict", self.number)
        tables = yield from self.received_numbers(site, plan)
        shares = yield from share_rows(site.holder, plan, tables)
        yield from show_rows(site.holder, plan, shares, site.analyst)

    def run_dealer(self, dealer: DealerRole, plan: TableLookupPlan) -> Program[None]:
        """Deal what the lookups need."""
        yield from deal_rows(dealer.mask_keys, plan)

    def run_analyst(
        self, analyst: AnalystRole, plan: TableLookupPlan
    ) -> Program[NDArray[np.float64]]:
        """Send the numbers, and add up the shares."""
        yield from self.send_numbers(plan.parties)
        sums = yield from open_rows(plan)
        return sums.view(np.int64).T / float(1 << self.odds.fraction_bits)
