"""Score tables: how many records of each class have log odds between public thresholds.

    sites, dealer    shares of the log odds of each record      vertibayes_mpc.table_lookups
    sites, dealer    shares of how many thresholds they reach   vertibayes_mpc.argmax: `share_ranks`
    sites, dealer    shares of the counts by bin and class      vertibayes_mpc.table_lookups
    sites, dealer    cut: shares of c if c >= fewest, else 0    vertibayes_mpc.lookups
    each site        laplace, gaussian: + its own noise         vertibayes_mpc.noise
    sites -> analyst its shares + zero shares

The table says how well a model predicts records that nobody has together: it gives the ROC curve
and the area under it, without the log odds of a single record.

Security: honest-but-curious, that of the protocols above. No party has more than random shares of a
record's log odds, bin or class, except what it computes from its own columns. Rules act on shares
before anything is revealed. The class of a record does not leave its site.
Leakage: to the analyst the table, by the rule; to all parties the target, the variables and sizes
of the tables, the thresholds, which records; to the sites the numbers of the tables. The analyst
chooses tables and thresholds, so that a bin can stand for any values of the named variables: an
exact table is as revealing as an exact table of these variables, with fewer cells.
Cost: that of `vertibayes_mpc.table_lookups`; for each record and threshold about 36 bytes dealt,
and 13 bytes from each site to each other; for each record as many elements dealt as the table has
cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax import deal_argmax, share_ranks
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.errors import ImpossibleTablesError, ProtocolError
from vertibayes_mpc.lookups import deal_lookups, look_up
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.sharing import open_sum, send_share, zero_share
from vertibayes_mpc.table_lookups import (
    Tables,
    deal_counts,
    deal_rows,
    share_counts,
    share_rows,
)
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.odds_query import (
    check_odds,
    lookups_of,
    received_tables,
    send_tables,
)
from vertibayes_protocols.queries.release_given import check_noise
from vertibayes_protocols.queries.score_table_query import ScorePlan, ScoreTable, check_target
from vertibayes_protocols.queries.study_checks import (
    check_at_site,
    check_planned,
    planned,
    remember_records,
)
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation

# ---- checks --------------------------------------------------------------------------------------


def _plan(joined: Joined, query: ScoreTable) -> ScorePlan:
    return planned(joined, query, ScorePlan, lambda: _make_plan(joined, query))


def _make_plan(joined: Joined, query: ScoreTable) -> ScorePlan:
    released = query.released
    variable = joined.study.variables.get(query.target)
    if variable is None or variable.states != query.states or len(query.states) != 2:
        raise ValueError(
            f"the target {query.target!r} must be a variable of the study, with these two states"
        )
    lookups = lookups_of(joined, query)
    return ScorePlan(joined.study, lookups, query.thresholds, query.target, released)


def _check(party: Party, policy: Policy, joined: Joined | None, query: ScoreTable) -> ScorePlan:
    with refusing(party):
        if joined is not None:  # otherwise `check_odds` refuses
            check_target(joined.study, query.target)
    joined = check_odds(party, joined, query)
    policy.check_records(party, query.rows, joined.study.records)
    with refusing(party):
        plan = _plan(joined, query)
        plan.check()
    policy.check_tables(party, [(2, plan.cells)])
    check_planned(party, policy, plan.planned)
    return plan


def _check_budgets(site: SiteRole, plan: ScorePlan) -> None:
    site.policy.check_released(site.party, site.memory.released, 1, plan.cells)
    if plan.noise is not None:
        check_noise(site, plan.released.rule, plan.noise)


def _consider_at_site(site: SiteRole, query: ScoreTable) -> None:
    plan = _check(site.party, site.policy, site.joined, query)
    check_at_site(site, query)
    _check_budgets(site, plan)


def _consider_at_dealer(dealer: DealerRole, query: ScoreTable) -> None:
    _check(dealer.party, dealer.policy, dealer.joined, query)


# ---- programs ------------------------------------------------------------------------------------


def _note(ledger: Ledger, query: ScoreTable, plan: ScorePlan, to: Party) -> None:
    ledger.note(
        f"counts of {plan.records} records by {query.target} and {len(plan.thresholds) + 1} bins "
        f"of its log odds from {', '.join(query.variables)}: {plan.released.rule.words}",
        ", ".join(plan.sites),
        (to,),
    )
    ledger.note(
        f"tables to predict {query.target} from {', '.join(query.variables)}",
        to,
        plan.lookups.parties,
    )


def _give(site: SiteRole, query: ScoreTable, plan: ScorePlan) -> None:
    """Note the release in memory and ledger, before its first byte is sent."""
    try:
        _check_budgets(site, plan)
    except QueryRefusedError as refusal:  # it is too late to refuse
        raise ProtocolError(site.party, refusal.reason) from None
    remember_records(site, query.rows)
    site.memory.give(1, plan.cells, None if plan.noise is None else plan.noise.cost)
    _note(site.ledger, query, plan, site.analyst)
    site.note_budget()


def _site(site: SiteRole, query: ScoreTable) -> Program[None]:
    assert site.joined is not None and site.holder is not None  # considered
    plan = _plan(site.joined, query)
    site.holder.begin("score table", query.number)
    _give(site, query, plan)
    bins = np.zeros(plan.records, np.uint64)
    if site.party in plan.lookups.parties:
        tables = yield from received_tables(site, plan.lookups, query)
        bins = yield from _bins(site.holder, plan, tables)
    indices = (bins << np.uint64(plan.class_bits)) + _classes(site.holder, plan)
    own = plan.counts.indices.reduce(indices.astype(plan.counts.indices.dtype))
    counts = yield from share_counts(site.holder, plan.counts, own)
    values = yield from _by_the_rule(site.holder, plan, counts, site.randomness)
    yield from send_share(values, site.analyst)


def _bins(site: Holder, plan: ScorePlan, tables: Tables) -> Program[Elements]:
    """Return this site's shares of how many thresholds the log odds of each record reach."""
    (scores,) = yield from share_rows(site, plan.lookups, tables)
    bins = np.zeros(plan.records, np.uint64)
    for part, ranks in plan.ranks:
        values = np.zeros((part.stop - part.start, 1 + len(plan.thresholds)), np.uint64)
        values[:, 0] = scores[part]
        if site.party == plan.lookups.parties[0]:
            values[:, 1:] = plan.thresholds.view(np.uint64)
        bins[part] = yield from share_ranks(site, ranks, values.ravel())
    return bins


