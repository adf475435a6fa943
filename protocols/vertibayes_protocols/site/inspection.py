"""Signs of mistakes in one column: dates, identifiers, codes for missing values, spellings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from statistics import median

FEW_WORDS = 3  # different words that may be mistakes among numbers or dates
MOST_NUMBERS = 16  # if a column has more distinct numbers, they are binned
NEAR_UNIQUE = 0.9  # share of distinct values among known ones, above which they identify records
LEAST_REPEATED = 3  # records of a number that may be a code

_MISSING = re.compile(r"na|#?n/a|nan|<na>|null|\?|--?|\.\.?|missing|unknown", re.IGNORECASE)
_NONE = re.compile(r"none|nil", re.IGNORECASE)  # among texts this is often a state

_TIME = r"(?:[T ]\s*\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\s*(?:[AaPp]\.?[Mm]\.?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_DATES = [
    re.compile(rf"{day}{_TIME}", re.ASCII)
    for day in (
        r"(?P<year>\d{4})([-/.])(?P<one>\d\d?)\2(?P<other>\d\d?)",
        r"(?P<one>\d\d?)([-/.])(?P<other>\d\d?)\2(?P<year>\d{4}|\d\d)",
    )
]


def year_of(text: str) -> str | None:
    """Return the year of a date; None if the text is no date, or the year has two digits."""
    matches = (pattern.fullmatch(text.strip()) for pattern in _DATES)
    year = next((match["year"] for match in matches if match is not None), "")
    return year if is_date(text) and len(year) == 4 else None


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time.

    Examples
    --------
    >>> [is_date(text) for text in ("2024-01-31", "31.1.2024", "1/31/24 10:05", "31/31/2024")]
    [True, True, True, False]
    """
    for pattern in _DATES:
        match = pattern.fullmatch(text.strip())
        if match is not None:
            low, high = sorted((int(match["one"]), int(match["other"])))
            return 1 <= low <= 12 and high <= 31
    return False


def are_dates(texts: Collection[str]) -> bool:
    """Whether more than 16 texts are dates, and at most a few texts are other words."""
    texts = [text for text in texts if not says_missing(text, among_numbers=True)]
    dates = sum(map(is_date, texts))
    return dates > MOST_NUMBERS and len(texts) - dates <= FEW_WORDS


def says_missing(text: str, *, among_numbers: bool) -> bool:
    """Whether a text is a common way to say that a value is missing."""
    none = among_numbers and _NONE.fullmatch(text.strip())
    return bool(none or _MISSING.fullmatch(text.strip()))


def spellings(counts: Mapping[str, int]) -> list[list[str]]:
    """Return the groups of texts that differ only in case, the most frequent text of each first."""
    groups: dict[str, list[str]] = {}
    for text in counts:
        groups.setdefault(text.casefold(), []).append(text)
    return [sorted(g, key=lambda t: -counts[t]) for g in groups.values() if len(g) > 1]


def identifies(values: Collection[Decimal], different: int, known: int, records: int) -> bool:
    """Whether a column names records rather than describes them."""
    if any(value != value.to_integral_value() for value in values):
        return False
    if different == records > 2:
        return True
    if different <= MOST_NUMBERS or different <= NEAR_UNIQUE * known:
        return False
    return not values or max(values) - min(values) < 2 * different  # a list with repetitions


def codes_among(values: Sequence[Decimal], counts: Sequence[int]) -> list[int]:
    """Return the places of numbers that may be codes for missing values, such as -1, -9 or 999.

    A code is the smallest or the largest number, has several records, and lies apart: farther from
    the other numbers than they lie from each other. The only negative number may also be a code if
    it is -1 or repeats one of the digits 7, 8 and 9. Among few numbers, a code must repeat such a
    digit and lie more than three times as far apart.

    Examples
    --------
    >>> codes_among([*map(Decimal, range(20, 60)), Decimal(999)], [5] * 41)
    [40]
    """
    first, last = 0, len(values) - 1
    codes: list[int] = []
    while last - first > 1:
        if _is_code(values, counts, last, range(first, last)):
            codes.append(last)
            last -= 1
        elif _is_code(values, counts, first, range(first + 1, last + 1)):
            codes.append(first)
            first += 1
        else:
            break
    return sorted(codes)


def _is_code(values: Sequence[Decimal], counts: Sequence[int], place: int, rest: range) -> bool:
    value, low, high = values[place], values[rest[0]], values[rest[-1]]
    if counts[place] < LEAST_REPEATED:
        return False
    apart = max(value - high, low - value)
    digits = set(f"{abs(value):f}") if value == value.to_integral_value() else set()
    repeats = len(digits) == 1 and digits <= {"7", "8", "9"}
    if len(rest) < MOST_NUMBERS:
        return repeats and apart > 3 * (high - low)
    usual = counts[place] >= median(counts[p] for p in rest)
    if value < 0 <= low and (repeats or value == -1) and usual:
        return True
    return value != 0 and apart >= high - low


def words_shown(words: Sequence[str], records: Mapping[str, tuple[int, int]]) -> str:
    """Return a list of words among numbers, each with its number of records and its first one."""
    shown = [
        f"{word!r} ({counted(records[word][0])}, first {records[word][1]})" for word in words[:3]
    ]
    return ", ".join(shown) + (f" and {len(words) - 3} more" if words[3:] else "")


def counted(records: int) -> str:
    """Return a number of records in words."""
    return f"{records} record{'' if records == 1 else 's'}"
