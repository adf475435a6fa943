"""Sums: statistics added up over sites that hold different records, with noise or exact.

    analyst -> sites    Sums: what is counted, over whom, with which noise, number t
    site                checks members, states and budget; writes the cost down; counts, adds noise
    sites <-> analyst   the additive scheme or masked sums (`queries.aggregations`)
    analyst             the sums over all who are in, and what the noise promises

The analyst is the aggregator. Where the statistics are those of naive Bayes, this is HDPNB of Huai
et al. (2015).

Security: the analyst and the `dishonest` share of the sites learn the noisy sums over the others,
and nothing else. How little these sums tell about a record, or about a site, is the `Promise` of a
release. Sites are trusted to count their own records and to add their noise: a site that lies can
shift each count by as much as fits a slot, and nobody notices. A site takes part only with members
whose keys it has pinned, in blocks that are large enough, at a number above all before, for an
estimate u_k <= n of the members, under terms that let as many work with the analyst as its policy
expects, and within its budget. The analyst may call the `dropouts` share absent, and leaves their
noise out then. With the additive scheme each site refuses to leave out more. With masked sums the
analyst is trusted not to, where the quorum does not suffice (`SumPromise.checked`). All keys and
labels contain the digest of the query: an analyst who sends the sites different members or terms
opens nothing.
Leakage: the noisy sums, to the analyst; members, who is absent, and the number, to all.
Cost: two rounds for query and answer, and those of the way; the names of all members to each.
"""

from __future__ import annotations

from vertibayes_mpc.errors import PartyGoneError
from vertibayes_mpc.masked_sum import Member, collect, contribute
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.queries.aggregations import (
    Summation,
    contribute_additive,
    open_additive,
    plan_of,
)
from vertibayes_protocols.queries.contributing import (
    check_number,
    check_opendp,
    check_own_records,
    check_shown,
    noisy_statistics,
    note_statistics,
)
from vertibayes_protocols.queries.sum_query import ReleasedSums, Sums, promise_over
from vertibayes_protocols.roles import AnalystRole, SiteRole, agree_pairs
from vertibayes_protocols.session import Conversation

PAIRS = "pair keys of a sum"

# ---- the site ------------------------------------------------------------------------------------


def _consider(site: SiteRole, query: Sums) -> None:
    with refusing(site.party):
        sum_ = query.summation()
    _check_members(site, query, sum_)
    _check_policy(site, query, sum_)
    check_number(site, query)
    check_own_records(site, sum_.terms)


def _check_members(site: SiteRole, query: Sums, sum_: Summation) -> None:
    if site.party not in {*query.parties} & {*sum_.members} - {*query.absent}:
        raise QueryRefusedError(site.party, "it is not among the members that are asked")
    keys = site.signing_keys if query.via == "masked" else site.public_keys
    strangers = sorted(set(sum_.members) - {site.party} - set(keys))
    if strangers:
        what = "signing key" if query.via == "masked" else "public key"
        half = "; it is the second half of what keygen prints" if query.via == "masked" else ""
        reason = f"no {what} of {', '.join(strangers)} is pinned here{half}"
        raise QueryRefusedError(site.party, reason)
    if site.dealer in sum_.members:  # whose key is pinned too
        raise QueryRefusedError(site.party, "the dealer holds no records: it cannot be a member")
    if not site.analyst_key:
        raise QueryRefusedError(site.party, f"no public key of {site.analyst} is pinned here")


def _check_policy(site: SiteRole, query: Sums, sum_: Summation) -> None:
    policy, privacy = site.policy, sum_.terms.privacy
    check_shown(site, query, sum_.terms)
    policy.check_dishonest(site.party, sum_.terms.dishonest)
    n = len(sum_.members)
    if n - sum_.most_absent - sum_.terms.colluding(n) < 2 and policy.dishonest:
        reason = "fewer than two members who do not work with the analyst could be in the sum"
        raise QueryRefusedError(site.party, reason)
    if privacy is None:
        policy.check_exact(site.party)
        return
    policy.check_budget(site.party, site.memory.spent, _cost(sum_))
    check_opendp(site.party, privacy.noise)


def _cost(sum_: Summation) -> Cost:
    """Return the cost of a release; nothing is charged for exact sums."""
    accounting = sum_.terms.accounting
    return Cost() if accounting is None else accounting.cost(len(sum_.members))


def _site(site: SiteRole, query: Sums) -> Program[None]:
    sum_ = query.summation()
    values = noisy_statistics(site, sum_.terms, query.estimate(site.party))
    site.memory.sum(query.number, _cost(sum_), query.analyst)
    _note(site.ledger, query, sum_, site.analyst)
    site.note_budget()
    if query.via == "masked":
        keys = {**site.signing_keys, site.party: site.signing.public}
        plan = plan_of(sum_, keys)
        member = Member(site.party, site.signing)
        yield from contribute(member, plan, values, site.analyst, site.randomness)
        return
    streams = agree_pairs(site, _neighbours(sum_, site.party), PAIRS)
    streams[site.analyst] = site.keys.agree(site.analyst_key, PAIRS)
    yield from contribute_additive(sum_, site.modulus, site.party, site.analyst, streams, values)


def _neighbours(sum_: Summation, party: Party) -> set[Party]:
    return set[Party]().union(*sum_.neighbourhood(party)) - {party}


def _note(ledger: Ledger, query: Sums, sum_: Summation, analyst: Party) -> None:
    members = f"{len(sum_.members) - len(query.absent)} of {len(sum_.members)} parties"
    shown = f"sums of {{}} over {members}, number {{}}"
    note_statistics(ledger, query, shown, sum_.promise, "all parties together", analyst)


# ---- the analyst ---------------------------------------------------------------------------------


def _need(query: Sums) -> int:
    """Return how many must answer: the others may be gone."""
    sum_ = query.summation()
    return max(2, len(sum_.members) - sum_.most_absent)


def _analyst(analyst: AnalystRole, query: Sums) -> Program[ReleasedSums]:
    sum_, present = query.summation(), query.parties
    if query.via == "masked":
        total = yield from collect(plan_of(sum_, analyst.signing_keys), present)
    else:
        streams = agree_pairs(analyst, sum_.members, PAIRS)
        total = yield from open_additive(sum_, analyst.modulus, analyst.party, streams, present)
    gone = sorted(set(sum_.members) - set(total.parties))
    if len(gone) > sum_.most_absent:
        reason = "gone: the noise of the others does not keep the promise"
        raise PartyGoneError(tuple(gone), reason)
    promise = promise_over(query, sum_, total.parties)  # who dropped out has added no noise
    _note(analyst.ledger, query, sum_._replace(promise=promise), analyst.party)
    return ReleasedSums(total.values, total.parties, promise)


SUMS = Conversation(Sums, _analyst, _need).side(SiteRole, _consider, _site)
