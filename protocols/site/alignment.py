"""Records in one order at all sites: that of their identifiers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from protocols.errors import DataError
from protocols.site.text import TextColumn


def check_ids(source: str, named: str, ids: TextColumn) -> None:
    """Refuse identifiers that are lacking or stand twice.

    Raises
    ------
    DataError
        It names the source, the column as `named`, and the record; never the identifier of a
        person alone: who reads the file finds it by the record's number.
    """
    counts = np.bincount(ids.places)
    if counts.max() > 1:
        twice = np.flatnonzero(ids.places == int(counts.argmax()))[:2] + 1
        raise DataError(f"{source}: records {twice[0]} and {twice[1]} have one {named}")
    for place, text in enumerate(ids.texts):
        if not text.strip():
            record = int(np.argmax(ids.places == place)) + 1
            raise DataError(f"{source}, record {record}: no {named}")


def order_of(ids: TextColumn) -> NDArray[np.integer]:
    """Return the places of the records in the order of their identifiers' characters.

    No other rule is applied: "7" and "007" are two people.
    """
    rank = np.argsort(np.argsort(np.array(ids.texts, object)))[ids.places]
    return np.argsort(rank, kind="stable")
