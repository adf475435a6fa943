"""Values of JSON files that know where they are, so that each number of the page can be traced.

A folder of results may come from an earlier release, or be incomplete: an entry that a file does
not have is no error, and the page says that it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class _Missing:
    """The value of an entry that a file does not have."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a JSON file.

    Examples
    --------
    >>> summary = Entry("summary.json", {"scores": {"bic": -2.5}})
    >>> summary["scores"]["bic"].key
    'summary.json#/scores/bic'
    >>> summary["promise"]["eps"].value
    missing
    """

    file: str  # the name of the file
    value: Any  # the value; `MISSING` if the file does not have it
    pointer: str = ""  # where it is in the file, as a JSON pointer (RFC 6901)

    def __getitem__(self, key: str | int) -> Entry:
        """Return an entry of an object or of a list."""
        escaped = str(key).replace("~", "~0").replace("/", "~1")
        return Entry(self.file, _inside(self.value, key), f"{self.pointer}/{escaped}")

    @property
    def key(self) -> str:
        """The file, and where the value is in it."""
        return f"{self.file}#{self.pointer}"

    @property
    def exists(self) -> bool:
        """Whether the file has the entry, and it is not null."""
        return self.value is not MISSING and self.value is not None

    @property
    def is_number(self) -> bool:
        """Whether the value is a number."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    @property
    def text(self) -> str:
        """The value as text; nothing if the file does not have it."""
        return str(self.value) if self.exists else ""

    def items(self) -> Iterator[tuple[str, Entry]]:
        """Yield the names and the entries of an object; nothing for other values."""
        if isinstance(self.value, dict):
            yield from ((name, self[name]) for name in self.value)

    def each(self) -> Iterator[Entry]:
        """Yield the entries of a list; nothing for other values."""
        if isinstance(self.value, list):
            yield from (self[place] for place in range(len(self.value)))

    def texts(self) -> list[str]:
        """Return the entries of a list of texts; nothing for other values."""
        return [entry.text for entry in self.each() if isinstance(entry.value, str)]


def _inside(value: Any, key: str | int) -> Any:
    """Return an entry of a JSON value, or `MISSING`."""
    if isinstance(value, dict):
        return value.get(key, MISSING)
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    return MISSING
