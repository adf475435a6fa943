"""The same table from every source."""

from __future__ import annotations

import datetime
import gzip
import io
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("adbc_driver_postgresql")

import pyarrow.csv  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from adbc_driver_postgresql import dbapi  # noqa: E402

from tests.protocols.site.stores import (  # noqa: E402
    as_csv,
    as_duckdb,
    as_parquet,
    as_parts,
    as_postgresql,
)
from vertibayes_protocols.errors import DataError  # noqa: E402
from vertibayes_protocols.site.column_builder import ColumnBuilder  # noqa: E402
from vertibayes_protocols.site.data import SiteData  # noqa: E402
from vertibayes_protocols.site.encoding import Encoding  # noqa: E402
from vertibayes_protocols.site.frame import columns_of  # noqa: E402
from vertibayes_protocols.site.sources.database import Database  # noqa: E402
from vertibayes_protocols.site.sources.reading import read_table  # noqa: E402

DAY = datetime.date(2024, 1, 1)
NOON = datetime.datetime(2024, 1, 1, 12)
TYPES = {  # column: its type, its values
    "whole": (pa.int64(), st.integers(-3, 40)),
    "small": (pa.int16(), st.integers(0, 3)),
    "real": (pa.float64(), st.sampled_from([0.0, 1.0, 0.5, -2.25, 1e20, 3.0, float("nan")])),
    "short": (pa.float32(), st.sampled_from([0.1, 2.0, 0.25])),
    "yes": (pa.bool_(), st.booleans()),
    "word": (pa.string(), st.sampled_from(["a", " a ", "B", "", "é", "NA", "7", "x,y"])),
    "price": (pa.decimal128(10, 2), st.sampled_from([*map(Decimal, ("1.50", "2.00", "0.25"))])),
    "day": (pa.date32(), st.integers(0, 40).map(lambda n: DAY + datetime.timedelta(n))),
    "moment": (
        pa.timestamp("us"),
        st.integers(0, 3).map(lambda n: NOON + datetime.timedelta(seconds=n / 2)),
    ),
}


@st.composite
def tables(draw):
    """Draw a table with identifiers, its rows in any order and with missing values."""
    rows = draw(st.integers(1, 40))
    columns = {"id": pa.array(draw(st.permutations([f"p{n}" for n in range(rows)])))}
    for name in draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=5, unique=True)):
        kind, values = TYPES[name]
        listed = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[name] = pa.array(listed, kind)
    return pa.table(columns)


def variables(source, **encoding):
    """Return the variables, codes and columns left out of a source, or the reason of its error."""
    columns = read_table(source, keys="id")
    ids = columns.pop("id")
    try:
        data = SiteData.from_text("t", columns, Encoding(**encoding), ids, strict=False)
    except DataError as error:
        return str(error)
    data = data.in_order_of_ids()
    coded = {name: codes.tolist() for name, codes in data.codes.items()}
    return dict(data.variables), coded, dict(data.report.left_out), list(data.report.warnings)


@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tables(), st.booleans())
def test_a_table_gives_the_same_variables_from_every_source(postgresql, table, named):
    categorical = table.column_names if named else ()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = variables(as_csv(folder, table), categorical=categorical)
        for store in (as_parquet, as_parts, as_duckdb):
            assert variables(store(folder, table), categorical=categorical) == expected, store
    assert variables(as_postgresql(postgresql, table), categorical=categorical) == expected


def test_a_data_frame_gives_the_same_texts_as_a_file(tmp_path):
    table = pa.table(
        {
            "real": pa.array([1.0, 0.5, None]),
            "price": pa.array([Decimal("1.50"), None, Decimal("2.00")]),
            "day": pa.array([DAY, None, DAY]),
            "yes": pa.array([True, False, None]),
        }
    )
    from_file = read_table(as_parquet(tmp_path, table))
    from_frame = columns_of("f", table.to_pandas(date_as_object=True)).columns
    for name, column in from_file.items():
        texts = [[c.texts[p] for p in c.places] for c in (column, from_frame[name])]
        assert texts[0] == texts[1], name


FILES = {
    "adult": "uci/adult_train.csv.gz",
    "letter": "uci/letter.csv.gz",
    "accelerometer": "uci/accelerometer.csv.gz",
}


@pytest.mark.laws
@pytest.mark.parametrize("name", FILES)
def test_real_tables_give_the_same_variables_from_every_source(
    data_folder, postgresql, tmp_path, name
):
    path = data_folder / FILES[name]
    content = io.BytesIO(gzip.decompress(path.read_bytes()))
    typed = pyarrow.csv.read_csv(content, convert_options=_exact(path))
    ids = pa.array([f"{n:06}" for n in np.random.default_rng(0).permutation(len(typed))])
    table = typed.append_column("id", ids)
    columns = read_table(path)
    from_csv = SiteData.from_text("t", columns, Encoding(), strict=False)
    order = np.argsort(ids.to_pylist())
    for source in (
        as_parquet(tmp_path, table),
        as_duckdb(tmp_path, table),
        as_postgresql(postgresql, table, name),
    ):
        known, codes, left_out, _ = variables(source)
        assert known == from_csv.variables and set(left_out) == set(from_csv.report.left_out)
        assert all(codes[n] == from_csv.codes[n][order].tolist() for n in codes)


