"""The streams that mask a site's columns; only the site and the dealer know them."""

from __future__ import annotations

from vertibayes_mpc.commitments.operands import Commitments, Form, Selection
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements


def column_mask(
    commitments: Commitments, key: Stream, form: Form, place: int, block: int
) -> Elements:
    """Return the mask of a column in a form, in a committed block: shape (form.width, rows)."""
    stream = label("commit", commitments.label, commitments.operands[place].id, form.name)
    start = block * commitments.block_rows * form.width
    shape = form.width, Selection(commitments).rows(block)
    return key.elements(form.ring, stream, shape, start)
