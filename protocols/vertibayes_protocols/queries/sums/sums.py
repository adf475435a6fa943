"""Sums: statistics added up over sites that hold different records, with noise or exact.

    analyst -> sites    Sums: what is counted, over whom, with which noise, number t
    site                checks members, states and budget; writes the cost down; counts, adds noise
    sites <-> analyst   the additive scheme or masked sums (`queries.sums.aggregations`)
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

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.additive_scheme import NEVER
from vertibayes_mpc.errors import PartyGoneError
from vertibayes_mpc.masked_sum import Member, Sum, collect, contribute
from vertibayes_mpc.membership import Aggregator, answer_roll, call_roll
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Party, Program
from vertibayes_protocols import wire
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.effects import Effects
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.sums.aggregations import (
    SUMMED_VIA,
    CarefulMember,
    Summation,
    least_block,
    neighbourhood_of,
    parameters_of,
    plan_of,
)
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.statistics import (
    StatisticsQuery,
    check_numbered,
    check_own_records,
    noisy_statistics,
)
from vertibayes_protocols.queries.sums.terms import Terms, Values
from vertibayes_protocols.query import At, Give
from vertibayes_protocols.roles import AnalystRole, SiteRole, agree_pairs
from vertibayes_protocols.session import QUERY_CELLS

PAIRS = "pair keys of a sum"


class ReleasedSums(NamedTuple):
    """What the analyst has of one release."""

    sums: Values  # as they were decrypted, not clamped: int64 of shape (terms.counts,)
    parties: tuple[Party, ...]  # whose counts are in them
    promise: SumPromise | None  # of the noise; None for exact sums


@dataclass(frozen=True, slots=True)
class Sums(StatisticsQuery[ReleasedSums, Summation]):
    """Ask for sums of statistics; `parties` are the members that are not absent."""

    kind: ClassVar[str] = "sums"
    via: str  # one of `SUMMED_VIA`
    blocks: tuple[tuple[str, ...], ...] = field(metadata=wire.FREE)  # all members, by their groups
    estimates: NDArray[np.uint32]  # u_k of each member, in the order of `blocks`
    absent: tuple[str, ...] = field(metadata=wire.FREE)  # the members that are not asked

    def __post_init__(self) -> None:
        check_numbered(self.number, self.analyst)
        if self.via not in SUMMED_VIA:
            raise ValueError(f"via {self.via!r}: it must be {' or '.join(SUMMED_VIA)}")
        members, most = self.members, self.terms.most_parties
        if not 2 <= len(set(members)) == len(members) <= most:
            raise ValueError(f"{len(members)} members: there must be from 2 to {most}, each once")
        least = least_block(self.terms)
        if self.via == "additive" and len(self.blocks) > 1 and min(map(len, self.blocks)) < least:
            raise ValueError(f"a block of the members has fewer than {least} of them")
        if self.estimates.shape != (len(members),) or (self.estimates > len(members)).any():
            raise ValueError("an estimate of the number of members is above their number")
        self._check_absent(set(members))

    def _check_absent(self, members: set[Party]) -> None:
        absent, most = self.absent, self.terms.absent(len(members))
        if len(set(absent)) < len(absent):
            raise ValueError("a member appears twice among the absent; name each member once")
        if not set(absent) <= members or len(absent) > most:
            raise ValueError(f"{len(absent)} members are absent, at most {most} are agreed")
        if len(members) - len(absent) < 2:
            raise ValueError("fewer than two members are present: a sum over one is its count")

    @classmethod
    def of(
        cls, analyst: AnalystRole, terms: Terms, members: Members, absent: Iterable[Party] = ()
    ) -> Sums:
        """Return the analyst's next query for sums over the members that are not absent."""
        gone, blocks = set(absent), members.blocks
        return cls(
            parties=tuple(party for party in members.parties if party not in gone),
            number=analyst.next_number(),
            analyst=analyst.keys.public,
            terms=terms,
            via=members.via,
            blocks=blocks,
            estimates=np.array([members.estimates[p] for b in blocks for p in b], np.uint32),
            absent=tuple(sorted(gone)),
        )

    @property
    def members(self) -> tuple[Party, ...]:
        """All members, sorted."""
        return tuple(sorted(party for block in self.blocks for party in block))

    @property
    def asked(self) -> tuple[Party, ...]:
        """The members that are not absent, sorted."""
        gone = set(self.absent)
        return tuple(party for party in self.members if party not in gone)

    def estimate(self, party: Party) -> int:
        """Return a member's estimate of the number of members."""
        order = [name for block in self.blocks for name in block]
        return int(self.estimates[order.index(party)])

    def summation(self) -> Summation:
        """Return the sum that is asked for, under the digest of the query; ValueError if unfit."""
        return _summation(wire.encode(self))

    @property
    def need(self) -> int:
        """How many must answer: the others may be gone."""
        sum_ = self.summation()
        return max(2, len(sum_.members) - sum_.most_absent)

    def matches(self, contract: Contract) -> None:
        """Refuse other members than the sites of the contract."""
        if self.members != tuple(sorted(contract.site_names)):
            raise ValueError("the members of the sum are not the sites of the contract")

    def plan(self, at: At) -> Summation:
        """Return the sum."""
        sum_ = self.summation()
        self.check_asked(at, {*self.parties} & {*self.asked})
        return sum_

    def effects(self, plan: Summation, at: At) -> Effects:
        """Return the effects: sums leave with the noise of all who are asked."""
        return self._effects(plan, at, plan.promise)

    def revealed(self, plan: Summation, at: At, result: ReleasedSums) -> Effects:
        """Return the effects with the noise of whose counts were summed; others have added none."""
        return self._effects(plan, at, result.promise)

    def _effects(self, plan: Summation, at: At, promise: SumPromise | None) -> Effects:
        shown = f"sums of {{}} over {len(self.asked)} of {len(plan.members)} parties"
        about = ("all parties together",)
        return self.effects_of(at, promise, shown, about, self.terms.dishonest)

    def fits(self, site: SiteRole, plan: Summation) -> None:
        """Refuse members whose keys are not pinned, too few honest ones, and unfit records."""
        _check_members(site, self, plan)
        honest = len(plan.members) - plan.most_absent - self.terms.colluding(len(plan.members))
        if honest < 2 and site.policy.dishonest:
            raise ValueError(
                "fewer than two members who do not work with the analyst could be in the sum"
            )
        check_own_records(site, self.terms)

    def run_site(self, site: SiteRole, plan: Summation, give: Give) -> Program[None]:
        """Count the site's records, add its noise, and contribute to the sum."""
        values = noisy_statistics(site, plan.terms, self.estimate(site.party))
        if self.via == "masked":
            keys = {**site.signing_keys, site.party: site.signing.public}
            member, sum_plan = Member(site.party, site.signing), plan_of(plan, keys)
            yield from contribute(member, sum_plan, values, site.analyst, site.randomness)
            return
        near = plan.neighbourhood(site.party)
        streams = agree_pairs(site, set[Party]().union(*near) - {site.party}, PAIRS)
        streams[site.analyst] = site.keys.agree(site.analyst_key, PAIRS)
        parameters, ends = parameters_of(plan, site.modulus), (site.party, site.analyst)
        careful = CarefulMember(parameters, *ends, near, streams, last_time=NEVER)
        careful.most_absent = plan.most_absent
        yield from answer_roll(careful, values, plan.number)

    def run_analyst(self, analyst: AnalystRole, plan: Summation) -> Program[ReleasedSums]:
        """Open the sums."""
        if self.via == "masked":
            total = yield from collect(plan_of(plan, analyst.signing_keys), self.parties)
        else:
            streams = agree_pairs(analyst, plan.members, PAIRS)
            opener = Aggregator(parameters_of(plan, analyst.modulus), analyst.party, streams)
            absent = sorted(set(plan.members) - set(self.parties))
            sums = yield from call_roll(opener, absent, plan.number, plan.terms.counts)
            total = Sum(sums, tuple(sorted(self.parties)))
        gone = sorted(set(plan.members) - set(total.parties))
        if len(gone) > plan.most_absent:
            reason = "gone: the noise of the others does not keep the promise"
            raise PartyGoneError(tuple(gone), reason)
        promise = promise_over(self, plan, total.parties)  # who dropped out has added no noise
        return ReleasedSums(total.values, total.parties, promise)


