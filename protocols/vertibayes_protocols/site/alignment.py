"""Records in one order at all sites: that of their identifiers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.packed_texts import PackedTexts
from vertibayes_protocols.site.text import TextColumn


def check_ids(source: str, named: str, ids: TextColumn, remedy: str = "") -> None:
    """Refuse identifiers that are missing or appear twice."""
    counts = np.bincount(ids.places)
    if counts.max() > 1:
        twice = np.flatnonzero(ids.places == int(counts.argmax()))[:2] + 1
        what = f"records {twice[0]} and {twice[1]} have the same {named}"
        raise DataError(f"{source}: {what}{remedy and '; '}{remedy}")
    check_known(source, named, ids)


def check_known(source: str, named: str, ids: TextColumn) -> None:
    """Refuse identifiers that are missing."""
    for place, text in enumerate(ids.texts):
        if not text.strip():
            record = int(np.argmax(ids.places == place)) + 1
            raise DataError(f"{source}, record {record}: {named} is empty")


def order_of(ids: TextColumn) -> NDArray[np.integer]:
    """Return the places of the records, sorted by the characters of their identifiers.

    No other rule applies: "7" and "007" are different people.
    """
    texts = ids.texts
    by_text = (
        texts.order() if isinstance(texts, PackedTexts) else np.argsort(np.array(texts, object))
    )
    rank = np.empty(len(by_text), np.uint32)
    rank[by_text] = np.arange(len(by_text), dtype=np.uint32)
    return np.argsort(rank[ids.places], kind="stable")
