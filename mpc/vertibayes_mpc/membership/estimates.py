"""Each party's estimate of the number of parties: within a factor of two, two changes a step.

    at first    floor(n/2) + 1, .., n, each twice; the first once if n is odd
    join of k   n' = n + 1;  u_k = n';  the smallest u_j becomes n'
    leave of k  n' = n - 1;  one u_j = n' + 1 takes u_k, or floor(n'/2) + 1 if u_k = n' + 1;
                any other u_j = n' + 1 becomes floor(n'/2) + 1

Always n/2 < u_k <= n (Huai et al. 2015, Algorithm 1; its printed rule for leaving has two readings,
and both keep a u_j = n' + 1). A party dilutes its noise by its u_k, not by n:
`vertibayes_mpc.noise.DilutedGeometric(n=u_k)`. The expected number of copies of noise in a sum is
then between ln(1/delta) / gamma and twice that, if no beta reaches 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from vertibayes_mpc.rounds import Party


class Estimates:
    """The dealer's record of all u_k, `values`, of some parties, each once: public numbers.

    >>> estimates = Estimates("abcd")
    >>> estimates.values
    {'a': 3, 'b': 3, 'c': 4, 'd': 4}
    >>> estimates.join("e"), estimates.leave("c")
    ({'e': 5, 'a': 5}, {'a': 4, 'e': 3})
    """

    def __init__(self, parties: Iterable[Party]) -> None:
        names = list(parties)
        if len(set(names)) != len(names):
            raise ValueError("a party appears twice")
        n = len(names)
        first = [n // 2 + 1 + (i + n % 2) // 2 for i in range(n)]
        self.values = dict(zip(names, first, strict=True))

    def join(self, party: Party) -> dict[Party, int]:
        """Take a party in; return the u that change: at most two, the newcomer's among them."""
        if party in self.values:
            raise ValueError(f"{party} is a member already")
        n = len(self.values) + 1
        self.values[party] = n
        fewest = min(self.values, key=self.values.__getitem__)
        return self._set({party: n, fewest: n})

    def leave(self, party: Party) -> dict[Party, int]:
        """Let a member go; return the u that change: at most two."""
        if party not in self.values:
            raise ValueError(f"{party} is not a member")
        left = self.values.pop(party)
        n = len(self.values)
        lowest = n // 2 + 1
        beyond = [member for member, u in self.values.items() if u == n + 1]
        changes = dict.fromkeys(beyond, lowest)
        if beyond and left <= n:
            changes[beyond[0]] = left
        return self._set(changes)

    def _set(self, changes: dict[Party, int]) -> dict[Party, int]:
        self.values |= changes
        return changes


def tolerable_dropouts(members: int, dishonest: int, gamma: float) -> int:
    """Return how many honest members may drop out of a sum that was diluted with `gamma`.

    `gamma` is the share of honest parties for which the noise was diluted.

    >>> tolerable_dropouts(100, dishonest=30, gamma=0.5)
    20
    """
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be above 0 and at most 1, got {gamma}")
    spare = members - dishonest - math.ceil(Fraction(str(gamma)) * members)
    if spare < 0:
        raise ValueError(f"with {dishonest} of {members} dishonest, fewer than {gamma} are honest")
    return spare
