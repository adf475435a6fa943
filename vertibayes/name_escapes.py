"""Names of nodes and states in files whose readers do not take every character.

A character that a reader does not take becomes ``_xHHHH_``, its code point in at least four
hexadecimal digits, as in names in SQL/XML (ISO/IEC 9075-14, 9.1): ``age (years)`` becomes
``age_x0020__x0028_years_x0029_``. A name whose characters are all taken, yet not the name as a
whole, gets a leading ``_``: ``1.5`` becomes ``_1.5``. All other names stay as they are. The mapping
is injective, and `Escapes.decode` reverses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4,6})_")
_LIKE_ESCAPED = r"_(?=x[0-9A-Fa-f]{4})"
_LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Escapes:
    """What the readers of a format take as a name.

    Parameters
    ----------
    refused : str
        A regular expression that matches each single character that a reader does not take.
    taken : re.Pattern
        Matches the whole of each name that the readers take, among names without such characters.
    exempt : re.Pattern
        Matches the whole of names that stay as they are, whatever their characters.
    """

    refused: str
    taken: re.Pattern[str]
    exempt: re.Pattern[str] = re.compile(r"(?!)")

    def encode(self, name: str) -> str:
        """Return a name as the readers take it."""
        if self.exempt.fullmatch(name):
            return name
        text = re.sub(f"{_LIKE_ESCAPED}|{self.refused}", _escape, name)
        return "_" + text if self._needs_mark(text) else text

    def decode(self, text: str) -> str:
        """Reverse `encode`."""
        if text.startswith("_") and self._needs_mark(text[1:]):
            text = text[1:]
        return _ESCAPED.sub(_unescape, text)

    def _needs_mark(self, text: str) -> bool:
        """Whether a name needs a leading ``_``; one that looks as if it had got it needs it too."""
        if self.exempt.fullmatch(text):
            return False
        if not self.taken.fullmatch(text):
            return True
        return text.startswith("_") and self._needs_mark(text[1:])


def _escape(found: re.Match[str]) -> str:
    return f"_x{ord(found[0]):04X}_"


def _unescape(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if code <= _LAST_CODE_POINT else found[0]
