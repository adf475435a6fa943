"""Read a table wherever it lies; the kind of a file is recognized by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.sources.arrow import ArrowTable, library, read_arrow
from vertibayes_protocols.site.sources.csv_blocks import read_csv
from vertibayes_protocols.site.sources.database import Database, open_duckdb, open_postgresql
from vertibayes_protocols.site.sources.excel import read_excel
from vertibayes_protocols.site.text import RECOGNIZED, Choice, read_columns
from vertibayes_protocols.site.text_column import TextColumn

EXTRA = "parquet"
BATCH = 1 << 16  # records
CAST = "export the column as text or numbers"
PARQUET = b"PAR1"
DUCKDB = b"DUCK"  # from the eighth byte on


@contextmanager
def open_parquet(path: Path) -> Iterator[ArrowTable]:
    """Open a Parquet file, or all ``*.parquet`` files of a folder in the order of their names."""
    arrow = library(str(path), "pyarrow", EXTRA)
    parquet = library(str(path), "pyarrow.parquet", EXTRA)
    with ExitStack() as stack:
        try:
            parts = [stack.enter_context(_opened(parquet, part)) for part in _parts(path)]
            names = parts[0].schema_arrow.names
            for part, file in zip(_parts(path), parts, strict=True):
                if sorted(file.schema_arrow.names) != sorted(names):
                    raise DataError(f"{part}: other columns than those of {_parts(path)[0].name}")
            yield ArrowTable(str(path), names, lambda chosen: _batches(parts, chosen), CAST)
        except (arrow.ArrowException, OSError) as error:
            first = str(error).partition("\n")[0]
            raise DataError(f"{path}: cannot be read as Parquet ({first})") from None


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    parts = sorted(path.rglob("*.parquet"))
    if not parts:
        raise DataError(f"{path}: it is a folder without *.parquet files")
    return parts


def _opened(parquet: Any, path: Path) -> Any:
    """Open a file; its texts are read as codes, as the file has them."""
    import pyarrow as pa

    schema = parquet.read_schema(path)
    texts = [
        f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
    ]
    return parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)


def _batches(parts: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    for part in parts:
        for batch in part.iter_batches(BATCH, columns=list(names), use_threads=False):
            yield batch.select(list(names))  # in this order, not in the file's


def read_table(
    source: Path | Database,
    *,
    keep_spaces: bool = False,
    choose: Choice = list,
    keys: str | None = None,
    dialect: Dialect = RECOGNIZED,
) -> dict[str, TextColumn]:
    """Read the columns of a file or of a database; the dialect is that of a CSV file."""
    if isinstance(source, Database):
        with (open_postgresql if isinstance(source.where, str) else open_duckdb)(source) as table:
            return read_arrow(table, keep_spaces=keep_spaces, choose=choose, keys=keys)
    _refuse_url(source)
    if _is_parquet(source):
        with open_parquet(source) as table:
            return read_arrow(table, keep_spaces=keep_spaces, choose=choose, keys=keys)
    columns = read_excel(source, keep_spaces=keep_spaces, choose=choose, keys=keys)
    if columns is not None:
        return columns
    columns = read_csv(source, keep_spaces=keep_spaces, choose=choose, keys=keys, dialect=dialect)
    if columns is not None:
        return columns
    return read_columns(source, keep_spaces=keep_spaces, choose=choose, keys=keys, dialect=dialect)


def read_names(
    path: Path, *, keep_spaces: bool = False, dialect: Dialect = RECOGNIZED
) -> list[str]:
    """Read the names of a file's columns, and no record."""

    def choose(names: Sequence[str]) -> Sequence[str]:
        raise _NamesError(names)

    try:
        read_table(path, keep_spaces=keep_spaces, choose=choose, dialect=dialect)
    except _NamesError as read:
        return list(read.names)
    raise AssertionError("a table is read without a choice of its columns")


class _NamesError(Exception):
    """The names of a table's columns, by which `read_names` leaves its reader."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.names = names


def _refuse_url(path: Path) -> None:
    """Refuse the URL of a database that was given as a file; it may have a password."""
    kinds = [part for part in path.parts if re.fullmatch("[a-z][a-z0-9+]+:", part)]
    if kinds and not path.exists():
        raise DataError(
            f"a URL was given as a file, {kinds[0]}//...: in site.toml, give that of a "
            "database as `database` with `table` or `query` in place of `file`; a password is "
            "never part of it"
        )


def _is_parquet(path: Path) -> bool:
    """Whether a path is a Parquet file or a folder with such files."""
    if path.is_dir():
        return any(path.rglob("*.parquet"))
    try:
        with path.open("rb") as file:
            first = file.read(12)
    except OSError:
        return False  # the reader of CSV says why
    if first[8:] == DUCKDB:
        raise DataError(
            f"{path}: a DuckDB database; in site.toml, give it as `database` with `table` or "
            "`query` in place of `file`"
        )
    return first.startswith(PARQUET)
