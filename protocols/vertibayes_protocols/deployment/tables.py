"""Configuration files: TOML of which every key is checked; errors name the file, key and line.

The standard library's parser keeps no positions. The line of a key is computed when an error needs
it: the shortest beginning of the file that parses and has the key ends on that line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from vertibayes_protocols.settings import REQUIRED, Setting

T = TypeVar("T")

Keys = tuple[str, ...]

SHOWN = 4  # files of a folder that an error lists
QUOTES = "put a path with \\ in single quotes: 'C:\\new\\table.csv'"

_POSITION = re.compile(r"(.*?) \(at (?:line (\d+), column \d+|(end of document))\)")


@dataclass(frozen=True)
class TomlFile:
    """A file's text and values; `error` makes the errors about it."""

    path: Path
    text: str
    values: Mapping[str, Any] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file."""
        try:
            content = path.read_bytes()
            text = content.decode("utf-8-sig").replace("\r\n", "\n")
            return cls(path, text, tomllib.loads(text))
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise ValueError(f"{path}, line {line}: not UTF-8 text; save it as UTF-8") from None
        except FileNotFoundError:
            raise ValueError(f"{path}: no such file") from None
        except IsADirectoryError:
            raise ValueError(f"{path}: it is a folder; {_files_in(path)}") from None
        except tomllib.TOMLDecodeError as error:
            raise ValueError(_placed(path, text, str(error))) from None
        except RecursionError:
            raise ValueError(f"{path}: tables or arrays are nested too deeply") from None
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror})") from None

    def error(self, keys: Keys, reason: str) -> ValueError:
        """Return the error about a key, with the line of the key or of the table that it is in."""
        name = ".".join(keys)
        while keys:
            line = self.line(keys)
            if line is not None:
                return ValueError(f"{self.path}, line {line}: {name}: {reason}")
            keys = keys[:-1]
        return ValueError(f"{self.path}: {name}: {reason}")

    def line(self, keys: Keys) -> int | None:
        """Return the line of a key; None if the file does not have the key."""
        if not _has(self.values, keys):
            return None
        lines = self.text.splitlines(keepends=True)
        whole = 0  # lines of the longest beginning that parses and does not have the key
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
        """Return a table of the file; an empty table if the file does not have it."""
        return Table(self, (), self.values).table(name)

    def taken(self, name: str, settings: Iterable[Setting]) -> dict[str, Any]:
        """Take the values of a table, which has no other keys."""
        with self.table(name) as table:
            return table.take_all(settings)

    def check(self, known: Collection[str]) -> None:
        """Refuse tables that this kind of file does not have."""
        for name in self.values:
            if name not in known:
                raise self.error((name,), f"unknown table; expected {', '.join(known)}")


def _files_in(folder: Path) -> str:
    """Say which file may be meant by a folder: a study first."""
    files = [*folder.glob("*.toml"), *folder.glob("*/*.toml")]
    files.sort(key=lambda file: (file.name != "study.toml", file))
    if not files:
        return "expected a study.toml or site.toml; `vertibayes enrol` writes one"
    more = f" and {len(files) - SHOWN} more" if files[SHOWN:] else ""
    return f"specify a file in it: {', '.join(map(str, files[:SHOWN]))}{more}"


def _placed(path: Path, text: str, error: str) -> str:
    """Return a parser's error with its line in front."""
    match = _POSITION.fullmatch(error)
    if match is None:
        return f"{path}: not TOML ({error})"
    line = match[2] or str(len(text.splitlines()))
    advice = f"; {QUOTES}" if "escape" in match[1] or "hex value" in match[1] else ""
    return f"{path}, line {line}: not TOML ({match[1]}){advice}"


def _has(values: Mapping[str, Any], keys: Keys) -> bool:
    value: Any = values
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


class Table:
    """A table of a file. Readers take its keys; `end` refuses the keys that nobody has taken.

    As a context manager it ends with the block, unless the block raises.

    Each method that takes a key raises ValueError if the value is not as expected, or if the key is
    missing and has no default. The message names the file, the line and the key.
    """

    def __init__(self, file: TomlFile, keys: Keys, values: Mapping[str, Any]) -> None:
        self.file, self.keys, self.values = file, keys, values
        self._asked: dict[str, None] = {}  # the known keys

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.end()

    def __contains__(self, key: str) -> bool:
        self._asked[key] = None
        return key in self.values

    def error(self, key: str, reason: str) -> ValueError:
        """Return the error about one of its keys."""
        return self.file.error((*self.keys, key), reason)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Give a ValueError of the block the line of one of its keys."""
        try:
            yield
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def table(self, key: str) -> Table:
        """Take a table; an empty table if the key is missing."""
        self._asked[key] = None
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.error(key, f"must be a table, got {values!r}")
        return Table(self.file, (*self.keys, key), values)

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Take all its tables, with their names."""
        for key in self.values:
            yield key, self.table(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Take a text."""
        text: str = self._take(key, default, str, "a text")
        if not text.strip():
            raise self.error(key, "it is empty; expected a text")
        return text

    def take(self, setting: Setting) -> Any:
        """Take the value of a setting; its default if the table does not have it.

        A path is relative to the file's folder.
        """
        if setting.old in self.values:
            raise self.error(setting.old, f"{setting.old} is now called {setting.name}")
        if setting.name not in self and setting.default is not REQUIRED:
            return setting.default
        given = self._take(setting.name, None, object, setting.expected)
        with self.at(setting.name):
            value = setting.checked(given)
        is_path = setting.kind in ("path", "names or file") and isinstance(value, str)
        return self.path(setting.name) if is_path else value

    def take_all(self, settings: Iterable[Setting]) -> dict[str, Any]:
        """Take the values of several settings, by name."""
        return {setting.name: self.take(setting) for setting in settings}

    def take_each(self, setting: Setting) -> dict[str, Any]:
        """Take all keys, each as a setting."""
        return {name: self.take(replace(setting, name=name)) for name in self.values}

    def path(self, key: str, default: str | None = None) -> Path:
        """Take a path, which is relative to the file's folder."""
        text = self.text(key, default)
        if not text.isprintable():  # "C:\\new" has a new line
            raise self.error(key, f"{text!r} has control characters; {QUOTES}")
        return self.file.path.parent / text

    def made(self, key: str, make: Callable[[str], T], default: str | None = None) -> T:
        """Take a text and return what `make` makes of it; its ValueErrors get the key's line."""
        text = self.text(key, default)
        with self.at(key):
            return make(text)

    def end(self) -> None:
        """Refuse keys that nobody has taken."""
        for key in self.values:
            if key not in self._asked:
                raise self.error(key, f"unknown key; expected one of {', '.join(self._asked)}")

    def _take(self, key: str, default: Any, kind: Any, expected: str) -> Any:
        self._asked[key] = None
        value = self.values.get(key, default)
        if value is None:
            raise self.error(key, f"missing; expected {expected}")
        if not isinstance(value, kind):
            raise self.error(key, f"must be {expected}, got {value!r}")
        return value


def quoted(text: str) -> str:
    """Return a text as TOML quotes it; control characters by their numbers."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in plain) + '"'