# ---- the sum that a query asks for ---------------------------------------------------------------


# All parties of a process have the same query, and a party asks for its sum more than once.
@lru_cache(maxsize=4)
def _summation(encoded: bytes) -> Summation:
    query = wire.decode(encoded, "the query", Expect(Sums, QUERY_CELLS))
    query.terms.check()
    digest = label("sums", encoded)
    sum_ = Summation(query.terms, digest, query.number, query.blocks, query.members)
    _ = _fewest(query, sum_)  # masked sums over too few are refused here
    return sum_._replace(promise=promise_over(query, sum_, query.asked))


def promise_over(query: Sums, sum_: Summation, parties: Collection[Party]) -> SumPromise | None:
    """Return what the noise of some parties promises; None without noise."""
    accounting, n, there = sum_.terms.accounting, len(sum_.members), set(parties)
    if accounting is None:
        return None
    order = [party for block in query.blocks for party in block]
    pairs = zip(order, query.estimates.tolist(), strict=True)
    noises = accounting.noises([u for party, u in pairs if party in there])
    colluding = sum_.terms.colluding(n)
    safe = _fewest(query, sum_) - colluding
    checked = safe >= accounting.honest(n)
    return accounting.promise(noises, n, colluding, checked=checked)


def _fewest(query: Sums, sum_: Summation) -> int:
    """Return how many members are in every sum that honest ones help to open."""
    if query.via == "masked":
        n, terms = len(sum_.members), sum_.terms
        return neighbourhood_of(n, terms.colluding(n), terms.absent(n)).quorum(n)
    return len(sum_.members) - sum_.most_absent


# ---- the site ------------------------------------------------------------------------------------


def _check_members(site: SiteRole, query: Sums, sum_: Summation) -> None:
    keys = site.signing_keys if query.via == "masked" else site.public_keys
    strangers = sorted(set(sum_.members) - {site.party} - set(keys))
    if strangers:
        what = "signing key" if query.via == "masked" else "public key"
        half = "; it is the second half of what keygen prints" if query.via == "masked" else ""
        raise ValueError(f"no {what} of {', '.join(strangers)} is pinned here{half}")
    if site.dealer in sum_.members:  # whose key is pinned too
        raise ValueError("the dealer holds no records: it cannot be a member")
