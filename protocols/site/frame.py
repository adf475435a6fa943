"""Read columns of text from pandas' data frames.

The categories of a categorical column are its declared states, in their order. Values become text
as in a CSV file that pandas writes, except that whole floating-point numbers lose their ``.0``:
pandas stores an integer column with a missing value as floating-point numbers. None, NaN and
`pandas.NA` are missing values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import date, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from protocols.errors import DataError
from protocols.site.text import TextColumn, check_names

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_LARGEST_WHOLE = 2**53  # floating-point numbers beyond it are not exact
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


class FrameColumns(NamedTuple):
    """The columns of a data frame as text, and the states that they declare."""

    columns: dict[str, TextColumn]
    states: dict[str, tuple[str, ...]]


def columns_of(source: str, frame: DataFrame) -> FrameColumns:
    """Read the columns of a data frame; its index is ignored.

    Raises
    ------
    DataError
        If the frame has no columns or records, if a column name is not a text or a number or
        appears twice, or if a column has dates, times, complex numbers or values that cannot be
        hashed.
    """
    names = [_name(source, name) for name in frame.columns]
    if not names or not len(frame):
        raise DataError(f"{source}: the data frame has no {'records' if names else 'columns'}")
    check_names(source, names)
    series = {name: frame.iloc[:, place] for place, name in enumerate(names)}
    columns = {name: text_column(source, name, column) for name, column in series.items()}
    states = {
        name: tuple(map(_text, column.cat.categories))
        for name, column in series.items()
        if column.dtype.name == "category"
    }
    return FrameColumns(columns, states)


def text_column(source: str, name: str, column: Series) -> TextColumn:
    """Read one column.

    Parameters
    ----------
    source, name, column : str, str, Series
        The names of the data frame and of the column, for errors, and the column. Errors are those
        of `columns_of`.
    """
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
    merged = [texts.setdefault(_text(value), len(texts)) for value in distinct]
    if (places < 0).any():
        merged.append(texts.setdefault("", len(texts)))  # factorize codes missing values as -1
    return TextColumn(tuple(texts), np.array(merged, np.int64)[places])


def _name(source: str, name: Hashable) -> str:
    if not isinstance(name, str | int | float | np.integer):
        raise DataError(f"{source}: the name of a column must be a text or a number, got {name!r}")
    return str(name)


def _check_kind(source: str, name: str, values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, _TIMES) or type(value).__name__ == "Period":
            raise DataError(
                f"{source}: the column {name!r} has dates or times, as {value}; bin them or derive "
                "a number or a category from them"
            )
        if isinstance(value, complex):
            raise DataError(f"{source}: the column {name!r} has complex numbers, as {value}")


def _text(value: object) -> str:
    if isinstance(value, float | np.floating):
        number = float(value)
        if number.is_integer() and abs(number) < _LARGEST_WHOLE:
            return str(int(number))
    return str(value)
