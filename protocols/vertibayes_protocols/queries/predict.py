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
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.table_lookups import (
    TableLookupPlan,
    deal_rows,
    open_rows,
    share_rows,
    show_rows,
)
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.costs import LOOKUP_PS_PER_BYTE, Planned
from vertibayes_protocols.queries.odds_query import (
    OddsQuery,
    check_odds,
    lookups_of,
    received_tables,
    send_tables,
)
from vertibayes_protocols.queries.study_checks import check_number, check_planned, planned
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation
from vertibayes_protocols.variables import Rows


@dataclass(frozen=True, slots=True)
class Predict(OddsQuery[NDArray[np.float64]]):
    """Ask for the log odds of records: an ndarray of shape (records, states - 1), in nats.

    The fields are those of `OddsQuery`.
    """

    kind: ClassVar[str] = "predict"


# ---- checks --------------------------------------------------------------------------------------


def _plan(joined: Joined, query: Predict) -> TableLookupPlan:
    return planned(joined, query, TableLookupPlan, lambda: lookups_of(joined, query))


def _check(party: Party, policy: Policy, joined: Joined | None, query: Predict) -> None:
    joined = check_odds(party, joined, query)
    with refusing(party):
        plan = _plan(joined, query)
    work = LOOKUP_PS_PER_BYTE * (plan.dealt_bytes + plan.sent_bytes)
    check_planned(party, policy, Planned(plan.memory, work))


def _consider_at_site(site: SiteRole, query: Predict) -> None:
    _check(site.party, site.policy, site.joined, query)
    check_number(site, query)
    records, left = _records(site, query), site.policy.most_scores - site.memory.scored
    if records > left:
        reason = (
            f"log odds of {records} records: {max(left, 0)} are left of most_scores = "
            f"{site.policy.most_scores}"
        )
        raise QueryRefusedError(site.party, reason)


def _records(site: SiteRole, query: Predict) -> int:
    assert site.joined is not None  # considered
    return query.rows.count(site.joined.study.records)


def _consider_at_dealer(dealer: DealerRole, query: Predict) -> None:
    _check(dealer.party, dealer.policy, dealer.joined, query)


# ---- programs ------------------------------------------------------------------------------------


def _note(ledger: Ledger, query: Predict, sites: Sequence[Party], records: int, to: Party) -> None:
    """Note what is revealed of the sites' values, and to the sites."""
    named, over = ", ".join(query.variables), "" if query.rows == Rows() else f" ({query.rows})"
    ledger.note(
        f"log odds of {query.target} of {records} records{over} from their values of {named}; who "
        "chooses the tables may read these values off them",
        ", ".join(sites),
        (to,),
    )
    ledger.note(f"tables to predict {query.target} from {named}", to, tuple(sites))


def _site(site: SiteRole, query: Predict) -> Program[None]:
    assert site.joined is not None and site.holder is not None  # considered
    plan, records = _plan(site.joined, query), _records(site, query)
    site.holder.begin("predict", query.number)
    site.memory.score(records)
    _note(site.ledger, query, plan.parties, records, site.analyst)
    tables = yield from received_tables(site, plan, query)
    shares = yield from share_rows(site.holder, plan, tables)
    yield from show_rows(site.holder, plan, shares, site.analyst)


def _dealer(dealer: DealerRole, query: Predict) -> Program[None]:
    assert dealer.joined is not None  # considered
    yield from deal_rows(dealer.mask_keys, _plan(dealer.joined, query))


def _analyst(analyst: AnalystRole, query: Predict) -> Program[NDArray[np.float64]]:
    if analyst.joined is None:
        raise ValueError("the study must be committed before records are predicted")
    plan = _plan(analyst.joined, query)
    yield from send_tables(analyst, plan.parties)
    sums = yield from open_rows(plan)
    _note(analyst.ledger, query, plan.parties, sums.shape[1], analyst.party)
    return sums.view(np.int64).T / float(1 << query.fraction_bits)


PREDICT = (
    Conversation(Predict, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
