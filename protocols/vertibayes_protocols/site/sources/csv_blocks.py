"""Large CSV files, read block by block with pyarrow if it is installed.

`vertibayes_protocols.site.text.read_columns` defines what a CSV file says. This reader is faster
and gives the same columns. It leaves to `read_columns` each file that has an error, whose message
names the line, each file that is not in UTF-8, and each file that pyarrow could read otherwise:
both agree if quotes stand only around fields, and no field is so long that Python refuses it.
"""

from __future__ import annotations

import csv
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.decimals import in_plain_digits
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.sources.arrow import ArrowTable, read_arrow
from vertibayes_protocols.site.text import RECOGNIZED, Choice, open_bytes, open_text, separator_in
from vertibayes_protocols.site.text_column import TextColumn

BLOCK = 1 << 20  # bytes that pyarrow reads at once
PIECE = 1 << 18  # bytes that are checked at once, in the processor's cache
LONG = 1 << 16  # bytes; Python refuses fields of more than twice as many characters


class _UnlikeError(ValueError):
    """`read_columns` has an error to raise, or could read the file differently."""


def read_csv(
    path: Path,
    *,
    keep_spaces: bool,
    choose: Choice,
    keys: str | None,
    dialect: Dialect = RECOGNIZED,
) -> dict[str, TextColumn] | None:
    """Read a CSV file of more than one block; None if `read_columns` must read it."""
    try:
        separator = _separator(path, dialect)
        with open_bytes(path)[0] as file:
            pieces = _pieces(file, separator)
            blocks = iter(lambda: b"".join(islice(pieces, BLOCK // PIECE)), b"")
            first, second = islice(blocks, 2)  # not worth it for one
            header = _header(first, separator)

            def batches(names: Sequence[str]) -> Iterator[Any]:
                return _batches(chain([first, second], blocks), header, names, keys, separator)

            table = ArrowTable(str(path), header, batches, cast="", in_order=True)
            columns = read_arrow(table, keep_spaces=keep_spaces, choose=choose, keys=keys)
        return in_plain_digits(str(path), columns, keys, separator, dialect.decimal)
    except (DataError, OSError, EOFError, ImportError, ValueError, csv.Error, zlib.error):
        return None


def _separator(path: Path, dialect: Dialect) -> str:
    with open_text(path, dialect.codec) as lines:
        separator = separator_in(path, lines, dialect)
        if lines.encoding != "utf-8-sig" or lines.tell():  # the header is not the first line
            raise _UnlikeError
    return separator


def _header(block: bytes, separator: str) -> list[str]:
    """Return the header; in a file of one column, blank lines are missing values."""
    lines = io.TextIOWrapper(io.BytesIO(block), encoding="utf-8", newline="")
    header = next(filter(None, csv.reader(lines, delimiter=separator, strict=True)), [])
    if len(header) < 2:
        raise _UnlikeError
    return header


def _batches(
    blocks: Iterator[bytes],
    header: Sequence[str],
    names: Sequence[str],
    keys: str | None,
    separator: str,
) -> Iterator[Any]:
    """Return some columns as codes and the texts of identifiers, one record batch per block."""
    import pyarrow as pa
    from pyarrow import csv as reader

    codes = pa.dictionary(pa.int32(), pa.string())
    types = {name: pa.string() if name.strip() == keys else codes for name in names}
    convert = reader.ConvertOptions(
        check_utf8=False, column_types=types, include_columns=list(names)
    )
    for place, block in enumerate(blocks):
        read = reader.ReadOptions(
            use_threads=False,
            block_size=len(block) + 1,
            column_names=header,
            skip_rows_after_names=int(not place),  # the header itself
        )
        parse = reader.ParseOptions(delimiter=separator, newlines_in_values=b'"' in block)
        yield from reader.read_csv(pa.BufferReader(block), read, parse, convert).to_batches()


def _pieces(file: IO[bytes], separator: str) -> Iterator[bytes]:
    """Return a file in pieces of whole records that both readers read alike."""
    rest = file.read(PIECE).removeprefix(BOM_UTF8)
    while more := file.read(PIECE):
        end = _end_of_records(rest, separator)
        if not end and len(rest) > BLOCK:
            raise _UnlikeError
        yield from _checked(rest[:end])
        rest = rest[end:] + more
    if _end_of_records(rest + b"\n", separator) <= len(rest):
        raise _UnlikeError  # a quote that is not closed
    yield from _checked(rest)


def _end_of_records(block: bytes, separator: str) -> int:
    """Return where the last whole record ends; check the quotes and the length of fields."""
    data = np.frombuffer(block, np.uint8)
    lines = data == ord("\n")
    ends = lines | (data == ord(separator)) | (data == ord("\r"))
    if b'"' in block:
        quotes = data == ord('"')
        within = np.logical_xor.accumulate(quotes)  # from the opening quote to the closing one
        texts = ~(ends | quotes)
        before_opening, after_closing = texts[:-1] & within[1:], texts[1:] & ~within[:-1]
        if (before_opening & quotes[1:]).any() or (after_closing & quotes[:-1]).any():
            raise _UnlikeError
        lines &= ~within
        ends &= ~within
    parts = ends[: len(ends) // LONG * LONG].reshape(-1, LONG)
    if not parts.any(axis=1).all():
        raise _UnlikeError
    return len(lines) - int(lines[::-1].argmax()) if lines.any() else 0


def _checked(records: bytes) -> Iterator[bytes]:
    """Return records, without blank lines before them, if they are UTF-8."""
    if not records.isascii():
        records.decode()
    records = records.lstrip(b"\r\n")
    if records.startswith(BOM_UTF8):  # pyarrow would remove it
        raise _UnlikeError
    if records:
        yield records
