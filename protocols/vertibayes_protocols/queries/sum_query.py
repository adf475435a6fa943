"""The query for sums (`queries.sums`): what an analyst writes into it, and its checks.

A query is encoded once, for the digest that is in all keys and labels of its sum. All sides read
the sum, and what its noise promises, from the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Expect, Party
from vertibayes_protocols import wire
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.aggregations import (
    SUMMED_VIA,
    Summation,
    least_block,
    neighbourhood_of,
)
from vertibayes_protocols.queries.members import Members
from vertibayes_protocols.queries.statistics_query import StatisticsQuery
from vertibayes_protocols.queries.terms import Terms, Values
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import QUERY_CELLS


class ReleasedSums(NamedTuple):
    """What the analyst has of one release.

    Attributes
    ----------
    sums : ndarray of shape (terms.counts,), dtype int64
        As they were decrypted, not clamped.
    parties : tuple of Party
        Whose counts are in them.
    promise : SumPromise or None
        Of the noise; None for exact sums.
    """

    sums: Values
    parties: tuple[Party, ...]
    promise: SumPromise | None


@dataclass(frozen=True, slots=True)
class Sums(StatisticsQuery[ReleasedSums]):
    """Ask for sums of statistics; `parties` are the members that are not absent.

    The statistics and the noise are those of `StatisticsQuery`.

    Parameters
    ----------
    via : {"additive", "masked"}
    blocks : tuple of tuple of str
        All members, in the blocks of their groups.
    estimates : ndarray, dtype uint32
        u_k of each member, in the order of `blocks`.
    absent : tuple of str
        The members that are not asked.
    """

    kind: ClassVar[str] = "sums"
    via: str
    blocks: tuple[tuple[str, ...], ...]
    estimates: NDArray[np.uint32]
    absent: tuple[str, ...]

    @classmethod
    def of(
        cls, analyst: AnalystRole, terms: Terms, members: Members, absent: Iterable[Party] = ()
    ) -> Sums:
        """Return the analyst's next query for sums.

        Parameters
        ----------
        analyst : AnalystRole
            Numbers the query.
        terms : Terms
            What is summed.
        members : Members
            Over whom, and which way.
        absent : iterable of Party, default=()
            The members that are not asked.
        """
        gone, blocks = set(absent), members.blocks
        return cls(
            parties=tuple(party for party in members.parties if party not in gone),
            **cls.fields_of(analyst, terms),
            via=members.via,
            blocks=blocks,
            estimates=np.array([members.estimates[p] for b in blocks for p in b], np.uint32),
            absent=tuple(sorted(gone)),
        )

    def summation(self) -> Summation:
        """Return the sum that is asked for; its digest does not depend on who is asked at last.

        Raises
        ------
        ValueError
            If the terms, the members or the way are not those of a sum.
        """
        return _summation(wire.encode(replace(self, parties=())))

    def _checked(self, sum_: Summation) -> Summation:
        """Return the sum if its members and its way are those of a sum; as `summation`."""
        terms, members = sum_.terms, sum_.members
        if self.via not in SUMMED_VIA:
            raise ValueError(f"via {self.via!r}: it must be {' or '.join(SUMMED_VIA)}")
        if not terms.counts:  # which finds the undeclared variables
            raise ValueError("no statistics are asked for")
        self.check_number()
        if not 2 <= len(set(members)) == len(members) <= terms.most_parties:
            raise ValueError(
                f"{len(members)} members: there must be from 2 to {terms.most_parties}, each once"
            )
        least = least_block(terms)
        if self.via == "additive" and len(self.blocks) > 1 and min(map(len, self.blocks)) < least:
            raise ValueError(f"a block of the members has fewer than {least} of them")
        is_whole = self.estimates.dtype == np.uint32 and self.estimates.shape == (len(members),)
        if not is_whole or (self.estimates > len(members)).any():
            raise ValueError("an estimate of the number of members is above their number")
        if len(set(self.absent)) < len(self.absent):
            raise ValueError("a member appears twice among the absent; name each member once")
        if not set(self.absent) <= set(members) or len(self.absent) > sum_.most_absent:
            raise ValueError(
                f"{len(self.absent)} members are absent, at most {sum_.most_absent} are agreed"
            )
        if len(members) - len(self.absent) < 2:
            raise ValueError("fewer than two members are present: a sum over one is its count")
        _ = _fewest(self, sum_)  # masked sums over too few are refused here
        return sum_

    def estimate(self, party: Party) -> int:
        """Return a member's estimate of the number of members."""
        order = [name for block in self.blocks for name in block]
        return int(self.estimates[order.index(party)])


# All parties of a process have the same query, and a party asks for its sum more than once.
@lru_cache(maxsize=4)
def _summation(encoded: bytes) -> Summation:
    query = wire.decode(encoded, "the query", Expect(Sums, QUERY_CELLS))
    digest = label("sums", encoded)
    members = tuple(sorted(party for block in query.blocks for party in block))
    sum_ = query._checked(Summation(query.terms(), digest, query.number, query.blocks, members))
    return sum_._replace(promise=promise_over(query, sum_, set(members) - set(query.absent)))


def promise_over(query: Sums, sum_: Summation, parties: Collection[Party]) -> SumPromise | None:
    """Return what the noise of some parties promises; None without noise.

    Parameters
    ----------
    query, sum_ : Sums, Summation
        The sum.
    parties : collection of Party
        Whose counts and noise are in it: all who were asked, before anybody drops out.
    """
    accounting, n = sum_.terms.accounting, len(sum_.members)
    if accounting is None:
        return None
    order = [party for block in query.blocks for party in block]
    pairs = zip(order, query.estimates.tolist(), strict=True)
    noises = accounting.noises([u for party, u in pairs if party in parties])
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
