"""The text of a typed value: one rule for data frames, Parquet files and databases.

A text is what a CSV file of the table has. Whole floating-point numbers have no ``.0``, because
many programs store a column of whole numbers with a missing value as floating-point numbers. Truth
values are ``True`` and ``False``; decimals keep their digits; dates and times are those of ISO 8601
with a space between them, in UTC if they have a time zone.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal

import numpy as np

_LARGEST_WHOLE = 2**53  # floating-point numbers beyond it are not exact


def text_of(value: object) -> str:
    """Return the text of a value; None and NaN are missing: the empty text.

    Examples
    --------
    >>> [text_of(value) for value in (2.0, 0.5, True, Decimal("1.50"), time(10, 5), None)]
    ['2', '0.5', 'True', '1.50', '10:05:00', '']
    """
    if isinstance(value, str):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return _of_float(value)
    if isinstance(value, Decimal):
        return "" if value.is_nan() else f"{value:f}"
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC)
        return _short(moment.isoformat(" "))
    return _short(value.isoformat()) if isinstance(value, time) else str(value)


def _of_float(value: float | np.floating) -> str:
    number = float(value)
    if number != number:
        return ""
    if number.is_integer() and abs(number) < _LARGEST_WHOLE:
        return str(int(number))
    return str(value)  # 32 bits are written with their few digits


def _short(moment: str) -> str:
    """Return a time without the zeros at the end of its fraction of a second."""
    whole, point, rest = moment.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    fraction = digits.rstrip("0")
    return f"{whole}{point if fraction else ''}{fraction}{rest[len(digits) :]}"
