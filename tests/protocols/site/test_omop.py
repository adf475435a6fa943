"""The OMOP example, as it is, in DuckDB and in PostgreSQL."""

import importlib.util
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import numpy as np  # noqa: E402

from tests.protocols.deployment.parties import change, deployment  # noqa: E402
from vertibayes_protocols.deployment.data import read_data  # noqa: E402
from vertibayes_protocols.deployment.files import SiteFile  # noqa: E402

EXAMPLE = Path(__file__).parents[3] / "examples" / "omop"


@pytest.fixture
def site(tmp_path):
    """Return a site's file that has the part of the example, beside the example's database."""
    spec = importlib.util.spec_from_file_location("omop", EXAMPLE / "make_database.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = deployment(tmp_path / "all") / "north" / "site.toml"
    module.main(path.parent / "omop.duckdb")
    whole, part = path.read_text(), (EXAMPLE / "site-part.toml").read_text()
    path.write_text(whole[: whole.index("[data]")] + part + whole[whole.index("\n[policy]") :])
    return path


def test_a_site_reads_one_record_a_person_by_its_query(site):
    data = read_data(SiteFile.read(site))
    assert data.records == 500 and not data.report.left_out
    assert list(data.variables) == [
        "sex", "age", "diabetes", "hypertension", "hba1c", "highest_systolic"
    ]  # fmt: skip
    assert data.variables["hba1c"].missing and not data.variables["highest_systolic"].missing
    diabetic, high = data.codes["diabetes"] == 1, data.codes["hba1c"] == 2
    assert high[diabetic].mean() > 0.5 > high[~diabetic].mean()
    with duckdb.connect(str(site.parent / "omop.duckdb"), read_only=True) as connection:
        sql = "select count(distinct person_id) from condition_occurrence where "
        ((count,),) = connection.sql(f"{sql} condition_concept_id = 201826").fetchall()
    assert diabetic.sum() == count


def test_the_same_query_reads_the_same_from_postgresql(site, postgresql):
    from adbc_driver_postgresql import dbapi

    expected = read_data(SiteFile.read(site))
    tables = "person", "condition_occurrence", "measurement"
    with (
        duckdb.connect(str(site.parent / "omop.duckdb"), read_only=True) as source,
        dbapi.connect(postgresql.url) as connection,
        connection.cursor() as cursor,
    ):
        for name in tables:
            cursor.adbc_ingest(name, source.table(name).to_arrow_table(), mode="replace")
        connection.commit()
    change(site, 'database = "omop.duckdb"', f'database = "{postgresql.url}"')
    data = read_data(SiteFile.read(site))
    assert data.variables == expected.variables
    assert all(np.array_equal(data.codes[name], expected.codes[name]) for name in data.codes)