def _exact(path):
    """Take a column as numbers only if that keeps how its whole numbers are written."""
    texts = {
        name: pa.string()
        for name, column in read_table(path).items()
        if any(text.endswith(".0") for text in column.texts)
    }
    return pyarrow.csv.ConvertOptions(column_types=texts, strings_can_be_null=False)


# ---- what goes wrong -----------------------------------------------------------------------------

SMALL = pa.table({"id": ["a", "b"], "x": [1, 2]})


def refused(source, **more):
    with pytest.raises(DataError) as caught:
        read_table(source, **more)
    return str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "cut.parquet").write_bytes(as_parquet(tmp_path, SMALL).read_bytes()[:-9])
    assert "cut.parquet: cannot be read as Parquet" in refused(tmp_path / "cut.parquet")
    pq.write_table(SMALL[:0], tmp_path / "none.parquet")
    assert refused(tmp_path / "none.parquet").endswith("none.parquet: the table has no records")
    pq.write_table(pa.table({"l": [[1]]}), tmp_path / "lists.parquet")
    assert "the column 'l' has values of the type list" in refused(tmp_path / "lists.parquet")
    parts = as_parts(tmp_path, SMALL)
    pq.write_table(SMALL.rename_columns(["id", "y"]), parts / "3.parquet")
    assert refused(parts).endswith("3.parquet: other columns than those of 1.parquet")
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").endswith("it is a folder, not a file")
    database = as_duckdb(tmp_path, SMALL)
    assert "a DuckDB database; in site.toml, give it as `database`" in refused(database.where)


def test_a_duckdb_file_that_cannot_be_read_is_named(tmp_path):
    where = as_duckdb(tmp_path, SMALL).where
    assert refused(Database(tmp_path / "no.duckdb", table="t")).endswith("no such file")
    assert not (tmp_path / "no.duckdb").exists()
    assert "records" in refused(Database(where, table="record"))
    assert "syntax error" in refused(Database(where, query="drop table records"))
    csv = as_csv(tmp_path, SMALL)
    assert str(csv) in refused(Database(csv, table="t"))


def test_a_missing_library_is_named_with_its_installation(tmp_path, monkeypatch):
    parquet, database = as_parquet(tmp_path, SMALL), as_duckdb(tmp_path, SMALL)
    for module in ("pyarrow", "duckdb", "adbc_driver_postgresql.dbapi"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'vertibayes[parquet]'" in refused(parquet)
    assert "pip install 'vertibayes[duckdb]'" in refused(database)
    url = Database("postgresql://h/d", table="t")
    assert "pip install 'vertibayes[postgresql]'" in refused(url)


def test_a_site_without_the_libraries_reads_csv(tmp_path):
    path = as_csv(tmp_path, SMALL)
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('pyarrow', 'duckdb', 'pandas')))\n"
        "from pathlib import Path\n"
        "from vertibayes_protocols.site.sources.reading import read_table\n"
        f"print(*read_table(Path({str(path)!r})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "id x\n"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://u:hunter2@h/d", "has a password: remove it"),
        ("postgresql://h/d?password=hunter2", "has a password: remove it"),
        ("postgresql://u:#hunter2@h/d", "has a password: remove it"),
        ("postgresql://u:?hunter2@h/d", "has a password: remove it"),
        ("postgresql://u:/hunter2@h/d", "has a password: remove it"),
        ("postgresql://h/d?options=hunter2", "sets options"),
        ("mysql://u:hunter2@h/d", "a URL of another kind, mysql://"),
        ("postgresql://[hunter2", "not a valid URL"),
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_quoted(url, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        Database(url, table="t")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Database("postgresql://hunter2@h/d", table="t"))


@pytest.mark.parametrize("scheme", ["postgresql", "mysql", "s3"])
@pytest.mark.parametrize("folder", ["", "site"])
def test_a_url_that_is_given_as_a_file_is_not_quoted(folder, scheme):
    with pytest.raises(DataError, match=f"a URL was given as a file, {scheme}://") as caught:
        read_table(Path(folder, f"{scheme}://u:hunter2@h/d"))
    assert "hunter2" not in str(caught.value) and "`database`" in str(caught.value)


def test_a_database_that_refuses_is_named_without_credentials(postgresql, monkeypatch):
    as_postgresql(postgresql, SMALL)
    table = {"table": "records"}
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    text = refused(Database(postgresql.url, **table))
    assert "password authentication failed" in text and "hunter2" not in text
    assert "clinic" not in text
    monkeypatch.delenv("PGPASSWORD")
    asked = Database(postgresql.url, **table, password_variable="CLINIC")
    assert refused(asked).endswith("variable CLINIC is not set (password_variable)")
    monkeypatch.setenv("CLINIC", postgresql.password)
    assert list(read_table(asked)) == ["id", "x"]
    assert list(read_table(Database(postgresql.url, table="public.records",
                                    password_variable="CLINIC"))) == ["id", "x"]  # fmt: skip
    nowhere = Database("postgresql://clinic@127.0.0.1:1/d", **table)
    assert refused(nowhere).startswith("postgresql://127.0.0.1:1/d: the database refuses or has")