def _classes(site: Holder, plan: ScorePlan) -> Elements:
    """Return this site's part of the classes; 0 if it holds none."""
    place, commitments = plan.study.place(plan.target), plan.lookups.commitments
    if site.party not in commitments.operands[place].holders:
        return np.zeros(plan.records, np.uint64)
    form = commitments.form("codes", place)
    assert form is not None  # all columns are committed as codes
    codes = plan.lookups.selection.whole(lambda block: site.clear(form, place, block))
    return codes.astype(np.uint64)


def _by_the_rule(
    site: Holder, plan: ScorePlan, counts: Elements, randomness: Randomness
) -> Program[Elements]:
    """Return this site's share of what is released, hidden under a zero share."""
    values = counts
    if plan.cuts.batches:
        values = (yield from look_up(site, plan.cuts, {0: counts}))[0]
    elif plan.function is not None:
        values = plan.function(counts.astype(np.int64)).astype(plan.ring.dtype)
    if plan.noise is not None:
        noise = plan.noise.of_a_site(randomness)(plan.cells)
        values = values + noise.astype(values.dtype)
    peers = {peer: site.peer_keys[peer] for peer in plan.sites if peer != site.party}
    name = label("score table", plan.lookups.name)
    return plan.ring.reduce(values + zero_share(site.party, peers, plan.ring, name, plan.cells))


def _dealer(dealer: DealerRole, query: ScoreTable) -> Program[None]:
    assert dealer.joined is not None  # considered
    plan, keys = _plan(dealer.joined, query), dealer.mask_keys
    yield from deal_rows(keys, plan.lookups)
    for _, ranks in plan.ranks:
        yield from deal_argmax(keys, ranks)
    yield from deal_counts(keys, plan.counts)
    yield from deal_lookups(keys, plan.cuts)


def _analyst(analyst: AnalystRole, query: ScoreTable) -> Program[NDArray[np.int64]]:
    if analyst.joined is None:
        raise ValueError("the study must be committed before records are counted")
    plan = _plan(analyst.joined, query)
    yield from send_tables(analyst, plan.lookups.parties)
    table = plan.read((yield from open_sum(plan.sites, plan.ring, plan.cells)))
    if plan.released.rule.kind == "exact" and table.sum() != plan.records:
        check = f"the score table counts {table.sum()} of {plan.records} records"
        raise ImpossibleTablesError(plan.sites, plan.study.dealer, check)
    _note(analyst.ledger, query, plan, analyst.party)
    return table


SCORE_TABLE = (
    Conversation(ScoreTable, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
