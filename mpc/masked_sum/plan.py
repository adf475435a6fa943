"""What all parties of a sum know beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpc.masked_sum.parameters import Neighbourhood
from mpc.randomness import label
from mpc.ring import Elements, Ring
from mpc.rounds import Party


@dataclass(frozen=True)
class SumPlan:
    """A sum of one vector from each party.

    Parameters
    ----------
    name : bytes
        Names this sum: never used for another.
    signing_keys : mapping of Party to bytes
        The long-term Ed25519 public key of every party that is asked. They must reach each party
        by another way than the server of the sum.
    length : int
        Elements of each vector.
    bound : int
        The largest absolute value of an element.
    neighbourhood : Neighbourhood
        See `smallest_neighbourhood`.

    Raises
    ------
    ValueError
        If there are fewer than two parties, or two with one signing key, no ring for the sum, or
        the neighbourhood is none.
    """

    name: bytes
    signing_keys: Mapping[Party, bytes]
    length: int
    bound: int
    neighbourhood: Neighbourhood

    def __post_init__(self) -> None:
        count, (degree, threshold) = len(self.signing_keys), self.neighbourhood
        if count < 2:
            raise ValueError(f"{count} parties: the sum of two at least is wanted")
        if degree != count - 1 and not (degree % 2 == 0 and 2 <= degree < count):
            raise ValueError(
                f"{degree} neighbours of {count} parties: all others, or an even number"
            )
        if not (degree + 1) / 2 < threshold <= degree + 1:
            raise ValueError(
                f"threshold {threshold}: more than half of the {degree + 1} of a neighbourhood "
                "is wanted, or a server could have both seeds of a party"
            )
        if self.length < 0 or self.bound < 0 or 2 * self.largest >= 2**64:
            raise ValueError(f"length {self.length}, bound {self.bound}: no ring holds such sums")
        self._check_keys()

    def _check_keys(self) -> None:
        """Check that no party could sign for another: one would be two of a quorum."""
        owners: dict[bytes, Party] = {}
        for party in self.parties:
            first = owners.setdefault(self.signing_keys[party], party)
            if first != party:
                raise ValueError(f"{first} and {party} have one signing key: each needs its own")

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
        """All who are asked, sorted: a party's place is its place here."""
        return tuple(sorted(self.signing_keys))

    def place(self, party: Party) -> int:
        """Return a party's place."""
        return self.parties.index(party)

    def parties_at(self, places: NDArray[np.integer]) -> tuple[Party, ...]:
        """Return the parties at some places."""
        return tuple(self.parties[place] for place in places)

    @property
    def quorum(self) -> int:
        """How many must be left after each round."""
        return self.neighbourhood.quorum(len(self.signing_keys))

    @cached_property
    def context(self) -> bytes:
        """A digest of all of this: in every message, signature and label."""
        parts: list[bytes | int] = [self.name, self.length, self.bound, *self.neighbourhood]
        for party in self.parties:
            parts += [party.encode(), self.signing_keys[party]]
        return label("masked sum", *parts)

    def encode(self, values: NDArray[np.integer]) -> Elements:
        """Return a party's vector as elements of the ring.

        Raises
        ------
        ValueError
            If it has another shape, is not of integers, or exceeds the bound: the sum could wrap.
        """
        if values.shape != (self.length,) or not np.issubdtype(values.dtype, np.integer):
            raise ValueError(
                f"an array of shape {values.shape} and type {values.dtype}: "
                f"({self.length},) and integers are wanted"
            )
        if values.size and not -self.bound <= int(values.min()) <= int(values.max()) <= self.bound:
            raise ValueError(f"a value beyond the bound: -{self.bound} to {self.bound} is wanted")
        return values.astype(self.ring.dtype)

    def decode(self, elements: Elements) -> NDArray[np.int64]:
        """Return elements of the ring as the integers nearest to zero that they stand for."""
        return elements.view(f"i{self.ring.dtype.itemsize}").astype(np.int64)
