"""One table in every kind of store."""

from __future__ import annotations

import csv

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from adbc_driver_postgresql import dbapi

from vertibayes_protocols.site.sources.database import Database
from vertibayes_protocols.site.sources.values import text_of


def as_csv(folder, table):
    """Write a CSV file of a table's texts."""
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        columns = [map(text_of, values(column)) for column in table.columns]
        writer.writerows(zip(*columns, strict=True))
    return path


def values(column):
    """Return Python's values; numpy's of 32 bits, which Python would write with 64."""
    listed = column.to_pylist()
    if pa.types.is_float32(column.type):
        return [value if value is None else np.float32(value) for value in listed]
    return listed


def as_parquet(folder, table):
    path = folder / "table.parquet"
    pq.write_table(table, path, row_group_size=7 if len(table) < 1000 else None)
    return path


def as_parts(folder, table):
    """Write a folder of two Parquet files, the second with its columns in another order."""
    half = len(table) // 2
    (folder / "parts").mkdir(exist_ok=True)
    pq.write_table(table[:half], folder / "parts" / "1.parquet")
    pq.write_table(table[half:].select(table.column_names[::-1]), folder / "parts" / "2.parquet")
    return folder / "parts"


def as_duckdb(folder, table):
    path = folder / "table.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("create or replace table records as select * from given")
    return Database(path, table="records")


def as_postgresql(server, table, name="records"):
    """Write a table to PostgreSQL; the driver forgets how many digits decimals have."""
    with dbapi.connect(server.url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="replace")
        connection.commit()
    shown = [
        f'"{f.name}"::numeric({f.type.precision},{f.type.scale}) as "{f.name}"'
        if pa.types.is_decimal(f.type)
        else f'"{f.name}"'
        for f in table.schema
    ]
    return Database(server.url, query=f'select {", ".join(shown)} from "{name}"')
