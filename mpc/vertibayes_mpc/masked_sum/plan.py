"""What all parties of a sum know before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.masked_sum.parameters import Neighbourhood
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party


@dataclass(frozen=True)
class SumPlan:
    """A sum of one vector from each party.

    A ValueError says that there are fewer than two parties, two parties have one signing key, no
    ring holds the sum, or the neighbourhood does not fit the number of parties.
    """

    name: bytes  # names this sum; no other sum may have the name
    signing_keys: Mapping[Party, bytes]  # long-term, Ed25519; not from the aggregator
    length: int  # of each vector
    bound: int  # the largest absolute value of an element
    neighbourhood: Neighbourhood  # from `smallest_neighbourhood`

    def __post_init__(self) -> None:
        count, (degree, threshold) = len(self.signing_keys), self.neighbourhood
        if count < 2:
            raise ValueError(f"a sum must have at least two parties, got {count}")
        if degree != count - 1 and not (degree % 2 == 0 and 2 <= degree < count):
            raise ValueError(f"degree must be {count - 1} or an even number below it, got {degree}")
        if not (degree + 1) / 2 < threshold <= degree + 1:
            raise ValueError(
                f"threshold must be more than half of the {degree + 1} of a neighbourhood and at "
                f"most all, or the aggregator could have both seeds of a party, got {threshold}"
            )
        if self.length < 0 or self.bound < 0 or 2 * self.largest >= 2**64:
            raise ValueError(f"no ring holds sums of length {self.length} and bound {self.bound}")
        self._check_keys()

    def _check_keys(self) -> None:
        """Check that no party can sign for another: it would count twice in a quorum."""
        owners: dict[bytes, Party] = {}
        for party in self.parties:
            first = owners.setdefault(self.signing_keys[party], party)
            if first != party:
                raise ValueError(f"{first} and {party} have the same signing key")

    @property
    def largest(self) -> int:
        """The largest absolute value of an element of the sum."""
        return len(self.signing_keys) * self.bound

    @cached_property
    def ring(self) -> Ring:
        """The smallest ring in which no sum wraps."""
        return next(Ring(bits) for bits in (16, 32, 64) if 2 * self.largest < 2**bits)

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """All parties, sorted: a party's place is its index here."""
        return tuple(sorted(self.signing_keys))

    def place(self, party: Party) -> int:
        """Return a party's place."""
        return self.parties.index(party)

    def parties_at(self, places: NDArray[np.integer]) -> tuple[Party, ...]:
        """Return the parties at some places."""
        return tuple(self.parties[place] for place in places)

    @property
    def quorum(self) -> int:
        """The number of parties that must be left after each round."""
        return self.neighbourhood.quorum(len(self.signing_keys))

    @cached_property
    def label(self) -> bytes:
        """A digest of the plan: in every message, signature and label."""
        parts: list[bytes | int] = [self.name, self.length, self.bound, *self.neighbourhood]
        for party in self.parties:
            parts += [party.encode(), self.signing_keys[party]]
        return label("masked sum", *parts)

    def encode(self, values: NDArray[np.integer]) -> Elements:
        """Return a party's vector as elements of the ring; a ValueError if the sum could wrap."""
        if values.shape != (self.length,) or not np.issubdtype(values.dtype, np.integer):
            given = f"shape {values.shape} and type {values.dtype}"
            raise ValueError(f"a vector must be integers of shape ({self.length},), got {given}")
        if values.size and not -self.bound <= int(values.min()) <= int(values.max()) <= self.bound:
            raise ValueError(f"values must be from -{self.bound} to {self.bound} (the bound)")
        return values.astype(self.ring.dtype)

    def decode(self, elements: Elements) -> NDArray[np.int64]:
        """Return the integers nearest to zero that elements of the ring represent."""
        return elements.view(f"i{self.ring.dtype.itemsize}").astype(np.int64)
