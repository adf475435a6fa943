"""The labelled streams that one site shares with the dealer: masks, and its parts of corrections.

Both the site and the dealer expand them from the key and the public plan; nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc.commitments import Commitments, Selection, Term
from mpc.commitments.masks import column_mask
from mpc.randomness import Stream, label
from mpc.ring import Elements


@dataclass(frozen=True)
class Masks:
    """The streams of one site, for the records of one selection.

    Parameters
    ----------
    commitments : Commitments
    key : Stream
        Shared by the site and the dealer alone.
    selection : Selection
    query : bytes
        The name of the plan that they are for; committed columns have masks of their own.
    """

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

    def split(self, term: Term, block: int) -> Elements:
        """Return the site's part of the correction of an extension: shape (width, rows)."""
        return self._extension("extend", term, block)

    def table_split(self, term: Term) -> Elements:
        """Return the site's part of the correction of a term's products with all columns.

        Returns
        -------
        part : ndarray of shape (width, columns of the study)
        """
        shape = self.commitments.width(term), int(self.commitments.offsets[-1])
        return self.key.elements(self.commitments.ring, self._name("table", term), shape)

    def _extension(self, purpose: str, term: Term, block: int) -> Elements:
        width = self.commitments.width(term)
        shape = (width, self.selection.rows(block))
        start = block * self.commitments.block_rows * width
        return self.key.elements(self.commitments.ring, self._name(purpose, term), shape, start)

    def _name(self, purpose: str, term: Term) -> bytes:
        places = np.array(term, "<u4").tobytes()
        return label(purpose, self.query, places)
