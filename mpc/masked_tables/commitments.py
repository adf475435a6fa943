"""What all parties know of the committed columns: ids, widths and holders; terms over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpc.randomness import label
from mpc.ring import Elements, Ring
from mpc.rounds import Party

Term: TypeAlias = tuple[int, ...]  # ascending places of operands; their product, record by record

BLOCK_ROWS = 1 << 15


class TermShape(NamedTuple):
    """A term's number of columns, its holders, and its parts by site.

    An operand of several holders is a part of its own.
    """

    width: int
    holders: tuple[Party, ...]
    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """One committed column: an indicator matrix of all its codes but the first.

    Parameters
    ----------
    id : bytes
        Drawn at random by its holder for this commitment.
    width : int
        The number of codes less one; at least 1.
    holders : tuple of Party
        Who holds it: one site, or several by rows (their matrices are summed).
    missing : bool, default=False
        The last code says that the value is missing.
    """

    id: bytes
    width: int
    holders: tuple[Party, ...]
    missing: bool = False


@dataclass(frozen=True)
class Commitments:
    """The operands of a study, in order.

    Parameters
    ----------
    study : bytes
        Names the study in every label.
    ring : Ring
    records : int
        n, below ``2**ring.bits``.
    operands : tuple of Operand
    dealer : Party
        Who holds no operand and shares a key with every holder.
    block_rows : int, default=32768
        Rows of a block: what is masked, sent and multiplied at a time.

    Raises
    ------
    ValueError
        If a width, a holder or an id does not make sense.
    """

    study: bytes
    ring: Ring
    records: int
    operands: tuple[Operand, ...]
    dealer: Party = "dealer"
    block_rows: int = BLOCK_ROWS

    def __post_init__(self) -> None:
        if self.block_rows < 1 or self.block_rows % 16:
            raise ValueError(f"blocks of {self.block_rows} rows: a multiple of 16 is wanted")
        if any(op.width < 1 or not op.holders for op in self.operands):
            raise ValueError("an operand without columns or holders")
        if any(self.dealer in op.holders for op in self.operands):
            raise ValueError(f"{self.dealer} is the dealer and cannot hold an operand")
        if len({op.id for op in self.operands}) != len(self.operands):
            raise ValueError("two operands with one id")

    @cached_property
    def context(self) -> bytes:
        """A digest of all of this: part of every label."""
        parts: list[bytes | int] = [self.study, self.ring.bits, self.records, self.block_rows]
        parts.append(self.dealer.encode())
        for op in self.operands:
            parts += [op.id, op.width, int(op.missing), len(op.holders)]
            parts += [holder.encode() for holder in op.holders]
        return label("context", *parts)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Where each operand's columns begin among all columns; one entry more than operands."""
        return np.cumsum([0, *(op.width for op in self.operands)])

    def columns(self, place: int) -> slice:
        """Return the columns of one operand among all columns."""
        return slice(int(self.offsets[place]), int(self.offsets[place + 1]))

    @cached_property
    def sites(self) -> tuple[Party, ...]:
        """Everyone who holds an operand, sorted."""
        return tuple(sorted({holder for op in self.operands for holder in op.holders}))

    def held_by(self, party: Party) -> list[int]:
        """Return the places of the operands that `party` holds or shares in."""
        return [i for i, op in enumerate(self.operands) if party in op.holders]

    @cached_property
    def _shapes(self) -> dict[Term, TermShape]:
        return {}

    def shape(self, term: Term) -> TermShape:
        """Return the width, holders and parts of a term."""
        if term not in self._shapes:
            self._shapes[term] = self._shape(term)
        return self._shapes[term]

    def _shape(self, term: Term) -> TermShape:
        operands = [self.operands[i] for i in term]
        parts: dict[object, list[int]] = {}
        for i, op in zip(term, operands, strict=True):
            parts.setdefault(op.holders[0] if len(op.holders) == 1 else i, []).append(i)
        return TermShape(
            width=math.prod(op.width for op in operands),
            holders=tuple(sorted({holder for op in operands for holder in op.holders})),
            parts=tuple(tuple(part) for part in parts.values()),
        )

    def width(self, term: Term) -> int:
        """Return the number of columns of a term."""
        return self.shape(term).width

    def holders(self, term: Term) -> tuple[Party, ...]:
        """Return everyone who holds an operand of a term, sorted."""
        return self.shape(term).holders

    def is_local(self, term: Term) -> bool:
        """Whether one site holds all of a term."""
        return len(self.holders(term)) == 1

    def axes(self, term: Term) -> Term:
        """Return a term's operands in the order of its columns: site after site."""
        return tuple(i for part in self.shape(term).parts for i in part)

    def split(self, term: Term) -> tuple[Term, Term]:
        """Return (left, right): the last site's part of a term, and what it extends."""
        *others, right = self.shape(term).parts
        return tuple(sorted(i for part in others for i in part)), right

    def lead(self, term: Term) -> Party:
        """Return the party that puts a term together: the first holder of its last part."""
        return self.operands[self.shape(term).parts[-1][0]].holders[0]


@dataclass(frozen=True)
class Selection:
    """The records that a query counts, in blocks.

    Parameters
    ----------
    commitments : Commitments
    indices : ndarray of shape (m,), dtype intp, optional
        Ascending places of the records; all of them if None.
    name : bytes, default=b""
        Names the choice in labels; equal choices have equal names.
    """

    commitments: Commitments
    indices: NDArray[np.intp] | None = None
    name: bytes = b""

    @property
    def records(self) -> int:
        """How many records are chosen."""
        return self.commitments.records if self.indices is None else len(self.indices)

    @property
    def blocks(self) -> range:
        """The numbers of the blocks of chosen records."""
        return range(-(-self.records // self.commitments.block_rows))

    def rows(self, block: int) -> int:
        """Return the number of chosen records in a block."""
        size = self.commitments.block_rows
        return min(size, self.records - block * size)

    def gather(self, load: Callable[[int], Elements], block: int) -> Elements:
        """Put together the rows of a block from committed blocks, which `load` brings."""
        if self.indices is None:
            return load(block)
        pieces = [load(at)[..., inside] for at, inside in self._sources(self.indices, block)]
        return np.concatenate(pieces, axis=-1)

    def _sources(
        self, indices: NDArray[np.intp], block: int
    ) -> Iterator[tuple[int, NDArray[np.intp]]]:
        size = self.commitments.block_rows
        chosen = indices[block * size : (block + 1) * size]
        source = chosen // size
        for at in np.unique(source):
            yield int(at), chosen[source == at] - at * size


def committed_rows(commitments: Commitments, block: int) -> int:
    """Return the number of rows in a committed block."""
    return Selection(commitments).rows(block)
