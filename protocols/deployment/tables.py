"""Configuration files: TOML whose every key is looked at, and errors that name file, key and line.

The parser of the standard library keeps no positions. A key's line is found when an error needs it:
it is where the shortest beginning of the file ends that parses and has the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

Keys = tuple[str, ...]

QUOTES = "a path with \\ stands in single quotes: 'C:\\new\\table.csv'"

_POSITION = re.compile(r"(.*?) \(at (?:line (\d+), column \d+|(end of document))\)")


@dataclass(frozen=True)
class TomlFile:
    """A file's text and values; `error` makes the errors about it."""

    path: Path
    text: str
    values: Mapping[str, Any] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file.

        Raises
        ------
        ValueError
            If there is none, or it is no TOML: it names the file and the line.
        """
        try:
            text = _text(path)
            return cls(path, text, tomllib.loads(text))
        except FileNotFoundError:
            raise ValueError(f"{path}: no such file") from None
        except IsADirectoryError:
            raise ValueError(f"{path}: a folder, a file is wanted") from None
        except tomllib.TOMLDecodeError as error:
            raise ValueError(_placed(path, text, str(error))) from None
        except RecursionError:
            raise ValueError(f"{path}: tables or arrays too deep within each other") from None
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror})") from None

    def error(self, keys: Keys, reason: str) -> ValueError:
        """Return the error about a key; that of the next table above it that is there."""
        name = ".".join(keys)
        while keys:
            line = self.line(keys)
            if line is not None:
                return ValueError(f"{self.path}, line {line}: {name}: {reason}")
            keys = keys[:-1]
        return ValueError(f"{self.path}: {name}: {reason}")

    def line(self, keys: Keys) -> int | None:
        """Return the line on which a key stands; None if there is none."""
        if not _has(self.values, keys):
            return None
        lines = self.text.splitlines(keepends=True)
        whole = 0  # lines of the longest beginning that parses and lacks the key
        for end in range(1, len(lines) + 1):
            try:
                values = tomllib.loads("".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
            if _has(values, keys):
                break
            whole = end
        return whole + 1

    def table(self, name: str) -> Table:
        """Return a table of the file; an empty one if it is not there."""
        return Table(self, (), self.values).table(name)

    def check(self, known: Collection[str]) -> None:
        """Refuse tables that are unknown here.

        Raises
        ------
        ValueError
            It names them.
        """
        for name in self.values:
            if name not in known:
                raise self.error((name,), f"unknown here; known are {', '.join(known)}")


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: not in UTF-8: save it as UTF-8") from None


def _placed(path: Path, text: str, error: str) -> str:
    """Return a parser's error with its line in front."""
    found = _POSITION.fullmatch(error)
    if found is None:
        return f"{path}: no TOML ({error})"
    line = found[2] or str(len(text.splitlines()))
    advice = f"; {QUOTES}" if "escape" in found[1] or "hex value" in found[1] else ""
    return f"{path}, line {line}: no TOML ({found[1]}){advice}"


def _has(values: Mapping[str, Any], keys: Keys) -> bool:
    found: Any = values
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


class Table:
    """A table of a file, from which keys are taken; those left over in the end are errors.

    Each method that takes a key raises ValueError if its value is not of the kind wanted, or if it
    is not there and no default is given: it names file, line and key.
    """

    def __init__(self, file: TomlFile, keys: Keys, values: Mapping[str, Any]) -> None:
        self.file, self.keys, self.values = file, keys, values
        self._asked: dict[str, None] = {}  # which keys are known here

    def __contains__(self, key: str) -> bool:
        self._asked[key] = None
        return key in self.values

    def error(self, key: str, reason: str) -> ValueError:
        """Return the error about one of its keys."""
        return self.file.error((*self.keys, key), reason)

    def table(self, key: str) -> Table:
        """Take a table; an empty one if it is not there."""
        self._asked[key] = None
        found = self.values.get(key, {})
        if not isinstance(found, dict):
            raise self.error(key, "a table is wanted")
        return Table(self.file, (*self.keys, key), found)

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Take all that is in it, tables by name."""
        for key in self.values:
            yield key, self.table(key)

    def texts(self) -> dict[str, str]:
        """Take all that is in it, texts by name."""
        return {key: self.text(key) for key in self.values}

    def text(self, key: str, default: str | None = None) -> str:
        """Take a text."""
        found: str = self._take(key, default, str, "a text")
        if not found.strip():
            raise self.error(key, "empty")
        return found

    def flag(self, key: str, default: bool) -> bool:
        """Take true or false."""
        return bool(self._take(key, default, bool, "true or false"))

    def whole(
        self, key: str, default: int | None = None, *, least: int = 0, most: int | None = None
    ) -> int:
        """Take a whole number."""
        found: int = self._take(key, default, int, "a whole number")
        if isinstance(found, bool) or found < least:
            raise self.error(key, f"a whole number from {least} on is wanted")
        if most is not None and found > most:
            raise self.error(key, f"a whole number from {least} to {most} is wanted")
        return found

    def number(self, key: str, default: float | None = None) -> float:
        """Take a number."""
        found = self._take(key, default, (int, float), "a number")
        if isinstance(found, bool):
            raise self.error(key, "a number is wanted")
        return float(found)

    def names(self, key: str, default: Collection[str] | None = None) -> tuple[str, ...]:
        """Take a list of texts."""
        found = self._take(key, default, (list, tuple), "a list of texts")
        if not all(isinstance(text, str) for text in found):
            raise self.error(key, "a list of texts is wanted")
        if len(set(found)) < len(found):
            raise self.error(key, "a text stands twice")
        return tuple(found)

    def numbers(self, key: str, default: Collection[float] | None = None) -> list[float]:
        """Take a list of numbers."""
        found = self._take(key, default, list, "a list of numbers")
        if any(isinstance(item, bool) or not isinstance(item, int | float) for item in found):
            raise self.error(key, "a list of numbers is wanted")
        return list(found)

    def path(self, key: str, default: str | None = None) -> Path:
        """Take a path: relative to the file's folder."""
        text = self.text(key, default)
        if not text.isprintable():  # "C:\\new" has a new line
            raise self.error(key, f"{text!r} has control characters; {QUOTES}")
        return self.file.path.parent / text

    def made(self, key: str, make: Callable[[str], T], default: str | None = None) -> T:
        """Take a text and make something of it; its ValueErrors get a place."""
        text = self.text(key, default)
        try:
            return make(text)
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def end(self) -> None:
        """Refuse keys that nobody has taken.

        Raises
        ------
        ValueError
            It names the first, and those that are known.
        """
        for key in self.values:
            if key not in self._asked:
                raise self.error(key, f"unknown here; known are {', '.join(self._asked)}")

    def _take(self, key: str, default: Any, kind: Any, wanted: str) -> Any:
        self._asked[key] = None
        found = self.values.get(key, default)
        if found is None:
            raise self.error(key, f"lacking; {wanted} is wanted")
        if not isinstance(found, kind):
            raise self.error(key, f"{wanted} is wanted")
        return found
