"""What all parties know of the committed columns: ids, widths, forms, holders; terms over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements, Ring
from vertibayes_mpc.rounds import Party

Term: TypeAlias = tuple[int, ...]  # ascending places of operands; their product, record by record

BLOCK_ROWS = 1 << 15
MOST_INDICATORS = 7  # of a column by default; for a column with more, codes are shuffled
CODE_RING = Ring(24)  # more elements than a table may have cells
FLAG_RING = Ring(48)  # a record with a missing value is counted with probability 2**-48


class TermShape(NamedTuple):
    """A term's columns, holders, and parts by site; an operand of several holders is one part."""

    width: int
    holders: tuple[Party, ...]
    parts: tuple[Term, ...]


class Form(NamedTuple):
    """A way in which a column is committed, and the ring of its mask.

    >>> codes = np.array([0, 2, 1], np.uint8)
    >>> Form("indicators", Ring(16), width=2, missing=2).of(codes)
    array([[0, 0, 1],
           [0, 1, 0]], dtype=uint16)
    >>> Form("flags", Ring(48), width=1, missing=2).of(codes)
    array([[0, 1, 0]], dtype=uint64)
    """

    name: str
    ring: Ring
    width: int
    missing: int

    def of(self, codes: NDArray[np.unsignedinteger]) -> Elements:
        """Return the column of these codes in this form: shape (width, m)."""
        if self.name == "codes":
            return codes.astype(self.ring.dtype)[None, :]
        if self.name == "flags":
            return np.asarray(codes == self.missing).astype(self.ring.dtype)[None, :]
        states = np.arange(1, self.width + 1, dtype=np.int64)
        return np.asarray(codes[None, :] == states[:, None]).astype(self.ring.dtype)


@dataclass(frozen=True, slots=True)
class Operand:
    """One committed column."""

    id: bytes  # its holder draws it at random for this commitment
    width: int  # the number of codes minus 1; at least 1
    holders: tuple[Party, ...]  # one site, or several that hold different rows
    missing: bool = False  # whether the last code means that the value is missing
    most_indicators: int = MOST_INDICATORS  # the largest width of which indicators are committed

    @property
    def narrow(self) -> bool:
        """Whether its indicators are committed, so that it can be multiplied."""
        return self.width <= self.most_indicators

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the forms in which it is committed."""
        return ("indicators",) * self.narrow + ("codes",) + ("flags",) * self.missing


@dataclass(frozen=True)
class Commitments:
    """The operands of a study, in order; a ValueError names what is not valid."""

    study: bytes  # named in every label
    ring: Ring  # of counts, and of the masks of indicators
    records: int  # n, below 2**ring.bits
    operands: tuple[Operand, ...]
    dealer: Party = "dealer"  # holds no operand and shares a key with every holder
    block_rows: int = BLOCK_ROWS  # masked, sent, multiplied at a time; a multiple of 16
    code_ring: Ring = CODE_RING  # of the masks of codes; exhaustive tests use smaller ones
    flag_ring: Ring = FLAG_RING  # of the masks of flags

    def __post_init__(self) -> None:
        if self.block_rows < 1 or self.block_rows % 16:
            raise ValueError(f"block_rows must be a multiple of 16, got {self.block_rows}")
        if any(op.width < 1 or not op.holders for op in self.operands):
            raise ValueError("an operand has no columns or no holders")
        if any(self.dealer in op.holders for op in self.operands):
            raise ValueError(f"{self.dealer} is the dealer and cannot hold an operand")
        if len({op.id for op in self.operands}) != len(self.operands):
            raise ValueError("two operands have the same id")

    @cached_property
    def label(self) -> bytes:
        """A digest of the commitments: part of every label."""
        bits = self.ring.bits, self.code_ring.bits, self.flag_ring.bits
        parts: list[bytes | int] = [self.study, *bits, self.records, self.block_rows]
        parts.append(self.dealer.encode())
        for op in self.operands:
            parts += [op.id, op.width, int(op.missing), len(op.holders)]
            parts += [holder.encode() for holder in op.holders]
        return label("context", *parts)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Where the indicators of each operand begin, and where the last ones end."""
        return np.cumsum([0, *(op.width if op.narrow else 0 for op in self.operands)])

    @cached_property
    def forms(self) -> tuple[tuple[Form, int], ...]:
        """All that is committed: (form, place of the operand), the indicators first."""
        return tuple(
            (self.form(kind, place), place)
            for kind in ("indicators", "codes", "flags")
            for place, operand in enumerate(self.operands)
            if kind in operand.kinds
        )

    def form(self, name: str, place: int) -> Form:
        """Return the indicators, codes or flags of an operand."""
        width = self.operands[place].width
        ring = {"indicators": self.ring, "codes": self.code_ring, "flags": self.flag_ring}[name]
        return Form(name, ring, width if name == "indicators" else 1, width)

    @property
    def masked_bytes(self) -> int:
        """The bytes that the masked columns of all sites take in memory."""
        return sum(form.width * form.ring.dtype.itemsize for form, _ in self.forms) * self.records

    def forms_held_by(self, party: Party) -> list[tuple[Form, int]]:
        """Return what `party` commits: (form, place of the operand), the indicators first."""
        return [(form, i) for form, i in self.forms if party in self.operands[i].holders]

    @cached_property
    def sites(self) -> tuple[Party, ...]:
        """All who hold an operand, sorted."""
        return tuple(sorted({holder for op in self.operands for holder in op.holders}))

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
        """Return all who hold an operand of a term, sorted."""
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
        """Return the party that computes a term: the first holder of its last part."""
        return self.operands[self.shape(term).parts[-1][0]].holders[0]


@dataclass(frozen=True)
class Selection:
    """The records that a query counts, in blocks."""

    commitments: Commitments
    indices: NDArray[np.intp] | None = None  # ascending places of records; all by default
    name: bytes = b""  # in labels; equal selections have equal names

    @property
    def records(self) -> int:
        """The number of chosen records."""
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
        """Return the rows of a block of chosen records; `load` returns a committed block."""
        if self.indices is None:
            return load(block)
        pieces = [load(at)[..., inside] for at, inside in self._sources(self.indices, block)]
        return np.concatenate(pieces, axis=-1)

    def whole(self, load: Callable[[int], Elements]) -> Elements:
        """Return all chosen rows of a column of one element per record: shape (records,)."""
        blocks: list[Elements] = [load(block)[0] for block in Selection(self.commitments).blocks]
        if len(blocks) == 1 and self.indices is None:
            return blocks[0]
        column: Elements = np.concatenate(blocks) if blocks else np.zeros(0, np.uint8)
        return column if self.indices is None else column[self.indices]

    def _sources(
        self, indices: NDArray[np.intp], block: int
    ) -> Iterator[tuple[int, NDArray[np.intp]]]:
        size = self.commitments.block_rows
        chosen = indices[block * size : (block + 1) * size]
        source = chosen // size
        for at in np.unique(source):
            yield int(at), chosen[source == at] - at * size
