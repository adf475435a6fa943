"""Predict: the log odds of a target for records whose values lie at several sites.

    analyst -> all      Predict: the target's states, the axes of each table, which records
    analyst -> sites    OddsNumbers: the numbers of all tables
    sites, dealer       shares of the sum of each record's rows       mpc.table_lookups
    sites -> analyst    the sums, under zero shares

For joint values of its variables, a table adds to ``ln P(state) - ln P(first state)`` of each other
state of the target. The sum over all tables is the log odds of the record: whoever has them has the
posterior, and whoever has the posterior has the log odds.

Security: honest-but-curious, that of `mpc.table_lookups`. A site learns nothing of the others'
values. The query has a digest of the numbers, and each message of a site has a digest of the query:
sites that were sent different tables refuse each other's messages.
Leakage: to the analyst the log odds of each record. The analyst chooses the tables: a table with
another number for each joint value shows the values themselves, of all variables that are named. A
site therefore takes the named values of predicted records for revealed; its policy limits how many
such records there are (`most_scores`, 0 by default). To the sites that hold a named variable: the
numbers of all tables, which follow from the model. To all parties: the target, the variables and
sizes of the tables, which records. The dealer does not receive the numbers.
Cost: 2 rounds after the query's and those of `mpc.table_lookups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import index
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc.errors import MalformedMessageError
from mpc.randomness import label
from mpc.rounds import Expect, Message, Party, Program, exchange
from mpc.table_lookups import TableLookupPlan, deal_rows, open_rows, share_rows, show_rows
from protocols import wire
from protocols.errors import QueryRefusedError, refusing
from protocols.joined import Joined
from protocols.ledger import Ledger
from protocols.odds import Odds, check_states, digest_of
from protocols.policy import Policy
from protocols.queries.costs import LOOKUP_PS_PER_BYTE, Planned
from protocols.queries.study_checks import (
    check_most,
    check_number,
    check_parties,
    check_places,
    check_planned,
    check_variables,
    joined_study,
    numbered,
    numbers,
    planned,
)
from protocols.roles import AnalystRole, DealerRole, SiteRole
from protocols.session import Conversation, Query
from protocols.variables import Rows

MOST_TABLES = 10_000
MOST_NUMBERS = 4_000_000  # of all tables: 32 MB


@dataclass(frozen=True, slots=True)
class OddsNumbers(Message):
    """The numbers of all tables, one after the other: int64 of shape (numbers,)."""

    kind: ClassVar[str] = "odds numbers"
    values: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Predict(Query[NDArray[np.float64]]):
    """Ask for the log odds of records: an ndarray of shape (records, states - 1), in nats.

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

    kind: ClassVar[str] = "predict"
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
    def of(cls, joined: Joined, odds: Odds, rows: Rows) -> Predict:
        """Return the next query of a study; the numbers go from `AnalystRole.odds` to the sites.

        Parameters
        ----------
        joined : Joined
            The study, and the number of its queries so far.
        odds : Odds
            What is asked.
        rows : Rows
            The records.

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
        places = numbered(members)
        joined.asked += 1
        holders = study.holders_of(places)
        is_dealt = any(len(study.holders_of(names)) > 1 for names in members)
        return cls(
            parties=(*holders, study.dealer) if is_dealt else holders,
            study=study.id,
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
            number=joined.asked,
        )

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


# ---- checks --------------------------------------------------------------------------------------


def _plan(joined: Joined, query: Predict) -> TableLookupPlan:
    return planned(joined, query, TableLookupPlan, lambda: _make_plan(joined, query))


def _make_plan(joined: Joined, query: Predict) -> TableLookupPlan:
    places = [tuple(map(joined.study.place, names)) for names in query.tables]
    selection = joined.selection(query.rows)
    name = label("predict", joined.commitments.label, wire.encode(query))
    return TableLookupPlan(name, selection, tuple(places), len(query.states) - 1)


def _check(party: Party, policy: Policy, joined: Joined | None, query: Predict) -> None:
    joined = joined_study(party, joined, query)
    with refusing(party):
        if not query.rows.count(joined.study.records):
            raise ValueError("no records are predicted; choose at least one")
        check_variables(joined.study, query.variables)
        plan = _plan(joined, query)
        check_most("numbers", sum(_sizes(plan)), MOST_NUMBERS)
        check_planned(party, policy, cost_of(plan))
    asked = (*plan.parties, joined.study.dealer) if plan.is_dealt else plan.parties
    check_parties(party, query, asked)


def cost_of(plan: TableLookupPlan) -> Planned:
    """Return what a prediction takes: memory at one party, and the work of all parties."""
    sent = plan.dealt_bytes + plan.sent_bytes
    return Planned(plan.memory, LOOKUP_PS_PER_BYTE * sent)


def _sizes(plan: TableLookupPlan) -> list[int]:
    return [plan.rows(table) * plan.columns for table in range(len(plan.tables))]


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
    tables = yield from _received(site, plan, query)
    shares = yield from share_rows(site.holder, plan, tables)
    yield from show_rows(site.holder, plan, shares, site.analyst)


def _received(
    site: SiteRole, plan: TableLookupPlan, query: Predict
) -> Program[list[NDArray[np.int64]]]:
    """Receive the numbers of the tables, which must be those of the query."""
    sizes, analyst = _sizes(plan), site.analyst
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


def _dealer(dealer: DealerRole, query: Predict) -> Program[None]:
    assert dealer.joined is not None  # considered
    yield from deal_rows(dealer.mask_keys, _plan(dealer.joined, query))


def _analyst(analyst: AnalystRole, query: Predict) -> Program[NDArray[np.float64]]:
    if analyst.joined is None:
        raise ValueError("the study must be committed before records are predicted")
    plan = _plan(analyst.joined, query)
    message = OddsNumbers(np.concatenate([table.ravel() for table in analyst.odds]))
    yield from exchange(dict.fromkeys(plan.parties, message), {})
    sums = yield from open_rows(plan)
    _note(analyst.ledger, query, plan.parties, sums.shape[1], analyst.party)
    return sums.view(np.int64).T / float(1 << query.fraction_bits)


PREDICT = (
    Conversation(Predict, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
