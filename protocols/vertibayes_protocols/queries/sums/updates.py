"""Local updates: sites that hold different records show their statistics under noise of their own.

    analyst -> sites    Updates: what is counted, with which noise, how many iterations
    site                checks its budget, writes the cost down, counts, adds a whole copy of noise
    each iteration
      site -> analyst   Step: the site's estimate, and a random peer that it is for
      analyst -> site   Delivered: the last two estimates that peers have sent to the site
    analyst             the updates of all sites, and every site's estimate in the last iteration

One iteration collects the updates alone: the federated naive Bayes of Giaretta et al. (2023,
Algorithms 2 and 3). Several iterations are their gossip (Algorithms 4 and 5,
`vertibayes_protocols.gossip`). The analyst carries its messages, because the sites of a star
session reach nobody else.

Security: each site's update is (eps, delta)-private by its own noise, against the analyst and all
other sites together; no site depends on another's noise, so that any number may be gone. What is
carried is computed from updates that are protected already: whoever carries, delays, drops or
forges it learns no more. A forged estimate, or a site that lies, spoils the model of whoever merges
it.
Leakage: the noisy updates, site by site, to the analyst; estimates to peers; who is there, to all.
`Sums` shows one noisy sum instead, with less noise.
Cost: two rounds for query and answer, and two messages of 8 k bytes per site and iteration, for k
statistics.

References
----------
L. Giaretta, T. Marchioro, E. Markatos, S. Girdzijauskas (2023). Towards a Realistic Decentralized
Naive Bayes with Differential Privacy. Algorithms 2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import MalformedMessageError, PartyGoneError
from vertibayes_mpc.integers import uniform_below
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.effects import Effects
from vertibayes_protocols.gossip import ADDS_UP_TO, Estimate, Floats, GossipNodes
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.sums.statistics import (
    StatisticsQuery,
    check_numbered,
    check_own_records,
    noisy_statistics,
)
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.query import At, Give
from vertibayes_protocols.roles import AnalystRole, SiteRole

MOST_ITERATIONS = 10_000
KEPT = 2  # of the estimates that arrive at a site in one iteration, the last that it uses


@dataclass(frozen=True, slots=True)
class Step(Message):
    """A site's estimate, for a peer: float64 of shape (k,), and its weight t."""

    kind: ClassVar[str] = "gossip step"
    to: str
    weight: int
    values: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class Delivered(Message):
    """The last estimates for a site: int64 of shape (m,) and float64 of shape (m, k), m <= 2."""

    kind: ClassVar[str] = "gossip delivered"
    weights: NDArray[np.int64]
    values: Floats = field(repr=False)


class ReleasedUpdates(NamedTuple):
    """What the analyst has of a query for updates."""

    updates: dict[Party, Floats]  # the noisy statistics of each site that answered
    estimates: dict[Party, Floats]  # of the mean update, as each site sent it in the last iteration
    sent: tuple[dict[Party, Party], ...]  # of each iteration, who sent to whom: estimates follow
    promise: SumPromise  # of each site's noise, for the records of that site


