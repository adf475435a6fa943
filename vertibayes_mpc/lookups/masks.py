"""The labelled streams that one site shares with the dealer, for one slice of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from vertibayes_mpc.labelled import Piece
from vertibayes_mpc.lookups.plan import LookupPlan, Slice
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements


@dataclass(frozen=True)
class Masks:
    """The streams of a slice under one key."""

    key: Stream
    plan: LookupPlan
    part: Slice

    def rotation(self) -> Elements:
        """Return r, the mask of the counts: shape (counts,)."""
        return self.elements("rotation", Piece(self.plan.counts, (self.part.counts,)))

    def left(self) -> Elements:
        """Return x, the masks of the left factors: shape (plan.width, counts)."""
        return self.elements("left", self._factors)

    def right(self) -> Elements:
        """Return y, the masks of the right factors: shape (plan.width, counts)."""
        return self.elements("right", self._factors)

    def words(self, purpose: str) -> Elements:
        """Return an element of the ring of results for each lookup: shape (counts,)."""
        return self.elements(purpose, Piece(self.plan.ring, (self.part.counts,)))

    @property
    def _factors(self) -> Piece:
        return Piece(self.plan.ring, (self.plan.width, self.part.counts))

    def elements(self, purpose: str, piece: Piece) -> Elements:
        """Return the stream of a purpose, in a ring and shape."""
        name = label("lookup", self.plan.name, self.part.batch, self.part.start, purpose)
        return self.key.elements(piece.ring, name, piece.shape)
