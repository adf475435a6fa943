"""Tables and queries of a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.arrow import ArrowTable, library
from vertibayes_protocols.site.sources.database import CAST, Database

EXTRA = "duckdb"
BATCH = 1 << 16  # records
MEMORY = "256MiB"  # of DuckDB itself; larger sorts and joins go to its temporary files
READING = "SELECT", "MULTI"  # a pivot is a `MULTI`


@contextmanager
def open_duckdb(database: Database) -> Iterator[ArrowTable]:
    """Open a DuckDB file for reading."""
    duckdb = library(database.title, "duckdb", EXTRA)
    arrow = library(database.title, "pyarrow", EXTRA)
    if not Path(database.where).is_file():
        raise DataError(f"{database.title}: no such file")
    try:
        with closing(duckdb.connect(str(database.where), read_only=True)) as connection:
            connection.execute(f"set memory_limit = '{MEMORY}'")
            connection.execute("set autoinstall_known_extensions = false")
            statements = [s.type.name for s in connection.extract_statements(database.select())]
            if len(statements) != 1 or statements[0] not in READING:
                raise DataError(f"{database.title}: the query must be one select")
            names = connection.sql(database.select()).columns

            def batches(chosen: Sequence[str]) -> Iterator[Any]:
                yield from connection.sql(database.select(chosen)).to_arrow_reader(BATCH)

            yield ArrowTable(database.title, names, batches, CAST)
    except (duckdb.Error, arrow.ArrowException, OSError) as error:
        raise database.error(error) from None
