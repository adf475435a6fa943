"""How a CSV file is written: its separator, its encoding and the sign before its decimals.

What is not declared is recognized from the file. A file that could be written in two ways is
refused: its error names the setting that decides.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from vertibayes_protocols.errors import DataError

SAMPLE = 1 << 16  # characters from which the separator is recognized
SEPARATORS = {"tab": "\t", "|": "|", ";": ";", ",": ","}  # the likeliest first, if several fit
CODE_PAGES = "cp1252", "cp1250", "cp850", "mac_roman"  # of files that are not in UTF-8

_QUOTED = re.compile(r'(?:(?<=[,;|\t\r\n])|\A)"(?:[^"]|"")*("|\Z)')
_LINE = re.compile("\r\n|\n|\r")
_WHOLE = r"[+-]?(?:\d{1,3}(?:[.,]\d{3})*|\d+)"
_IN_NUMBER = re.compile(rf"\s*{_WHOLE}(?:[.,]\d+)?\s*", re.ASCII)
_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # a first line of Excel's, which is no header
_UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
# Letters that are the same in the code pages of Western and Central Europe, and signs of units.
_SURE = frozenset(
    [b for b in range(0xC0, 0x100) if bytes([b]).decode("cp1252") == bytes([b]).decode("cp1250")]
    + [*"\u00a0\u00a7\u00b0\u00b5".encode("cp1252")]
)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; None is recognized from the file."""

    separator: str | None = None  # a key of `SEPARATORS`
    decimal: str | None = None  # "." or ","
    encoding: str | None = None  # a name of Python's

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except LookupError:
                raise ValueError(
                    f"encoding must be one of Python's, as utf-8, cp1252 or utf-16, got "
                    f"{self.encoding!r}"
                ) from None

    @property
    def delimiter(self) -> str | None:
        """The character between fields, if it is declared."""
        return None if self.separator is None else SEPARATORS[self.separator]

    @property
    def codec(self) -> str | None:
        """The encoding, if it is declared; the mark of UTF-8 is no part of the text."""
        known = self.encoding and codecs.lookup(self.encoding).name
        return "utf-8-sig" if known == "utf-8" else known


# ---- separators ----------------------------------------------------------------------------------


def hinted(sample: str) -> str | None:
    """Return the separator that a first line ``sep=;`` names."""
    hint = _HINT.match(sample)
    return None if hint is None else hint[1]


def separator_of(title: str, sample: str, *, is_whole: bool) -> str:
    """Return the separator with which the header and all records have the same number of fields.

    Commas in numbers, and before spaces, do not speak against another separator. If no separator
    fits all records, it is the one that fits most of them.
    """
    rows = _unquoted_rows(sample, is_whole=is_whole)
    if not rows:
        return ","
    several = [one for one in SEPARATORS.values() if one in rows[0]]
    if not several:
        _check_header(title, rows)
    fitting = {one: _fitting(rows, one) for one in several}
    even = [one for one in several if fitting[one] == len(rows)]
    if not even:
        return max(several, key=lambda one: (fitting[one], one == ","), default=",")
    first, others = even[0], even[1:]
    if any(not _is_explained(rows[1:], first, other) for other in others):
        raise _unclear(title, even, rows[0])
    inside = next((one for one in ";\t|" if one != first and one in rows[0]), None)
    if inside is not None:
        raise _unclear(title, [first, inside], rows[0])
    return first


def _unquoted_rows(sample: str, *, is_whole: bool) -> list[str]:
    """Return the lines without what is quoted; not the last one, if the file goes on."""
    lines = [line for line in _LINE.split(_QUOTED.sub("", sample)) if line.strip("\r\n")]
    return lines if is_whole or len(lines) < 2 else lines[:-1]


def _check_header(title: str, rows: Sequence[str]) -> None:
    """Refuse a first line without separators above lines that have them."""
    counts = {one: {row.count(one) for row in rows[1:]} for one in ";\t|,"}
    if len(rows) > 2 and any(len(c) == 1 and 0 not in c for c in counts.values()):
        raise DataError(
            f"{title}: the first line, {rows[0][:80]!r}, has one field and those below have "
            "several: the first line must be the header; delete what is above it, or specify "
            "--separator"
        )


def _fitting(rows: Sequence[str], separator: str) -> int:
    width = rows[0].count(separator)
    return sum(row.count(separator) == width for row in rows)


def _is_explained(rows: Sequence[str], separator: str, other: str) -> bool:
    """Whether another separator within fields is that of numbers, or a comma before a space."""
    if other != ",":
        return False
    fields = (field for row in rows for field in row.split(separator) if "," in field)
    return all(_IN_NUMBER.fullmatch(f) or ", " in f for f in fields)


def _unclear(title: str, separators: Sequence[str], header: str) -> DataError:
    names = [name for one in separators for name, sign in SEPARATORS.items() if sign == one]
    shown = " or ".join(f"--separator {name!r}" for name in names)
    return DataError(
        f"{title}: the separator is unclear: the header {header[:80]!r} has "
        f"{' and '.join(map(repr, separators))}; specify it, as {shown}"
    )


# ---- encodings -----------------------------------------------------------------------------------


def marked(first: bytes) -> str | None:
    """Return the encoding that the first bytes of a file show: UTF-16, or None."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = first.count(0)
    if zeros <= len(first) // 4:
        return None
    return "utf-16-be" if first[::2].count(0) > zeros // 2 else "utf-16-le"


def code_page(title: str, content: IO[bytes]) -> str:
    """Return the code page of a file that is not in UTF-8; refuse one that is not clear.

    The letters of German, and those that French, Polish or Czech share with it, are the same bytes
    in the code pages of Western and Central Europe. Other letters differ, so that nothing but
    their reader can say which are meant.
    """
    for number, line in enumerate(content, 1):
        high = bytes(byte for byte in line if byte >= 0x80)
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            raise DataError(
                f"{title}: not UTF-8 text, although it begins with the mark of UTF-8; save it in "
                "UTF-8"
            )
        if found := _UTF_8.search(line):
            raise DataError(
                f"{title}: a mixture of encodings: line {number} has {found[0].decode()!r} in "
                "UTF-8, but the file is not all UTF-8; save it in one encoding, or specify "
                "--encoding"
            )
        if unsure := [byte for byte in high if byte not in _SURE]:
            raise _unsure(title, number, unsure[0])
    return "cp1252"


def _unsure(title: str, line: int, byte: int) -> DataError:
    meant: dict[str, str] = {}
    for page in CODE_PAGES:
        sign = bytes([byte]).decode(page, "replace")
        if sign.isprintable() and sign != "\ufffd":
            meant.setdefault(sign, page)
    shown = ", ".join(f"{sign!r} with --encoding {page}" for sign, page in meant.items())
    return DataError(f"{title}, line {line}: not UTF-8 text: the byte 0x{byte:02X} is {shown}")
