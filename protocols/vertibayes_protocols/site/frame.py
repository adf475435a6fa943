"""Read columns of text from pandas' data frames.

The categories of a categorical column are its declared states, in their order. Values become text
by the rule of all sources (`vertibayes_protocols.site.sources.values`). None, NaN and `pandas.NA`
are missing values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.values import text_of
from vertibayes_protocols.site.text import check_names
from vertibayes_protocols.site.text_column import TextColumn

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_SPANS = (timedelta, np.datetime64, np.timedelta64)


class FrameColumns(NamedTuple):
    """The columns of a data frame as text, and the states that they declare."""

    columns: dict[str, TextColumn]
    states: dict[str, tuple[str, ...]]


def columns_of(source: str, frame: DataFrame) -> FrameColumns:
    """Read the columns of a data frame; its index is ignored."""
    names = [_name(source, name) for name in frame.columns]
    if not names or not len(frame):
        raise DataError(f"{source}: the data frame has no {'records' if names else 'columns'}")
    check_names(source, names)
    series = {name: frame.iloc[:, place] for place, name in enumerate(names)}
    columns = {name: text_column(source, name, column) for name, column in series.items()}
    states = {
        name: tuple(map(text_of, column.cat.categories))
        for name, column in series.items()
        if column.dtype.name == "category"
    }
    return FrameColumns(columns, states)


def text_column(source: str, name: str, column: Series) -> TextColumn:
    """Read one column; errors are those of `columns_of`."""
    from pandas import factorize

    try:
        places, values = factorize(column)
    except TypeError:
        raise DataError(
            f"{source}: the column {name!r} has values that are not texts, numbers or truth values"
        ) from None
    # As numpy objects, floating-point numbers of 32 bits are written with their few digits.
    distinct = np.asarray(values) if values.dtype.kind == "f" else values
    _check_kind(source, name, distinct)
    texts: dict[str, int] = {}
    merged = [texts.setdefault(text_of(value), len(texts)) for value in distinct]
    if (places < 0).any():
        merged.append(texts.setdefault("", len(texts)))  # factorize codes missing values as -1
    return TextColumn(tuple(texts), np.array(merged, np.int64)[places])


def _name(source: str, name: Hashable) -> str:
    if not isinstance(name, str | int | float | np.integer):
        raise DataError(f"{source}: the name of a column must be a text or a number, got {name!r}")
    return str(name)


def _check_kind(source: str, name: str, values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, _SPANS) or type(value).__name__ == "Period":
            raise DataError(
                f"{source}: the column {name!r} has periods or durations, as {value}; derive a "
                "number or a category from them"
            )
        if isinstance(value, complex):
            raise DataError(f"{source}: the column {name!r} has complex numbers, as {value}")
