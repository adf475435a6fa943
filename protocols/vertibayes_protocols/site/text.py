"""Columns of text, read from CSV files and checked."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, TextIO, TypeAlias, cast

import numpy as np

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.column_builder import BATCH, ColumnBuilder, KeyBuilder
from vertibayes_protocols.site.decimals import in_plain_digits
from vertibayes_protocols.site.dialect import (
    SAMPLE,
    Dialect,
    code_page,
    hinted,
    marked,
    separator_of,
)
from vertibayes_protocols.site.text_column import TextColumn

Choice: TypeAlias = Callable[[Sequence[str]], Sequence[str]]  # the names that are read, of all
RECOGNIZED = Dialect()  # from the file
GZIP = b"\x1f\x8b"
LOOKED_AT = 4096  # bytes
AS_CSV = (
    "save the sheet as 'CSV UTF-8 (comma delimited)' and give that file, or install a reader: "
    "pip install 'vertibayes[excel]'"
)
OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
KINDS = {
    b"PAR1": "a Parquet file that is gzipped; unpack it",
    OLD_EXCEL: f"an Excel workbook (.xls); {AS_CSV}",
}


def read_columns(
    path: str | Path,
    *,
    keep_spaces: bool = False,
    choose: Choice = list,
    keys: str | None = None,
    dialect: Dialect = RECOGNIZED,
) -> dict[str, TextColumn]:
    """Read a CSV file, gzipped or not: a header, then records of text."""
    path = Path(path)
    with _named_errors(path, dialect):
        try:
            return _read(path, dialect.codec, dialect, keep_spaces, choose, keys)
        except UnicodeDecodeError as error:
            if dialect.codec is not None or error.encoding != "utf-8":
                raise
            with _open(path) as content:
                codec = code_page(str(path), content)
        return _read(path, codec, dialect, keep_spaces, choose, keys)


@contextmanager
def _named_errors(path: Path, dialect: Dialect) -> Iterator[None]:
    """Name the file in what cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: it is a folder, not a file") from None
    except UnicodeError:  # what is not UTF-8 has been recognized
        raise DataError(f"{path}: not text in {dialect.encoding or 'UTF-16'}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _read(
    path: Path,
    codec: str | None,
    dialect: Dialect,
    keep_spaces: bool,
    choose: Choice,
    keys: str | None,
) -> dict[str, TextColumn]:
    with open_text(path, codec) as lines:
        separator = separator_in(path, lines, dialect)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        columns = _columns(path, reader, keep_spaces, choose, keys)
    return in_plain_digits(str(path), columns, keys, separator, dialect.decimal)


def separator_in(path: Path, lines: TextIO, dialect: Dialect) -> str:
    """Return the separator of a file, which is then at its header."""
    sample = lines.read(SAMPLE)
    lines.seek(0)
    hint = hinted(sample)
    if hint is not None:
        lines.readline()
    whole = len(sample) < SAMPLE
    return dialect.delimiter or hint or separator_of(str(path), sample, is_whole=whole)


def _columns(
    path: Path, reader: Iterator[list[str]], keep_spaces: bool, choose: Choice, keys: str | None
) -> dict[str, TextColumn]:
    numbered = _numbered(path, reader)
    _, header = next(numbered, (0, []))
    if not header:
        raise DataError(f"{path}: the file is empty")
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


def open_text(path: Path, codec: str | None = None) -> TextIO:
    """Open a CSV file, gzipped or not, whatever its name; in UTF-8 or UTF-16 without a codec."""
    binary, mark = open_bytes(path)
    return io.TextIOWrapper(binary, encoding=codec or mark or "utf-8-sig", newline="")


def open_bytes(path: Path) -> tuple[IO[bytes], str | None]:
    """Open a CSV file, unpacked if it is gzipped, and return the encoding that it shows.

    Other kinds of files are refused.
    """
    binary = _open(path)
    try:
        first = binary.read(LOOKED_AT)
        _check_kind(path, first)
        binary.seek(0)
        return binary, marked(first)
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


def is_workbook(path: Path) -> bool:
    """Whether a file is a workbook of Excel or OpenDocument."""
    try:
        with path.open("rb") as file:
            first = file.read(len(OLD_EXCEL))
    except OSError:
        return False  # the reader of CSV says why
    if first.startswith(b"PK\x03\x04"):
        return _zipped(path).endswith(AS_CSV)
    return first == OLD_EXCEL


def _zipped(path: Path) -> str:
    names: list[str] = []
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.startswith("xl/") for name in names):
        return f"an Excel workbook (.xlsx); {AS_CSV}"
    if "content.xml" in names:
        return f"an OpenDocument file; {AS_CSV}"
    return "a ZIP archive; unpack it and give the CSV file in it"
