"""Numbers with decimal commas in CSV files.

A column is read in plain digits if its numbers show that the comma is before their decimals:
``3,5`` and ``1.234,5`` do, ``1,234`` and ``1.234`` do not. A number that could be either is read as
the file's other columns are, and is refused if they do not show it. In files with commas between
fields, whose numbers do not show it, and in numbers with units,
`vertibayes_protocols.site.numerals` decides for each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.inspection import FEW_WORDS, MOST_NUMBERS
from vertibayes_protocols.site.text_column import TextColumn

EITHER = "comma_or_thousands", "point_or_thousands"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_KINDS = re.compile(  # the first that a whole text matches
    r"\s*[+-]?(?:"
    rf"(?P<comma_or_thousands>[1-9]\d{{0,2}},\d{{3}})|(?P<point_or_thousands>[1-9]\d{{0,2}}\.\d{{3}})"
    rf"|(?P<comma>(?:\d+|\d{{1,3}}(?:\.\d{{3}})+),\d+{_EXPONENT}|\d{{1,3}}(?:\.\d{{3}}){{2,}})"
    rf"|(?P<point>(?:\d+|\d{{1,3}}(?:,\d{{3}})+)\.\d+{_EXPONENT}|\d{{1,3}}(?:,\d{{3}}){{2,}})"
    rf"|(?P<whole>\d+{_EXPONENT}))\s*",
    re.ASCII,
)


def in_plain_digits(
    title: str,
    columns: Mapping[str, TextColumn],
    keys: str | None,
    separator: str,
    decimal: str | None,
) -> dict[str, TextColumn]:
    """Return columns in which numbers with decimal commas have points, except the identifiers."""
    read = {name: column for name, column in columns.items() if name != keys}
    recognized = decimal is None
    if decimal == "." or (recognized and not _has_commas(read.values())):
        return dict(columns)
    kinds = {name: kinds_in(column.texts) for name, column in read.items()}
    many = any("comma" in kinds[n] and len(c.texts) > MOST_NUMBERS for n, c in read.items())
    if recognized and separator == "," and not many:  # "1,2" may be a list of answers
        return dict(columns)
    sure = {kind for found in kinds.values() for kind in found} & {"comma", "point"}
    for name, found in kinds.items():
        if "point" in found or found <= {"whole"} or found >= {*EITHER}:
            continue  # all in plain digits, or in several notations
        if recognized and separator == "," and len(read[name].texts) > MOST_NUMBERS:
            continue  # `numerals` reads it, and a finding says so
        sign = decimal or _sign(found, sure)
        if sign is None:
            raise _unclear(title, name, read[name], EITHER[EITHER[0] not in found])
        if sign == ",":
            read[name] = read[name].changed(_with_point)
    return {**columns, **read}


def _sign(found: set[str], sure: set[str]) -> str | None:
    """Return the sign before the decimals of a column, by its numbers or by those of the file.

    None if they do not show it.
    """
    if "comma" in found:
        return ","
    if EITHER[0] not in found:  # as "1.234"
        return None if "comma" in sure else "."
    if len(sure) != 1:
        return None
    return "," if "comma" in sure else "."


def _has_commas(columns: Iterable[TextColumn]) -> bool:
    return any("," in text for column in columns for text in column.texts)


def kinds_in(texts: Iterable[str]) -> set[str]:
    """Return how the numbers of a column are written; the empty set if it is not numbers.

    Examples
    --------
    >>> sorted(kinds_in(["3,5", "4"])), kinds_in(["1,234"]), kinds_in(["a", "b", "1,5"])
    (['comma', 'whole'], {'comma_or_thousands'}, set())
    """
    found: set[str] = set()
    numbers = words = 0
    for text in texts:
        match = _KINDS.fullmatch(text)
        if match is not None:
            numbers += 1
            found.add(match.lastgroup or "")
        elif text.strip():
            words += 1
            if words > FEW_WORDS:
                return set()
    return found if numbers > words else set()


def _with_point(text: str) -> str:
    if _KINDS.fullmatch(text) is None:
        return text
    return text.strip().replace(".", "").replace(",", ".")


def _unclear(title: str, name: str, column: TextColumn, kind: str) -> DataError:
    matches = ((text, _KINDS.fullmatch(text)) for text in column.texts)
    text = next(text for text, match in matches if match is not None and match[kind])
    without, decimals = re.sub("[.,]", "", text), text.replace(",", ".")
    by_comma, by_point = (decimals, without) if "," in text else (without, decimals)
    return DataError(
        f"{title}: the column {name!r}: {text!r} may be {by_comma} or {by_point}; specify "
        f"--decimal ',' or --decimal '.'"
    )
