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
from vertibayes_protocols.accounting import Accounting
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.gossip import Estimate, Floats, GossipNodes
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.contributing import (
    check_number,
    check_opendp,
    check_own_records,
    check_shown,
    noisy_statistics,
    note_statistics,
)
from vertibayes_protocols.queries.statistics_query import StatisticsQuery
from vertibayes_protocols.queries.terms import Terms
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.session import Conversation

MOST_ITERATIONS = 10_000
KEPT = 2  # of the estimates that arrive at a site in one iteration, the last that it uses


@dataclass(frozen=True, slots=True)
class Step(Message):
    """A site's estimate, for a peer: float64 of shape (k,) after `steps` nodes."""

    kind: ClassVar[str] = "gossip step"
    to: str
    steps: int
    values: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class Delivered(Message):
    """The last estimates for a site: int64 of shape (m,) and float64 of shape (m, k), m <= 2."""

    kind: ClassVar[str] = "gossip delivered"
    steps: NDArray[np.int64]
    values: Floats = field(repr=False)


class ReleasedUpdates(NamedTuple):
    """What the analyst has of a query for updates.

    Attributes
    ----------
    updates : dict of Party to ndarray of shape (terms.counts,), dtype float64
        The noisy statistics of each site that answered.
    estimates : dict of Party to ndarray of shape (terms.counts,), dtype float64
        The estimate of the mean update that each site sent in the last iteration.
    sent : tuple of dict of Party to Party
        For each iteration, who sent to whom: with the updates, all estimates follow.
    promise : SumPromise
        Of each site's noise, for the records of that site.
    """

    updates: dict[Party, Floats]
    estimates: dict[Party, Floats]
    sent: tuple[dict[Party, Party], ...]
    promise: SumPromise


@dataclass(frozen=True, slots=True)
class Updates(StatisticsQuery[ReleasedUpdates]):
    """Ask for local updates; `parties` are the members that are not absent.

    The statistics and the noise are those of `StatisticsQuery`.

    Parameters
    ----------
    members : tuple of str
        All sites of the study.
    iterations : int
        How often sites send their estimates; 1 collects the updates.
    """

    kind: ClassVar[str] = "updates"
    members: tuple[str, ...]
    iterations: int

    @classmethod
    def of(
        cls,
        analyst: AnalystRole,
        terms: Terms,
        members: Iterable[Party],
        iterations: int = 1,
        absent: Iterable[Party] = (),
    ) -> Updates:
        """Return the analyst's next query for updates.

        Parameters
        ----------
        analyst : AnalystRole
            Numbers the query.
        terms : Terms
            What is counted, and with which noise: "laplace" or "gaussian".
        members : iterable of Party
            All sites of the study.
        iterations : int, default=1
            How often sites send their estimates.
        absent : iterable of Party, default=()
            The members that are not asked.

        Raises
        ------
        ValueError
            If the query cannot be run.
        """
        gone, all_members = set(absent), tuple(sorted(members))
        query = cls(
            parties=tuple(party for party in all_members if party not in gone),
            **cls.fields_of(analyst, terms),
            members=all_members,
            iterations=iterations,
        )
        _ = query.checked()
        return query

    def checked(self) -> tuple[Terms, Accounting]:
        """Return the terms and the noise.

        Raises
        ------
        ValueError
            If the query cannot be run: each site's own statistics need noise of the site alone.
        """
        terms = self.terms()
        if terms.accounting is None or not terms.accounting.privacy.is_local:
            raise ValueError(
                "local updates show each site's statistics: the noise must be laplace or gaussian"
            )
        self.check_number()
        members = set(self.members)
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
        return terms, terms.accounting

    @property
    def promise(self) -> SumPromise:
        """What each site's noise promises for the records of the site."""
        _, accounting = self.checked()
        return accounting.promise(accounting.noises([1]), members=1)


# ---- the site ------------------------------------------------------------------------------------


def _consider(site: SiteRole, query: Updates) -> None:
    with refusing(site.party):
        terms, accounting = query.checked()
    if site.party not in query.parties:
        raise QueryRefusedError(site.party, "it is not among the members that are asked")
    check_shown(site, query, terms)
    site.policy.check_budget(site.party, site.memory.spent, accounting.cost(1))
    check_opendp(site.party, accounting.privacy.noise)
    check_number(site, query)
    check_own_records(site, terms)