@dataclass(frozen=True, slots=True)
class Updates(StatisticsQuery[ReleasedUpdates, SumPromise]):
    """Ask for local updates; `parties` are the members that are not absent."""

    kind: ClassVar[str] = "updates"
    members: tuple[str, ...]  # all sites of the study
    iterations: int  # how often sites send their estimates; 1 collects the updates

    def __post_init__(self) -> None:
        privacy, members = self.terms.privacy, set(self.members)
        if privacy is None or not privacy.is_local:
            raise ValueError(
                "local updates show each site's statistics: the noise must be laplace or gaussian"
            )
        check_numbered(self.number, self.analyst)
        if not set(self.parties) <= members or len(members) < len(self.members):
            raise ValueError("the parties must be members, each once")
        if not self.parties:
            raise ValueError("all members are absent: at least one must answer")
        if not 1 <= self.iterations <= MOST_ITERATIONS:
            raise ValueError(
                f"iterations must be from 1 to {MOST_ITERATIONS}, got {self.iterations}"
            )
        if self.iterations > 1 and len(members) < 2:
            raise ValueError("gossip needs two members or more: use one iteration for a single one")

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        terms: Terms,
        members: Iterable[Party],
        iterations: int = 1,
        absent: Iterable[Party] = (),
    ) -> Updates:
        """Return the analyst's next query for updates of the members that are not absent."""
        terms.check()
        gone, all_members = set(absent), tuple(sorted(members))
        parties = tuple(party for party in all_members if party not in gone)
        number, key = analyst.next_number(), analyst.keys.public
        return cls(parties, number, key, terms, all_members, iterations)

    @property
    def promise(self) -> SumPromise:
        """What each site's noise promises for the records of the site."""
        accounting = self.terms.accounting
        assert accounting is not None  # there is noise
        return accounting.promise(accounting.noises([1]), members=1)

    @property
    def need(self) -> int:
        """How many must answer: the others may be gone."""
        return max(1, len(self.members) - self.terms.absent(len(self.members)))

    @property
    def most_weight(self) -> int:
        """A bound on the weight of an estimate: 1, 3, 7 and so on, then one more each."""
        return min((1 << self.iterations) - 1, ADDS_UP_TO + self.iterations)

    def plan(self, at: At) -> SumPromise:
        """Return what the noise of each site promises."""
        self.terms.check()
        self.check_asked(at, self.parties)
        return self.promise

    def effects(self, plan: SumPromise, at: At) -> Effects:
        """Return the effects: each site's own statistics leave with whole copies of noise."""
        return self._effects(plan, at, self.parties)

    def revealed(self, plan: SumPromise, at: At, result: ReleasedUpdates) -> Effects:
        """Return the effects for the sites whose updates have come."""
        return self._effects(plan, at, result.updates)

    def _effects(self, plan: SumPromise, at: At, sites: Iterable[Party]) -> Effects:
        is_own = at.party != at.analyst
        shown = f"statistics of {{}} of {'this site alone' if is_own else 'one site'}"
        about = (at.party,) if is_own else tuple(sites)
        return self.effects_of(at, plan, shown, about)

    def fits(self, site: SiteRole, plan: SumPromise) -> None:
        """Refuse records that do not fit the terms."""
        check_own_records(site, self.terms)

    def run_site(self, site: SiteRole, plan: SumPromise, give: Give) -> Program[None]:
        """Count the site's records, add its noise, and gossip."""
        terms = self.terms
        update = np.clip(noisy_statistics(site, terms, 1), terms.lowest, terms.highest)
        node = GossipNodes(update[None])
        others = [member for member in self.members if member != site.party]
        for iteration in range(self.iterations):
            weights, values = node.estimate()
            peer = others[uniform_below(len(others), site.randomness)] if others else site.party
            outbox = {site.analyst: Step(peer, int(weights[0]), values[0])}
            if iteration == self.iterations - 1:
                yield from send(outbox)
                return
            expect = {site.analyst: Expect(Delivered, KEPT * (terms.counts + 1) + 64)}
            message = (yield from exchange(outbox, expect))[site.analyst]
            arrived = _checked(self, Estimate(message.weights, message.values), site.analyst)
            node.receive(np.zeros(len(arrived.weights), np.intp), arrived)

    def run_analyst(self, analyst: AnalystRole, plan: SumPromise) -> Program[ReleasedUpdates]:
        """Carry estimates from site to site, and keep the first and the last."""
        counts, members = self.terms.counts, set(self.members)
        steps: dict[Party, Step] = {}
        updates: dict[Party, Floats] = {}
        sent: list[dict[Party, Party]] = []
        for iteration in range(self.iterations):
            outbox = _carried(steps, counts)
            expect = dict.fromkeys(steps or self.parties, Expect(Step, counts + 256))
            steps = yield from exchange(outbox, expect, need=1)
            _check_steps(self, steps)
            sent.append({sender: step.to for sender, step in steps.items()})
            if not iteration:
                updates = {sender: step.values for sender, step in steps.items()}
        if len(members) - len(steps) > self.terms.absent(len(members)):
            gone = tuple(sorted(members - set(steps)))
            raise PartyGoneError(gone, "gone: more than the agreed dropouts")
        last = {sender: step.values for sender, step in steps.items()}
        return ReleasedUpdates(updates, last, tuple(sent), plan)


def _checked(query: Updates, sent: Estimate, sender: Party) -> Estimate:
    """Return estimates that a peer has sent; blame it for any that no site can have computed."""
    terms, (weights, values) = query.terms, sent
    fits = weights.ndim == 1 and values.shape == (weights.size, terms.counts)
    possible = (weights >= 1) & (weights <= query.most_weight)
    if not (fits and weights.size <= KEPT and possible.all()):
        raise MalformedMessageError(sender, "sent estimates of another shape, or of wrong weights")
    if not ((values >= terms.lowest) & (values <= terms.highest)).all():  # nan is not either
        raise MalformedMessageError(sender, "sent estimates beyond what the terms allow")
    return sent


def _check_steps(query: Updates, steps: Mapping[Party, Step]) -> None:
    for sender, step in steps.items():
        weight = np.array([step.weight if 0 <= step.weight <= query.most_weight else 0])
        _ = _checked(query, Estimate(weight, step.values[None]), sender)
        if step.to not in query.members or (step.to == sender and len(query.members) > 1):
            raise MalformedMessageError(sender, f"sent an estimate to {step.to!r}, not a peer")


def _carried(steps: Mapping[Party, Step], counts: int) -> dict[Party, Delivered]:
    """Return what each site receives: the last estimates for it, in the order of their senders."""
    for_sites: dict[Party, list[Step]] = {party: [] for party in steps}
    for sender in sorted(steps):
        for_sites.get(steps[sender].to, []).append(steps[sender])
    return {party: _delivered(arrived[-KEPT:], counts) for party, arrived in for_sites.items()}


def _delivered(arrived: list[Step], counts: int) -> Delivered:
    values = np.array([step.values for step in arrived], np.float64).reshape(-1, counts)
    return Delivered(np.array([step.weight for step in arrived], np.int64), values)
