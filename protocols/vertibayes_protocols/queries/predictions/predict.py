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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Program
from vertibayes_mpc.table_lookups import (
    TableLookupPlan,
    deal_rows,
    open_rows,
    share_rows,
    show_rows,
)
from vertibayes_protocols.effects import NONE, Effects, Number, Planned, Scored
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.predictions.odds_query import OddsQuery
from vertibayes_protocols.queries.tables.costs import LOOKUP_PS_PER_BYTE
from vertibayes_protocols.query import At, Give
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.variables import Rows


@dataclass(frozen=True, slots=True)
class Predict(OddsQuery[NDArray[np.float64], TableLookupPlan]):
    """Ask for the log odds of records: an ndarray of shape (records, states - 1), in nats.

    The fields are those of `OddsQuery`.
    """

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
            asks=self.asked_of(at.study(self.study).study, self.odds),
            columns=(),
            tables=(),
            counts=None,
            takes=lambda: (Planned(plan.memory, work),),
            stored=0,
            number=Number(self.number),
            released=NONE,
            freely=NONE,
            scores=Scored(records, "log odds"),
            bits=0,
            noise=None,
            dishonest=None,
            exact=False,
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
