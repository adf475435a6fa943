"""Columns of text that are built batch by batch, in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.site.packed_texts import PackedTexts, packed

BATCH = 1 << 11  # records whose texts are in memory at once

Places = NDArray[np.unsignedinteger]


class ColumnBuilder:
    """A column of which each distinct text is kept once, and a small number for each record."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._parts: list[Places] = []

    def add(self, texts: Iterable[str]) -> None:
        """Add a batch of records' texts."""
        seen = self._texts
        places = [seen.setdefault(text, len(seen)) for text in texts]
        self._parts.append(np.array(places, _smallest(len(seen))))

    def add_places(self, texts: Iterable[str], places: NDArray[np.integer]) -> None:
        """Add a batch of records as places among texts, which are in the order of their use."""
        seen = self._texts
        known = [seen.setdefault(text, len(seen)) for text in texts]
        self._parts.append(np.array(known, _smallest(len(seen)))[places])

    def finish(self) -> tuple[Sequence[str], Places]:
        """Return the distinct texts, and the place of each record's text among them."""
        texts, parts = tuple(self._texts), self._parts
        self._texts, self._parts = {}, []
        places = np.empty(sum(map(len, parts)), _smallest(len(texts)))
        start = 0
        for part in parts:
            places[start : start + len(part)] = part
            start += len(part)
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


def _smallest(count: int) -> type[np.uint8 | np.uint16 | np.uint32]:
    """Return the smallest type of places among a number of texts."""
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32