def _site(site: SiteRole, query: Updates) -> Program[None]:
    terms, accounting = query.checked()
    update = np.clip(noisy_statistics(site, terms, 1), terms.lowest, terms.highest)
    node = GossipNodes(update[None])
    site.memory.sum(query.number, accounting.cost(1), query.analyst)
    shown = "statistics of {} of this site alone, number {}"
    note_statistics(site.ledger, query, shown, query.promise, site.party, site.analyst)
    site.note_budget()
    others = [member for member in query.members if member != site.party]
    for iteration in range(query.iterations):
        steps, values = node.estimate()
        peer = others[uniform_below(len(others), site.randomness)] if others else site.party
        outbox = {site.analyst: Step(peer, int(steps[0]), values[0])}
        if iteration == query.iterations - 1:
            yield from send(outbox)
            return
        expect = {site.analyst: Expect(Delivered, KEPT * (terms.counts + 1) + 64)}
        message = (yield from exchange(outbox, expect))[site.analyst]
        arrived = _estimates(query, terms, message.steps, message.values, site.analyst)
        node.receive(np.zeros(len(arrived.steps), np.intp), arrived)


def _estimates(
    query: Updates, terms: Terms, steps: NDArray[np.int64], values: Floats, sender: Party
) -> Estimate:
    """Return estimates that a peer has sent; blame it for any that no site can have computed."""
    fits = steps.dtype == np.int64 and steps.ndim == 1 and len(steps) <= KEPT
    fits = fits and values.dtype == np.float64 and values.shape == (len(steps), terms.counts)
    if not fits or (steps < 1).any() or (steps > query.iterations).any():
        raise MalformedMessageError(sender, "sent estimates of another shape, or of wrong steps")
    if not ((values >= terms.lowest) & (values <= terms.highest)).all():  # nan is not either
        raise MalformedMessageError(sender, "sent estimates beyond what the terms allow")
    return Estimate(steps, values)


# ---- the analyst ---------------------------------------------------------------------------------


def _need(query: Updates) -> int:
    """Return how many must answer: the others may be gone."""
    terms, _ = query.checked()
    return max(1, len(query.members) - terms.absent(len(query.members)))


def _analyst(analyst: AnalystRole, query: Updates) -> Program[ReleasedUpdates]:
    terms, _ = query.checked()
    expected, promise = Expect(Step, terms.counts + 256), query.promise
    steps: dict[Party, Step] = {}
    updates: dict[Party, Floats] = {}
    sent: list[dict[Party, Party]] = []
    for iteration in range(query.iterations):
        outbox = _carried(steps, terms.counts)
        expect = dict.fromkeys(steps or query.parties, expected)
        steps = yield from exchange(outbox, expect, need=1)
        _check_steps(query, terms, steps)
        sent.append({sender: step.to for sender, step in steps.items()})
        if not iteration:
            updates = {sender: step.values for sender, step in steps.items()}
            _note(analyst, query, updates, promise)
    if len(query.members) - len(steps) > terms.absent(len(query.members)):
        gone = tuple(sorted(set(query.members) - set(steps)))
        raise PartyGoneError(gone, "gone: more than the agreed dropouts")
    return ReleasedUpdates(
        updates, {s: step.values for s, step in steps.items()}, tuple(sent), promise
    )


def _note(
    analyst: AnalystRole, query: Updates, sites: Iterable[Party], promise: SumPromise
) -> None:
    for site in sites:
        shown = "statistics of {} of one site, number {}"
        note_statistics(analyst.ledger, query, shown, promise, site, analyst.party)


def _check_steps(query: Updates, terms: Terms, steps: Mapping[Party, Step]) -> None:
    for sender, step in steps.items():
        count = np.array([step.steps if 0 <= step.steps <= MOST_ITERATIONS else 0])
        _ = _estimates(query, terms, count, step.values[None], sender)
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
    return Delivered(np.array([step.steps for step in arrived], np.int64), values)


UPDATES = Conversation(Updates, _analyst, _need).side(SiteRole, _consider, _site)
