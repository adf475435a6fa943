"""Columns of text, read from CSV files and checked; each distinct text is kept once."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import IO, TextIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.column_builder import BATCH, ColumnBuilder, KeyBuilder

Choice: TypeAlias = Callable[[Sequence[str]], Sequence[str]]  # the names that are read, of all
GZIP = b"\x1f\x8b"
LOOKED_AT = 4096  # bytes
AS_CSV = "save the sheet as 'CSV UTF-8 (comma delimited)' and give that file"
KINDS = {
    b"PAR1": "a Parquet file that is gzipped; unpack it",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": f"an Excel workbook (.xls); {AS_CSV}",
}


@dataclass(frozen=True)
class TextColumn:
    """A column of text.

    Examples
    --------
    >>> TextColumn.of(["yes", None, "yes"])
    TextColumn(texts=('yes', ''), places=array([0, 1, 0]))
    """

    texts: Sequence[str]  # the distinct texts, in the order of their first record
    places: NDArray[np.integer]  # the place in `texts` of each record's text

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


def read_columns(
    path: str | Path,
    *,
    keep_spaces: bool = False,
    choose: Choice = list,
    keys: str | None = None,
) -> dict[str, TextColumn]:
    """Read a CSV file, gzipped or not: a header, then records of text."""
    path = Path(path)
    try:
        with open_text(path) as lines:
            return _columns(path, csv.reader(lines, strict=True), keep_spaces, choose, keys)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: it is a folder, not a file") from None
    except UnicodeDecodeError:
        raise encoding_error(path) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _columns(
    path: Path, reader: Iterator[list[str]], keep_spaces: bool, choose: Choice, keys: str | None
) -> dict[str, TextColumn]:
    numbered = _numbered(path, reader)
    _, header = next(numbered, (0, []))
    if not header:
        raise DataError(f"{path}: the file is empty")
    if len(header) == 1 and (separator := next((c for c in ";\t|" if c in header[0]), None)):
        commas = (
            'python3 -c "import csv, sys; csv.writer(sys.stdout).writerows('
            f'csv.reader(sys.stdin, delimiter={separator!r}))"'
        )
        raise DataError(
            f"{path}: the fields are separated by {separator!r}; export the file with commas, or "
            f"write them: {_saved(path, commas)}"
        )
    header = header if keep_spaces else [name.strip() for name in header]
    check_names(str(path), header)
    builders = builders_of(choose(header), keys)
    records = _whole(path, len(header), numbered)
    some = False
    while batch := list(islice(records, BATCH)):
        some = True
        for name, fields in zip(header, zip(*batch, strict=True), strict=True):
            if name in builders:
                builders[name].add(fields if keep_spaces else map(str.strip, fields))
    if not some:
        raise DataError(f"{path}: the file has a header but no records")
    return finished(builders)


def builders_of(names: Sequence[str], keys: str | None) -> dict[str, ColumnBuilder]:
    """Return a builder of each column; the column `keys` has identifiers."""
    return {name: KeyBuilder() if name == keys else ColumnBuilder() for name in names}


def finished(builders: Mapping[str, ColumnBuilder]) -> dict[str, TextColumn]:
    """Return the columns that are built."""
    return {name: TextColumn(*builder.finish()) for name, builder in builders.items()}


def _whole(
    path: Path, width: int, numbered: Iterator[tuple[int, list[str]]]
) -> Iterator[list[str]]:
    """Refuse a record that has more or fewer fields than the header."""
    for line, fields in numbered:
        if len(fields) != width:
            found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            raise DataError(f"{path}, line {line}: {found}, but the header has {width}")
        yield fields


def _numbered(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Return the records with their lines; a blank line is a missing value in a single column."""
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
    """Refuse columns without a name, and columns with the same name."""
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
    """Return the number of records of columns."""
    lengths = {name: len(column) for name, column in columns.items()}
    if not lengths or min(lengths.values()) != max(lengths.values()):
        raise DataError(f"{source}: expected at least one column, all of the same length")
    return next(iter(lengths.values()))


def open_text(path: Path) -> TextIO:
    """Open a CSV file in UTF-8, gzipped or not, whatever its name."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a CSV file, unpacked if it is gzipped; refuse other kinds of files."""
    binary = _open(path)
    try:
        _check_kind(path, binary.read(LOOKED_AT))
        binary.seek(0)
        return binary
    except BaseException:
        binary.close()
        raise


def _open(path: Path) -> IO[bytes]:
    file = path.open("rb")
    if file.peek(2)[:2] != GZIP:
        return file
    file.close()
    return cast("IO[bytes]", gzip.open(path, "rb"))


def _check_kind(path: Path, first: bytes) -> None:
    if first.startswith(b"PK\x03\x04"):
        raise DataError(f"{path}: {_zipped(path)}")
    for magic, kind in KINDS.items():
        if first.startswith(magic):
            raise DataError(f"{path}: {kind}")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path}: {_utf_16(path)}")
    zeros = first.count(0)
    if zeros > len(first) // 4:
        even = first[::2].count(0) > zeros // 2
        raise DataError(f"{path}: {_utf_16(path, 'UTF-16BE' if even else 'UTF-16LE')}")


def _zipped(path: Path) -> str:
    names: list[str] = []
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.startswith("xl/") for name in names):
        return f"an Excel workbook (.xlsx); {AS_CSV}"
    if "content.xml" in names:
        return f"an OpenDocument file; {AS_CSV}"
    return "a ZIP archive; unpack it and give the CSV file in it"


def _utf_16(path: Path, name: str = "UTF-16") -> str:
    saved = _saved(path, f"iconv -f {name} -t UTF-8")
    return f"text in UTF-16; save it in UTF-8, as with: {saved}"


def _saved(path: Path, *steps: str) -> str:
    """Return the command that saves in a new file what steps make of a file, which is unpacked."""
    with path.open("rb") as file:
        first, *more = ["gzip -dc"] * (file.read(2) == GZIP) + [*steps]
    return " | ".join([f"{first} < {quote(str(path))}", *more]) + " > NEW.csv"


def encoding_error(path: Path) -> DataError:
    """Return the error about a file that is not in UTF-8; it names the first such line."""
    with _open(path) as binary:
        for line, content in enumerate(binary, 1):
            try:
                content.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = error.object[error.start]  # without a byte order mark
                # a mark that says UTF-8 wrongly is left out
                unmarked = ["tail -c +4"] * (line == 1 and content.startswith(codecs.BOM_UTF8))
                saved = _saved(path, *unmarked, "iconv -f WINDOWS-1252 -t UTF-8")
                return DataError(
                    f"{path}, line {line}: not UTF-8 text (byte 0x{byte:02X}), probably Latin-1 "
                    f"(Windows-1252); save it in UTF-8, as with: {saved}"
                )
    return DataError(f"{path}: not UTF-8 text")
