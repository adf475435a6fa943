"""What a site adds to a committed column: all, the rows that it holds, or a share; its mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments.operands import Commitments, Form, Selection
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements


class Column(Protocol):
    """A site's part of a column; the parts of all its holders add up to the column."""

    def part(self, form: Form, rows: slice) -> Elements:
        """Return the part in some rows, in a form: shape (width of the form, rows)."""
        ...


@dataclass(frozen=True)
class CodeColumn:
    """A column that one site holds."""

    codes: NDArray[np.unsignedinteger] = field(repr=False)  # of each record

    def part(self, form: Form, rows: slice) -> Elements:
        """Return the column in a form; see `Column`."""
        return form.of(self.codes[rows])


@dataclass(frozen=True)
class PartColumn:
    """A column of which several sites hold different rows; a row that no site holds is missing.

    The first holder adds the form of each code, and that of the missing code where it holds no row.
    The others add the difference between the two, which is 0 where they hold no row. So nobody
    learns which rows no site holds.

    >>> from vertibayes_mpc.ring import Ring
    >>> form = Form("codes", Ring(8), width=1, missing=2)
    >>> one = PartColumn(np.array([1, 2, 2], np.uint8), missing=2, first=True)
    >>> other = PartColumn(np.array([2, 0, 2], np.uint8), missing=2, first=False)
    >>> one.part(form, slice(None)) + other.part(form, slice(None))
    array([[1, 0, 2]], dtype=uint8)
    """

    codes: NDArray[np.unsignedinteger] = field(repr=False)  # `missing` for other sites' records
    missing: int  # the code of a missing value
    first: bool  # whether the site is the first of the holders

    def part(self, form: Form, rows: slice) -> Elements:
        """Return the site's part; see `Column`."""
        part = form.of(self.codes[rows])
        if self.first:
            return part
        nothing = form.of(np.full(1, self.missing, self.codes.dtype))
        return form.ring.reduce(part - nothing)


@dataclass(frozen=True)
class SharedColumn:
    """A site's shares of a column that no site holds."""

    shares: Mapping[str, Elements] = field(repr=False)  # by form: (width, n), in its ring or larger

    def part(self, form: Form, rows: slice) -> Elements:
        """Return the site's shares; see `Column`."""
        return form.ring.reduce(self.shares[form.name][:, rows].astype(form.ring.dtype))


def column_mask(
    commitments: Commitments, key: Stream, form: Form, place: int, block: int
) -> Elements:
    """Return the mask of a column in a form, in a committed block: shape (form.width, rows)."""
    stream = label("commit", commitments.label, commitments.operands[place].id, form.name)
    start = block * commitments.block_rows * form.width
    shape = form.width, Selection(commitments).rows(block)
    return key.elements(form.ring, stream, shape, start)
