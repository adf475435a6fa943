"""Tables and queries of a PostgreSQL database, by ADBC: rows arrive as binary record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.arrow import ArrowTable, library
from vertibayes_protocols.site.sources.database import CAST, Database

EXTRA = "postgresql"
BATCH = 1 << 22  # bytes
TYPE = b"POSTGRESQL:type"  # of a column, in what the driver says of it


@contextmanager
def open_postgresql(database: Database) -> Iterator[ArrowTable]:
    """Connect to a PostgreSQL database for reading; one statement reads the whole table."""
    arrow = library(database.title, "pyarrow", EXTRA)
    driver = library(database.title, "adbc_driver_postgresql.dbapi", EXTRA)
    try:
        with (
            closing(driver.connect(database.uri())) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.adbc_statement.set_options(
                **{"adbc.postgresql.batch_size_hint_bytes": str(BATCH)}
            )
            cursor.execute(database.select())
            schema = cursor.fetch_record_batch().schema
            amounts = {f.name for f in schema if (f.metadata or {}).get(TYPE) == b"money"}

            def batches(chosen: Sequence[str]) -> Iterator[Any]:
                for name in chosen:
                    if name in amounts:  # the driver returns it in hundredths
                        raise DataError(
                            f"{database.title}: the column {name!r} has the type money; "
                            "cast it in the query, as with cast(COLUMN as numeric)"
                        )
                cursor.execute(database.select(chosen))
                yield from cursor.fetch_record_batch()

            yield ArrowTable(database.title, schema.names, batches, CAST)
    except (driver.Error, arrow.ArrowException, OSError) as error:
        raise database.error(error) from None