@pytest.mark.parametrize(
    ("url", "user"),
    [("postgresql://dr%20b@h/d", "dr b"), ("postgresql://h/d?user=ben", "ben"),
     ("postgresql://h/d", "carol")],
)  # fmt: skip
def test_an_error_of_a_database_names_no_user(monkeypatch, url, user):
    """Before: a wrong password showed the user, who reads in the log of the site."""
    monkeypatch.setenv("PGUSER", "carol")
    error = OSError(f'FATAL: password authentication failed for user "{user}" on {user}s')
    text = str(Database(url, table="t").error(error))
    assert text.endswith(f'failed for user "..." on {user}s')


def test_a_query_only_reads(postgresql):
    as_postgresql(postgresql, SMALL)
    with dbapi.connect(postgresql.url) as connection, connection.cursor() as cursor:
        cursor.execute("create sequence if not exists numbers")
        connection.commit()
    writes = "select nextval('numbers')"
    assert "read-only transaction" in refused(Database(postgresql.url, query=writes))
    with_end = Database(postgresql.url, query="with t as (select 1 as x) select * from t;\n")
    assert list(read_table(with_end)) == ["x"]


def test_a_query_of_a_duckdb_file_writes_no_file(tmp_path):
    source, out = as_duckdb(tmp_path, pa.table({"id": ["a"], "x": [1]})), tmp_path / "out.csv"
    ended = f"select 1 as id) as s; copy (select 2) to '{out}'; select * from (select 1 as id"
    assert refused(Database(source.where, query=ended)).endswith("the query must be one select")
    assert refused(Database(source.where, query=f"copy records to '{out}'"))
    assert refused(Database(source.where, query="update records set x = 2"))
    assert not out.exists()
    pivot = Database(source.where, query="pivot records on x using count(*) group by id")
    assert list(read_table(pivot)) == ["id", "1"]


@pytest.mark.parametrize("how", ["session", "values"])
def test_a_database_that_goes_away_in_the_middle_is_one_error(postgresql, how):
    """The first batches have arrived; nothing of them is returned."""
    rows = 1_000_000
    value = "i" if how == "session" else f"100 / ({rows} - i)"
    query = f"select {value} as x from generate_series(1, {rows}) as i"
    batches = 0

    def end_session(builder, *batch):
        nonlocal batches
        batches += 1
        if batches == 2 and how == "session":
            with dbapi.connect(postgresql.url) as other, other.cursor() as cursor:
                cursor.execute(
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                    "where pid <> pg_backend_pid() and backend_type = 'client backend'"
                )
        return add(builder, *batch)

    add = ColumnBuilder.add_places
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnBuilder, "add_places", end_session)
        text = refused(Database(postgresql.url, query=query))
    assert text.startswith("postgresql:///postgres: the database refuses or has stopped: ")
    assert ("terminat" in text or "closed" in text) if how == "session" else "by zero" in text
    assert batches >= 2


def test_types_of_postgresql(postgresql):
    """Types that no other source has: the driver returns numerics as texts, uuids as bytes."""
    query = """
        select 1.50::numeric(8, 2) as price, 'nan'::numeric as gone, 'x'::char(3) as padded,
            '00000000-0000-0000-0000-00000000002a'::uuid as key, '01:02:03.5'::time as hour,
            '2024-01-31 10:05+02'::timestamptz as moment, '[1]'::jsonb as json
    """
    columns = read_table(Database(postgresql.url, query=query))
    assert {name: column.texts[0] for name, column in columns.items()} == {
        "price": "1.50",
        "gone": "",
        "padded": "x",
        "key": "00000000-0000-0000-0000-00000000002a",
        "hour": "01:02:03.5",
        "moment": "2024-01-31 08:05:00+00:00",
        "json": "[1]",
    }
    for value, kind in (("'{1}'::int[]", "type list"), ("'\\x00'::bytea", "type binary")):
        reason = refused(Database(postgresql.url, query=f"select {value} as x"))
        assert kind in reason and "cast it in the query" in reason
    assert "money" in refused(Database(postgresql.url, query="select 12::money as x"))


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(["b", "c", "a"]),
        pa.array(["x", "b", "c", "a"])[1:],
        pa.array([7, 10, 9]),
        pa.array(["é", " b ", "a"]),
        pa.array(["b", None, "a"]),
        pa.array(["b", "", "a"]).dictionary_encode(),
    ],
)
def test_identifiers_are_those_of_a_csv_file(tmp_path, ids):
    table = pa.table({"id": ids})
    for source in (as_parquet(tmp_path, table), as_duckdb(tmp_path, table)):
        column = read_table(source, keys="id")["id"]
        expected = read_table(as_csv(tmp_path, table))["id"]
        found = [[c.texts[place] for place in c.places] for c in (column, expected)]
        assert found[0] == found[1]
