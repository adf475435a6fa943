"""Names of nodes and states in files whose readers do not accept every character.

A character that a reader does not accept becomes ``_xHHHH_``, its code point in at least four
hexadecimal digits, as in names in SQL/XML (ISO/IEC 9075-14, 9.1): ``age (years)`` becomes
``age_x0020__x0028_years_x0029_``. If a reader accepts all characters of a name but not the whole
name, the name gets a leading ``_``: ``1.5`` becomes ``_1.5``. All other names are unchanged. The
mapping is injective, and `Escapes.decode` reverses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4,6})_")
_LIKE_ESCAPED = r"_(?=x[0-9A-Fa-f]{4})"
_LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Escapes:
    """The names that the readers of a format accept.

    Examples
    --------
    >>> letters = Escapes("[^A-Za-z0-9_.]", re.compile("[A-Za-z_].*"))
    >>> [letters.encode(name) for name in ("blood.pressure", "1.5", "a-b")]
    ['blood.pressure', '_1.5', 'a_x002D_b']
    >>> letters.decode("a_x002D_b")
    'a-b'
    """

    refused: str  # a regular expression that matches each character that a reader does not accept
    taken: re.Pattern[str]
    exempt: re.Pattern[str] = re.compile(r"(?!)")

    def encode(self, name: str) -> str:
        """Return a name in the form that readers accept."""
        if self.exempt.fullmatch(name):
            return name
        text = re.sub(f"{_LIKE_ESCAPED}|{self.refused}", _escape, name)
        return "_" + text if self._needs_mark(text) else text

    def decode(self, text: str) -> str:
        """Return the name that `encode` escaped."""
        if text.startswith("_") and self._needs_mark(text[1:]):
            text = text[1:]
        return _ESCAPED.sub(_unescape, text)

    def _needs_mark(self, text: str) -> bool:
        """Whether a name needs a leading ``_``; a name that looks as if it had one needs it too."""
        if self.exempt.fullmatch(text):
            return False
        if not self.taken.fullmatch(text):
            return True
        return text.startswith("_") and self._needs_mark(text[1:])


def _escape(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):04X}_"


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if code <= _LAST_CODE_POINT else match[0]
