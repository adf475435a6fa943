"""From choices to winners: share tables, look up logarithms in them, add up scores, take the best.

sites, dealer    shares of the cells of all tables          vertibayes_mpc.masked_tables
sites, dealer    shares of logarithms of the counts         vertibayes_mpc.lookups
each site        its shares of the candidates' values       sums
sites, dealer    the winner of each set                     vertibayes_mpc.argmax
sites, dealer    whether the errors of the lookups are too small to change it

Labels name the query and the commitments, whose ids are new in each session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax import ArgmaxPlan, StarPlan, argmax, deal_argmax, exceed, open_argmax
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.lookups import LookupPlan, deal_lookups
from vertibayes_mpc.masked_tables import Plan, deal_tables, share_tables
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.queries.choices.lookups import ChoiceLookups
from vertibayes_protocols.queries.tables.counting import plan_products
from vertibayes_protocols.queries.tables.held_counts import look_up_held
from vertibayes_protocols.variables import Rows


@dataclass(frozen=True)
class ChoicePlan:
    """All that the parties do for one query."""

    needed: ChoiceLookups  # what is looked up
    joined: Joined  # the study, and its commitments
    rows: Rows  # the records that are counted
    missing: bool  # whether a missing value is a state
    number: int  # the number of the query in the study
    query: bytes  # a digest of the query

    @cached_property
    def label(self) -> bytes:
        """Names the query and the commitments, whose ids are new in each session."""
        return label("choose", self.joined.commitments.label, self.query)

    @cached_property
    def products(self) -> Plan:
        """The plan of the tables."""
        joined, groups = self.joined, self.needed.tables.groups
        selection = joined.selection(self.rows)
        return plan_products(
            joined.study, joined.commitments, groups, selection, self.missing, self.number
        )

    @cached_property
    def lookups(self) -> LookupPlan:
        """The plan of the lookups."""
        return self.needed.lookups(self.label)

    @cached_property
    def argmax(self) -> ArgmaxPlan:
        """The plan of the argmax; the analyst, who does not know the ids, checks the query."""
        return self.needed.argmax(self.label, self.query)

    @cached_property
    def star(self) -> StarPlan:
        """The plan that says which winners are those of exact scores too."""
        return self.argmax.star(self.needed.margin)


class Chosen(NamedTuple):
    """What the analyst and all sites learn: of each set the winner, and whether it is decided."""

    won: tuple[int, ...]
    decided: tuple[bool, ...]


# ---- programs ------------------------------------------------------------------------------------


def choose(site: Holder, plan: ChoicePlan, analyst: Party) -> Program[Chosen]:
    """Return the winners: a site's side."""
    site.begin("choose", plan.number)
    shares = np.zeros(0, site.commitments.ring.dtype)
    if site.party in plan.products.parties:
        shares = yield from share_tables(site, plan.products)
    sums = yield from _sums(site, plan, shares)
    values = plan.needed.values(site.party, sums)
    winners = yield from argmax(site, plan.argmax, values, analyst)
    exceeds = yield from exceed(site, plan.star, values, winners, analyst)
    return _chosen(winners, exceeds)


def open_choices(plan: ChoicePlan) -> Program[Chosen]:
    """Return the winners: the analyst's side."""
    winners = yield from open_argmax(plan.argmax)
    return _chosen(winners, (yield from open_argmax(plan.star)))


def _chosen(winners: NDArray[np.intp], exceeds: NDArray[np.integer | np.bool_]) -> Chosen:
    return Chosen(tuple(winners.tolist()), tuple(map(bool, exceeds)))


def _sums(site: Holder, plan: ChoicePlan, shares: Elements) -> Program[Elements]:
    """Return this site's shares of the sums of all lookups."""
    mine = {held: c for held, c in plan.needed.counts.items() if site.party in held}
    counts = {held: c.of(shares) for held, c in mine.items()}
    known = partial(plan.needed.alone, site.party)
    logarithms = yield from look_up_held(site, plan.lookups, counts, known)
    sums = np.zeros(len(plan.needed.tables.lookups), np.uint64)
    for held, of_counts in logarithms.items():
        sums[mine[held].lookups] = np.add.reduceat(of_counts, mine[held].begins)
    return sums


def deal_choices(keys: Mapping[Party, Stream], plan: ChoicePlan) -> Program[None]:
    """Deal the randomness that a plan needs: the dealer's side."""
    yield from deal_tables(keys, plan.products)
    yield from deal_lookups(keys, plan.lookups)
    yield from deal_argmax(keys, plan.argmax)
    yield from deal_argmax(keys, plan.star)
