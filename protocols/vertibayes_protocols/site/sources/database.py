"""Tables and queries of a DuckDB file or, by ADBC, of a PostgreSQL database."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.sources.arrow import ArrowTable, library

SCHEMES = ("postgresql", "postgres")
DUCKDB_BATCH = 1 << 16  # records
MEMORY = "256MiB"  # of DuckDB itself; larger sorts and joins go to its temporary files
READING = "SELECT", "MULTI"  # a pivot is a `MULTI`
POSTGRESQL_BATCH = 1 << 22  # bytes
TYPE = b"POSTGRESQL:type"  # of a column, in what the driver says of it
CAST = "cast it in the query, as with cast(COLUMN as varchar)"


@dataclass(frozen=True)
class Database:
    """A table of a database, or the result of a query."""

    where: str | Path = field(repr=False)
    table: str | None = None  # the table, with its schema as ``schema.table``
    query: str | None = None  # a ``select`` that returns the table
    password_variable: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise ValueError("give table or query, one of them: what to read from the database")
        if isinstance(self.where, str):
            _check_url(self.where)
        elif self.password_variable is not None:
            raise ValueError("password_variable is for PostgreSQL; a DuckDB file has no password")

    @property
    def title(self) -> str:
        """The database in errors: without user, password and options."""
        if isinstance(self.where, Path):
            return str(self.where)
        parts = urlsplit(self.where)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def select(self, names: Sequence[str] | None = None) -> str:
        """Return the query of some columns; of a table without records if None."""
        inner = self.query.strip().rstrip(";") if self.query is not None else self._all()
        shown = "*" if names is None else ", ".join(map(quoted, names))
        end = " limit 0" if names is None else ""
        # The owner of the data wrote the query, and the connection only reads.
        return f"select {shown} from (\n{inner}\n) as site_table{end}"  # noqa: S608

    def _all(self) -> str:
        name = ".".join(map(quoted, (self.table or "").split(".")))
        return f"select * from {name}"  # noqa: S608

    def uri(self) -> str:
        """Return the URL with which to connect to PostgreSQL: reading only, in UTF-8."""
        url = str(self.where)
        more = ["client_encoding=UTF8", f"options={quote('-c default_transaction_read_only=on')}"]
        if self.password_variable is not None:
            password = os.environ.get(self.password_variable)
            if password is None:
                raise DataError(
                    f"{self.title}: the environment variable {self.password_variable} is not set "
                    "(password_variable)"
                )
            more.append(f"password={quote(password, safe='')}")
        return f"{url}{'&' if urlsplit(url).query else '?'}{'&'.join(more)}"

    def error(self, error: BaseException) -> DataError:
        """Return the error that the database has raised, without the user and the password."""
        text = " ".join(str(error).split()).partition(" Query was:")[0]
        password = os.environ.get(self.password_variable or "PGPASSWORD")
        if password:
            text = text.replace(password, "...").replace(quote(password, safe=""), "...")
        if user := self._user():
            text = re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", "...", text)
        return DataError(f"{self.title}: the database refuses or has stopped: {text}")

    def _user(self) -> str:
        """Return as whom libpq connects to PostgreSQL."""
        if isinstance(self.where, Path):
            return ""
        parts = urlsplit(self.where)
        given = unquote(parts.username or "") or dict(parse_qsl(parts.query)).get("user")
        with suppress(KeyError, OSError):  # a user without a name
            return given or os.environ.get("PGUSER") or getuser()
        return ""


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
    except ValueError:
        raise ValueError("not a valid URL; expected postgresql://USER@HOST:PORT/NAME") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(
            "expected postgresql://USER@HOST:PORT/NAME or the path of a DuckDB file, got a URL of "
            f"another kind, {parts.scheme}://"
        )
    given = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    user, at, _ = url.partition("://")[2].partition("@")
    secret |= bool(at) and ":" in user  # also before one of "/?#", where the host ends otherwise
    if secret or given & {"password", "sslpassword", "passfile"}:
        raise ValueError(
            "the URL has a password: remove it, and set PGPASSWORD, ~/.pgpass, or "
            "password_variable to the name of an environment variable that has it"
        )
    if "options" in given or "client_encoding" in given:
        raise ValueError("the URL sets options or client_encoding, which vertibayes sets itself")


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_duckdb(database: Database) -> Iterator[ArrowTable]:
    """Open a DuckDB file for reading."""
    duckdb = library(database.title, "duckdb", "duckdb")
    arrow = library(database.title, "pyarrow", "duckdb")
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
                yield from connection.sql(database.select(chosen)).to_arrow_reader(DUCKDB_BATCH)

            yield ArrowTable(database.title, names, batches, CAST)
    except (duckdb.Error, arrow.ArrowException, OSError) as error:
        raise database.error(error) from None


@contextmanager
def open_postgresql(database: Database) -> Iterator[ArrowTable]:
    """Connect to a PostgreSQL database for reading; one statement reads the whole table."""
    arrow = library(database.title, "pyarrow", "postgresql")
    driver = library(database.title, "adbc_driver_postgresql.dbapi", "postgresql")
    try:
        with (
            closing(driver.connect(database.uri())) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.adbc_statement.set_options(
                **{"adbc.postgresql.batch_size_hint_bytes": str(POSTGRESQL_BATCH)}
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
