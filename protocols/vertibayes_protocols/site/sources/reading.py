"""Read a table wherever it lies; the kind of a file is recognized by its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.arrow import read_arrow
from vertibayes_protocols.site.sources.database import Database, open_duckdb, open_postgresql
from vertibayes_protocols.site.sources.parquet import open_parquet
from vertibayes_protocols.site.text import Choice, TextColumn, read_columns

PARQUET = b"PAR1"
DUCKDB = b"DUCK"  # from the eighth byte on


def read_table(
    source: Path | Database,
    *,
    keep_spaces: bool = False,
    choose: Choice = list,
    keys: str | None = None,
) -> dict[str, TextColumn]:
    """Read the columns of a file or of a database."""
    if isinstance(source, Database):
        with (open_postgresql if isinstance(source.where, str) else open_duckdb)(source) as table:
            return read_arrow(table, keep_spaces=keep_spaces, choose=choose, keys=keys)
    _refuse_url(source)
    if _is_parquet(source):
        with open_parquet(source) as table:
            return read_arrow(table, keep_spaces=keep_spaces, choose=choose, keys=keys)
    return read_columns(source, keep_spaces=keep_spaces, choose=choose, keys=keys)


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
