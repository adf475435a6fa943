"""The labelled streams that one site shares with the dealer: masks, and its parts of corrections.

Both the site and the dealer expand them from the key and the public plan; nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vertibayes_mpc.commitments import Commitments, Selection, Term
from vertibayes_mpc.commitments.columns import column_mask
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements


@dataclass(frozen=True)
class Masks:
    """The streams of one site, for the records of one selection."""

    commitments: Commitments
    key: Stream
    selection: Selection
    query: bytes = b""

    def committed(self, place: int, block: int) -> Elements:
        """Return the mask of an operand's indicators in a committed block: shape (width, rows)."""
        form = self.commitments.indicators(place)
        return column_mask(self.commitments, self.key, form, place, block)

    def of(self, term: Term, block: int) -> Elements:
        """Return the mask of a term in a block of the selection: shape (width, rows)."""
        if len(term) == 1:
            return self.selection.gather(lambda at: self.committed(term[0], at), block)
        return self._extension("remask", term, block)

    def correction(self, term: Term, block: int) -> Elements:
        """Return D_s, the site's part of the correction of an extension: shape (width, rows)."""
        return self._extension("extend", term, block)

    def table_correction(self, term: Term) -> Elements:
        """Return C_s, the site's part of the correction of a term's products with all columns.

        Its shape is (width of the term, columns of the study).
        """
        shape = self.commitments.width(term), int(self.commitments.offsets[-1])
        return self.key.elements(self.commitments.ring, self._label("table", term), shape)

    def _extension(self, purpose: str, term: Term, block: int) -> Elements:
        width = self.commitments.width(term)
        shape = (width, self.selection.rows(block))
        start = block * self.commitments.block_rows * width
        return self.key.elements(self.commitments.ring, self._label(purpose, term), shape, start)

    def _label(self, purpose: str, term: Term) -> bytes:
        return label(purpose, self.query, np.array(term, "<u4").tobytes())
