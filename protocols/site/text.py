"""Columns of text, read from CSV files and checked; each distinct text is kept once."""

from __future__ import annotations

import csv
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.errors import DataError
from protocols.site.formats import encoding_error, open_text


@dataclass(frozen=True)
class TextColumn:
    """A column of text.

    Parameters
    ----------
    texts : tuple of str
        The distinct texts, in the order of their first record.
    places : ndarray of shape (n,), dtype int
        The place in `texts` of each record's text.

    Examples
    --------
    >>> TextColumn.of(["yes", None, "yes"])
    TextColumn(texts=('yes', ''), places=array([0, 1, 0]))
    """

    texts: tuple[str, ...]
    places: NDArray[np.integer]

    @classmethod
    def of(cls, values: Iterable[object]) -> TextColumn:
        """Make a column of any values: None and NaN become empty, other values their `str`."""
        seen: dict[str, int] = {}
        places = array("q")
        for value in values:
            text = "" if _is_missing(value) else str(value)
            places.append(seen.setdefault(text, len(seen)))
        return cls(tuple(seen), np.array(places, np.int64))

    def __len__(self) -> int:
        return len(self.places)

    def take(self, order: NDArray[np.integer]) -> TextColumn:
        """Return the column with some of its records, or with another order."""
        return TextColumn(self.texts, self.places[order])


def _is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or pandas' NA, which is neither equal nor unequal."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def read_columns(path: str | Path, *, keep_spaces: bool = False) -> dict[str, TextColumn]:
    """Read a CSV file, gzipped or not: a header, then records of text.

    Parameters
    ----------
    path : str or Path
        The file.
    keep_spaces : bool, default=False
        Whether to keep the spaces around names and values.

    Raises
    ------
    DataError
        If the file is not found, is not a CSV file in UTF-8, has no header or no records, if a
        column appears twice or has no name, or if a record has more or fewer fields than the
        header. The message names the file and the line.
    """
    path = Path(path)
    try:
        with open_text(path) as lines:
            return _columns(path, csv.reader(lines, strict=True), keep_spaces)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: it is a folder, not a file") from None
    except UnicodeDecodeError:
        raise encoding_error(path) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _columns(path: Path, reader: Iterator[list[str]], keep_spaces: bool) -> dict[str, TextColumn]:
    numbered = _numbered(path, reader)
    _, header = next(numbered, (0, []))
    if not header:
        raise DataError(f"{path}: the file is empty")
    if len(header) == 1 and (separator := next((c for c in ";\t|" if c in header[0]), None)):
        raise DataError(
            f"{path}: the fields are separated by {separator!r}; export the file with commas"
        )
    header = header if keep_spaces else [name.strip() for name in header]
    check_names(str(path), header)
    seen: list[dict[str, int]] = [{} for _ in header]
    places = [array("i") for _ in header]
    for line, fields in numbered:
        if len(fields) != len(header):
            raise DataError(
                f"{path}, line {line}: {len(fields)} fields, but the header has {len(header)}"
            )
        for texts, column, field in zip(seen, places, fields, strict=True):
            text = field if keep_spaces else field.strip()
            column.append(texts.setdefault(text, len(texts)))
    if not places[0]:
        raise DataError(f"{path}: the file has a header but no records")
    columns = zip(header, seen, places, strict=True)
    return {name: TextColumn(tuple(t), np.array(p, np.int32)) for name, t, p in columns}


def _numbered(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Return the records with their lines.

    A blank line is a missing value if the file has a single column; otherwise it is ignored.
    """
    line, single = 0, False
    try:
        for fields in reader:
            line = int(getattr(reader, "line_num", line + 1))
            single = single or (len(fields) == 1 and line == 1)
            if fields or single:
                yield line, fields or [""]
    except csv.Error as error:
        reason = "a quote that is not closed" if "end of data" in str(error) else error
        raise DataError(f"{path}, line {line + 1}: {reason}") from None


def check_names(source: str, names: Sequence[str]) -> None:
    """Refuse columns without a name, and columns with the same name.

    Raises
    ------
    DataError
        If a column has no name, or a name appears twice.
    """
    for place, name in enumerate(names):
        if not name.strip():
            raise DataError(f"{source}: column {place + 1} has no name")
        if name in names[:place]:
            raise DataError(f"{source}: the column {name!r} appears twice")


def empty_at_end(columns: Mapping[str, TextColumn]) -> int:
    """Return the number of records at the end that are empty in all columns."""
    return min(map(_empty_at_end, columns.values()), default=0)


def _empty_at_end(column: TextColumn) -> int:
    empty = np.array([not text.strip() for text in column.texts], bool)
    filled = np.flatnonzero(~empty[column.places])
    return len(column) - (int(filled[-1]) + 1 if len(filled) else 0)


def same_length(source: str, columns: Mapping[str, TextColumn]) -> int:
    """Return the number of records of columns.

    Raises
    ------
    DataError
        If the columns differ in length, or there are no columns.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if not lengths or min(lengths.values()) != max(lengths.values()):
        raise DataError(f"{source}: expected at least one column, all of the same length")
    return next(iter(lengths.values()))
