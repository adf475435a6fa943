"""The members of a sum that is asked again and again: who they are, and who shares keys with whom.

The analyst keeps this and announces it in each query; sites check what concerns them.
"""

from __future__ import annotations

from collections.abc import Iterable

from vertibayes_mpc.membership import Estimates, Groups
from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.queries.sums.aggregations import SUMMED_VIA, least_block
from vertibayes_protocols.queries.sums.terms import Terms


class Members:
    """Parties that join and leave a sum."""

    def __init__(
        self,
        terms: Terms,
        parties: Iterable[Party],
        via: str = "masked",
        randomness: Randomness | None = None,
    ) -> None:
        names = sorted(parties)
        if via not in SUMMED_VIA:
            raise ValueError(f"via = {via!r}: it must be {' or '.join(SUMMED_VIA)}")
        terms.check()
        self.terms, self.via = terms, via
        self._check(names)
        self._estimates = Estimates(names)
        source = randomness or SystemRandomness()
        self._groups = Groups(names, source, least_block(terms)) if via == "additive" else None

    @property
    def estimates(self) -> dict[Party, int]:
        """u_k of each member."""
        return self._estimates.values

    @property
    def parties(self) -> tuple[Party, ...]:
        """The members, sorted."""
        return tuple(sorted(self.estimates))

    @property
    def blocks(self) -> tuple[tuple[Party, ...], ...]:
        """The members in the blocks of their groups; in one block if sums are masked."""
        if self._groups is None:
            return (self.parties,)
        return tuple(tuple(sorted(block)) for block in self._groups.blocks)

    def join(self, party: Party) -> frozenset[Party]:
        """Take a party in; return whose neighbours change, itself included."""
        if party in self.estimates:
            raise ValueError(f"{party} is a member already")
        self._check([*self.parties, party])
        self._estimates.join(party)
        return frozenset((party,)) if self._groups is None else self._groups.join(party)

    def leave(self, party: Party) -> frozenset[Party]:
        """Let a party go; return whose neighbours change."""
        if party not in self.estimates:
            raise ValueError(f"{party} is not a member")
        self._check([member for member in self.parties if member != party])
        self._estimates.leave(party)
        return frozenset() if self._groups is None else self._groups.leave(party)

    def check_absent(self, absent: Iterable[Party]) -> None:
        """Refuse to do without parties that are not members, or without more than agreed."""
        gone, n = set(absent), len(self.parties)
        if strangers := sorted(gone - set(self.parties)):
            raise ValueError(f"{strangers[0]} is not a member, and cannot be absent")
        if n - len(gone) < 2:
            raise ValueError(f"{n - len(gone)} of {n} parties are there: a sum needs at least two")
        if len(gone) > (most := self.terms.absent(n)):
            raise ValueError(
                f"{len(gone)} of {n} parties are absent: at most {most} may be "
                f"(dropouts = {self.terms.dropouts})"
            )

    def _check(self, parties: list[Party]) -> None:
        most = self.terms.most_parties
        if not 2 <= len(parties) <= most:
            raise ValueError(f"{len(parties)} parties: there must be from 2 to {most}")
        if self.terms.accounting:
            self.terms.accounting.honest(len(parties))
