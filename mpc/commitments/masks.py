"""The streams that mask a site's columns, which it shares with the dealer alone."""

from __future__ import annotations

from mpc.commitments.operands import Commitments, Form, Selection
from mpc.randomness import Stream, label
from mpc.ring import Elements


def column_mask(
    commitments: Commitments, key: Stream, form: Form, place: int, block: int
) -> Elements:
    """Return the mask of a column in one form, in a committed block.

    Parameters
    ----------
    commitments : Commitments
    key : Stream
        Shared by the column's holder and the dealer alone.
    form : Form
    place : int
        The operand's place in the study.
    block : int

    Returns
    -------
    mask : ndarray of shape (form.width, rows), dtype `form.ring.dtype`
    """
    name = label("commit", commitments.context, commitments.operands[place].id, form.name)
    start = block * commitments.block_rows * form.width
    shape = form.width, Selection(commitments).rows(block)
    return key.elements(form.ring, name, shape, start)
