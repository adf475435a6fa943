"""Columns of text that are built batch by batch, in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

WIDEST = 64  # bytes; longer texts stay Python's
_WORD = 8  # bytes that are compared at once
_AT_ONCE = 1 << 16  # texts that are decoded together
BATCH = 1 << 11  # records whose texts are in memory at once
Places = NDArray[np.unsignedinteger]


class PackedTexts(Sequence[str]):
    """A sequence of texts, each in UTF-8 and of at most `WIDEST` bytes, without NUL characters."""

    def __init__(self, block: NDArray[np.bytes_]) -> None:
        self._block = block
        self._order: NDArray[np.uint32] | None = None  # kept of texts that are all different

    @classmethod
    def joined(cls, blocks: list[NDArray[np.bytes_]]) -> PackedTexts:
        """Join blocks of any widths; the list is emptied, so that each is released."""
        width = max((block.dtype.itemsize for block in blocks), default=1)
        kind = f"S{-(-width // _WORD) * _WORD}"
        joined = np.empty(sum(map(len, blocks)), kind)
        end = len(joined)
        while blocks:
            block = blocks.pop()
            joined[end - len(block) : end] = block
            end -= len(block)
        return cls(joined)

    def __len__(self) -> int:
        return len(self._block)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> PackedTexts: ...
    def __getitem__(self, place: int | slice) -> str | PackedTexts:
        if isinstance(place, slice):
            return PackedTexts(self._block[place])
        return bytes(self._block[place]).decode()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _AT_ONCE):
            yield from map(bytes.decode, self._block[start : start + _AT_ONCE].tolist())

    def order(self) -> NDArray[np.integer]:
        """Return the places of the texts, sorted by their characters, as are the bytes of UTF-8."""
        if self._order is not None:
            return self._order
        words = self._words()
        return np.lexsort(tuple(words[:, place] for place in reversed(range(words.shape[1]))))

    def distinct(self) -> tuple[PackedTexts, NDArray[np.unsignedinteger]]:
        """Return the distinct texts, in the order of their first place, and each text's place."""
        order = self.order()
        words = self._words()
        begins = np.ones(len(self), bool)
        for start in range(1, len(self), _AT_ONCE):  # in parts: the block is not copied
            part = slice(start, start + _AT_ONCE)
            before = order[start - 1 : start - 1 + len(order[part])]
            begins[part] = (words[order[part]] != words[before]).any(axis=1)
        if begins.all():
            self._order = order.astype(np.uint32)
            return self, np.arange(len(self), dtype=np.uint32)
        firsts = order[begins]
        by_first = np.argsort(firsts)
        rank = np.empty(len(firsts), np.uint32)
        rank[by_first] = np.arange(len(firsts), dtype=np.uint32)
        places = np.empty(len(self), np.uint32)
        places[order] = rank[np.cumsum(begins) - 1]
        return PackedTexts(self._block[firsts[by_first]]), places

    def _words(self) -> NDArray[np.uint64]:
        width = self._block.dtype.itemsize // _WORD
        return np.ascontiguousarray(self._block).view(">u8").reshape(len(self), width)


def packed(texts: Sequence[str]) -> NDArray[np.bytes_] | None:
    """Pack texts into a block; None if one is too long or has a NUL character."""
    encoded = [text.encode() for text in texts]
    longest = max(map(len, encoded), default=0)
    if longest > WIDEST or b"\0" in b"".join(encoded):
        return None
    return np.array(encoded, f"S{max(longest, 1)}")


def packed_ascii(
    offsets: NDArray[np.integer], content: NDArray[np.uint8]
) -> NDArray[np.bytes_] | None:
    """Pack texts that lie one after the other; None if they need more than copying."""
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    body = content[offsets[0] : offsets[-1]]
    if not 0 < longest <= WIDEST or ((body <= ord(" ")) | (body >= 127)).any():
        return None
    block = np.zeros((len(lengths), longest), np.uint8)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    block[rows, np.arange(len(body)) - (offsets[:-1] - offsets[0])[rows]] = body
    return block.view(f"S{longest}").reshape(-1)


class ColumnBuilder:
    """A column of which each distinct text is kept once, and a small number for each record."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._places = bytearray()  # it grows in place
        self._type = _smallest(0)

    def add(self, texts: Iterable[str]) -> None:
        """Add a batch of records' texts."""
        seen = self._texts
        self._append(np.array([seen.setdefault(text, len(seen)) for text in texts], np.uint32))

    def add_places(self, texts: Iterable[str], places: NDArray[np.integer]) -> None:
        """Add a batch of records as places among texts, which are in the order of their use."""
        seen = self._texts
        known = [seen.setdefault(text, len(seen)) for text in texts]
        self._append(np.array(known, _smallest(len(seen)))[places])

    def _append(self, places: Places) -> None:
        if (smallest := _smallest(len(self._texts))) is not self._type:
            self._places = bytearray(np.frombuffer(self._places, self._type).astype(smallest))
            self._type = smallest
        self._places += places.astype(smallest, copy=False).data

    def finish(self) -> tuple[Sequence[str], Places]:
        """Return the distinct texts, and the place of each record's text among them."""
        texts, places = tuple(self._texts), np.frombuffer(self._places, self._type)
        self._texts, self._places = {}, bytearray()
        return texts, places


class KeyBuilder(ColumnBuilder):
    """A column of identifiers, nearly all different: they are packed instead of looked up."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[NDArray[np.bytes_]] | None = []

    def add(self, texts: Iterable[str]) -> None:
        """Add a batch of records' identifiers."""
        batch = list(texts)
        block = None if self._blocks is None else packed(batch)
        if block is not None and self._blocks is not None:
            self._blocks.append(block)
            return
        if self._blocks is not None:  # identifiers of any length or character: as other columns
            blocks, self._blocks = self._blocks, None
            for earlier in blocks:
                super().add(PackedTexts(earlier))
        super().add(batch)

    def add_block(self, block: NDArray[np.bytes_]) -> None:
        """Add a batch of records' identifiers that are packed already."""
        if self._blocks is None:
            super().add(PackedTexts(block))
        else:
            self._blocks.append(block)

    def add_places(self, texts: Iterable[str], places: NDArray[np.integer]) -> None:
        """Add a batch of records as places among identifiers."""
        known = list(texts)
        self.add(known[place] for place in places)

    def finish(self) -> tuple[Sequence[str], Places]:
        """Return the distinct identifiers, and the place of each record's among them."""
        if self._blocks is None:
            return super().finish()
        blocks, self._blocks = self._blocks, []
        return PackedTexts.joined(blocks).distinct()


def _smallest(count: int) -> type[np.unsignedinteger]:
    """Return the smallest type of places among a number of texts."""
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32
