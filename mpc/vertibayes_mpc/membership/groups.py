"""Interleaved groups: who shares a secret with whom, so that a join concerns few neighbours.

    blocks    B_0, B_1, .., B_(m-1) in a ring, least .. 2 least - 1 members each (a single block may
              have fewer)
    group i   B_i and B_(i+1): each party belongs to two groups; all in one group are neighbours

A block that grows to 2 least is split; a block that shrinks below least joins the next. A new party
is put into a random block, and blocks are split at random, so that nobody can choose whom to
surround. All of this is public.
"""

from __future__ import annotations

from collections.abc import Iterable

from vertibayes_mpc.integers import uniform_below
from vertibayes_mpc.randomness import Randomness
from vertibayes_mpc.rounds import Party

LEAST = 20


class Groups:
    """The ring of blocks: kept by whoever announces joins and leaves.

    There are at least two parties, each once; their order is drawn from `randomness`. `least` is
    the least size of a block, at least 3: coalitions of fewer than twice as many cannot separate
    the other parties, if the aggregator's rolls are true. Anything else is a ValueError.

    >>> from vertibayes_mpc.randomness import SystemRandomness
    >>> groups = Groups("abcdefghijkl", SystemRandomness(), least=3)
    >>> [len(block) for block in groups.blocks], len(groups.neighbours("a"))
    ([3, 3, 3, 3], 8)
    >>> len(groups.join("m"))  # the newcomer and all whose keys change
    10
    """

    def __init__(
        self, parties: Iterable[Party], randomness: Randomness, least: int = LEAST
    ) -> None:
        names = sorted(parties)
        if len(names) < 2 or len(set(names)) != len(names):
            raise ValueError("there must be at least two parties, each once")
        if least < 3:
            raise ValueError(f"least must be at least 3, got {least}")
        self.least, self.randomness = least, randomness
        placed, many = self._shuffled(names), max(1, len(names) // least)
        self._blocks = [placed[i::many] for i in range(many)]
        self._place = {party: i for i, block in enumerate(self._blocks) for party in block}

    @property
    def parties(self) -> tuple[Party, ...]:
        """All members, sorted."""
        return tuple(sorted(self._place))

    @property
    def blocks(self) -> tuple[frozenset[Party], ...]:
        """The blocks, in the order of the ring."""
        return tuple(map(frozenset, self._blocks))

    def neighbourhood(self, party: Party) -> tuple[frozenset[Party], ...]:
        """Return a member's own block and those beside it."""
        if party not in self._place:
            raise ValueError(f"{party} is not a member")
        around = self._around(self._place[party], 1)
        return tuple(frozenset(self._blocks[i]) for i in around)

    def neighbours(self, party: Party) -> frozenset[Party]:
        """Return all with whom a member shares a secret, except the aggregator."""
        return frozenset[Party]().union(*self.neighbourhood(party)) - {party}

    def join(self, party: Party) -> frozenset[Party]:
        """Take a party in; return whose keys change: it, and all whose neighbours change."""
        if party in self._place:
            raise ValueError(f"{party} is a member already")
        i = uniform_below(len(self._blocks), self.randomness)
        before = self._near(i)
        self._blocks[i].append(party)
        self._settle(i)
        return self._changed(before) | {party}

    def leave(self, party: Party) -> frozenset[Party]:
        """Let a member go; return whose keys change: all whose neighbours change."""
        if party not in self._place or len(self._place) <= 2:
            raise ValueError(f"{party} is not a member, or one of the last two")
        i = self._place[party]
        before = self._near(i)
        self._blocks[i].remove(party)
        del before[party]
        self._settle(i)
        return self._changed(before)

    def _settle(self, i: int) -> None:
        """Join a small block with the next; split a large block at random."""
        if len(self._blocks[i]) < self.least and len(self._blocks) > 1:
            small = self._blocks.pop(i)
            i %= len(self._blocks)
            self._blocks[i] += small
        if len(self._blocks[i]) >= 2 * self.least:
            members = self._shuffled(self._blocks[i])
            half = len(members) // 2
            self._blocks[i : i + 1] = [members[:half], members[half:]]
        self._place = {party: i for i, block in enumerate(self._blocks) for party in block}

    def _around(self, i: int, distance: int) -> list[int]:
        """Return the places of the blocks within a distance along the ring, each once."""
        m = len(self._blocks)
        return sorted({(i + d) % m for d in range(-distance, distance + 1)})

    def _near(self, i: int) -> dict[Party, frozenset[Party]]:
        """Return the neighbours of all whose neighbours a change of block i can change."""
        members = [party for j in self._around(i, 3) for party in self._blocks[j]]
        return {party: self.neighbours(party) for party in members}

    def _changed(self, before: dict[Party, frozenset[Party]]) -> frozenset[Party]:
        return frozenset(p for p, neighbours in before.items() if neighbours != self.neighbours(p))

    def _shuffled(self, parties: list[Party]) -> list[Party]:
        """Return the parties in random order (Fisher and Yates)."""
        order = list(parties)
        for last in range(len(order) - 1, 0, -1):
            other = uniform_below(last + 1, self.randomness)
            order[last], order[other] = order[other], order[last]
        return order
