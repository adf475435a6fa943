"""A column of text, in which each distinct text is kept once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TextColumn:
    """A column of text.

    Examples
    --------
    >>> TextColumn.of(["yes", None, "yes"])
    TextColumn(texts=('yes', ''), places=array([0, 1, 0]))
    """

    texts: Sequence[str]  # the distinct texts, in the order of their first record
    places: NDArray[np.integer]  # the place in `texts` of each record's text

    @classmethod
    def of(cls, values: Iterable[object]) -> TextColumn:
        """Make a column of any values: None and NaN become empty, other values their `str`."""
        seen: dict[str, int] = {}
        places = array("q")
        for value in values:
            text = "" if _is_missing(value) else str(value)
            places.append(seen.setdefault(text, len(seen)))
        return cls(tuple(seen), np.array(places, np.int64))

    def __len__(self) -> int:
        return len(self.places)

    def changed(self, change: Callable[[str], str]) -> TextColumn:
        """Return the column with other texts, of which several may become one.

        Examples
        --------
        >>> TextColumn.of(["yes", "Yes", "no"]).changed(str.lower)
        TextColumn(texts=('yes', 'no'), places=array([0, 0, 1]))
        """
        seen: dict[str, int] = {}
        places = [seen.setdefault(change(text), len(seen)) for text in self.texts]
        return TextColumn(tuple(seen), np.array(places, self.places.dtype)[self.places])

    def take(self, order: NDArray[np.integer]) -> TextColumn:
        """Return the column with some of its records, or with another order."""
        return TextColumn(self.texts, self.places[order])


def _is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or pandas' NA, which is neither equal nor unequal."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
