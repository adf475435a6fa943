"""Two ways to sum over parties that come and go: the additive scheme, or masked sums.

    via="additive"    pair keys in groups; a roll and one message (`vertibayes_mpc.membership`)
    via="masked"      five rounds, fresh masks, drop-outs at any time (`vertibayes_mpc.masked_sum`)

The heads of both modules say what they cost and whom they trust. Every key, mask and label of a sum
follows from the digest of its query: parties that were sent different queries share none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_mpc.aggregation import Ciphertexts, Counts
from vertibayes_mpc.errors import FaultyPartyError
from vertibayes_mpc.masked_sum import (
    Neighbourhood,
    SumPlan,
    compromise_probability,
    failure_probability,
    smallest_neighbourhood,
)
from vertibayes_mpc.membership import Member
from vertibayes_mpc.membership.groups import LEAST
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.sums.terms import Terms

Blocks: TypeAlias = Sequence[Sequence[Party]]

SUMMED_VIA = ("additive", "masked")
ALL_TO_ALL = 100  # parties at most that share seeds with all others, where masks are summed
FAILURE = 2.0**-20  # of a masked sum, by drop-outs at random as many as agreed
_parameters = lru_cache(maxsize=4)(Parameters)  # to check a modulus takes 7 ms


class Summation(NamedTuple):
    """One sum: its terms, its members, and what its noise promises."""

    terms: Terms
    digest: bytes  # of its query
    number: int
    blocks: Blocks  # the members in the blocks of their groups
    members: tuple[Party, ...]  # sorted
    promise: SumPromise | None = None  # None for exact sums

    @property
    def most_absent(self) -> int:
        """How many members may be missing."""
        return self.terms.absent(len(self.members))

    def neighbourhood(self, party: Party) -> tuple[frozenset[Party], ...]:
        """Return a member's own block and those beside it on the ring."""
        place, count = next(i for i, b in enumerate(self.blocks) if party in b), len(self.blocks)
        around = sorted({(place + step) % count for step in (-1, 0, 1)})
        return tuple(frozenset(self.blocks[i]) for i in around)


def least_block(terms: Terms) -> int:
    """Return the fewest members of a block: so few cannot part the others, wherever they sit.

    Colluding and absent members together are fewer than two whole blocks.
    """
    most = terms.most_parties
    return max(LEAST, (terms.colluding(most) + terms.absent(most)) // 2 + 1)


# ---- the additive scheme -------------------------------------------------------------------------


class CarefulMember(Member):
    """A member that answers no roll which calls more absent than the terms allow.

    Otherwise an aggregator could call away those whose noise the promise needs.
    """

    most_absent = 0

    def encrypt(self, counts: Counts, time: int, absent: Collection[Party] = ()) -> Ciphertexts:
        """Encrypt as `Member`."""
        if len(set(absent)) > self.most_absent:
            reason = f"calls {len(set(absent))} absent, at most {self.most_absent} are agreed"
            raise FaultyPartyError(self.aggregator, reason)
        return super().encrypt(counts, time, absent)


def parameters_of(summation: Summation, modulus: int) -> Parameters:
    """Return the additive scheme's parameters for one sum."""
    terms = summation.terms
    return _parameters(modulus, summation.digest, terms.most_parties, terms.lowest, terms.highest)


# ---- masked sums ---------------------------------------------------------------------------------


def plan_of(summation: Summation, signing_keys: Mapping[Party, bytes]) -> SumPlan:
    """Return the plan of a masked sum, from the members' pinned signing keys."""
    terms, members = summation.terms, summation.members
    n, bound = len(members), max(-terms.lowest, terms.highest)
    near = neighbourhood_of(n, terms.colluding(n), terms.absent(n))
    keys = {party: signing_keys[party] for party in members}
    return SumPlan(summation.digest, keys, terms.counts, bound, near)


def neighbourhood_of(parties: int, corrupt: int, dropped: int) -> Neighbourhood:
    """Return how many neighbours each party of a masked sum has, and the threshold."""
    return _neighbourhood(parties, corrupt, dropped, ALL_TO_ALL)


@cache
def _neighbourhood(parties: int, corrupt: int, dropped: int, complete: int) -> Neighbourhood:
    """Return a neighbourhood, with as high a threshold as the agreed drop-outs leave.

    The higher it is, the fewer can an aggregator call away with their noise. In the complete graph,
    that is as few as may be missing; so it is taken up to `complete` parties, for more bytes.
    """
    near = Neighbourhood(parties - 1, parties - dropped)
    if parties > complete or compromise_probability(parties, near, corrupt):
        near = smallest_neighbourhood(parties, corrupt, dropped)
    if not dropped:
        return near._replace(threshold=near.degree + 1)
    while near.threshold <= near.degree:
        higher = near._replace(threshold=near.threshold + 1)
        if failure_probability(parties, higher, dropped) > FAILURE:
            break
        near = higher
    return near
