import numpy as np
import pytest

from tests.protocols.deployment.parties import SITES, change, deployment
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable


@pytest.fixture
def site(tmp_path):
    return deployment(tmp_path / "all") / "north" / "site.toml"


def test_records_are_in_the_order_of_identifiers_at_all_sites(site):
    found = [read_data(SiteFile.read(site.parents[1] / s / "site.toml")) for s in SITES]
    lists = [[data.ids.texts[place] for place in data.ids.places] for data in found]
    assert lists[0] == lists[1] == lists[2] == sorted(lists[0])


def test_variables_are_as_the_file_says(site):
    rows = ["id,age,sex,other", "b,30,f,1", "a,31,m,2", "c,,m,3", "d,80.5,f,4"]
    (site.parent / "records.csv").write_text("\n".join(rows) + "\n")
    data = read_data(SiteFile.read(site))
    assert data.variables["age"].states == ("le_30", "from_30_to_50", "from_50_to_70", "gt_70")
    assert data.variables["age"].missing and data.codes["age"].tolist() == [1, 0, 4, 3]
    assert list(data.variables) == ["age", "sex"] and data.codes["sex"].tolist() == [1, 0, 1, 0]
    change(site, '"sex" = {}', 'sex = { states = ["m", "f", "x"] }')
    again = read_data(SiteFile.read(site))
    assert again.variables["sex"].states == ("m", "f", "x")
    assert again.codes["sex"].tolist() == [0, 1, 0, 1]


def test_numbers_in_bins_of_a_share_and_numbers_that_are_names(site):
    change(site, "age = { cut = [30, 50, 70] }", "age = { bins = 0.4 }")
    assert len(read_data(SiteFile.read(site)).variables["age"].states) == 2
    change(site, "age = { bins = 0.4 }", "age = { categorical = true }")
    assert len(read_data(SiteFile.read(site)).variables["age"].states) > 60


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("id,age\na,1\n", "no column sex ([variables]); there are id, age"),
        ("ID,age,sex\na,1,f\n", "no column 'id' (id_column)"),
        ("id,age,sex\na,1,f\na,2,m\n", "records 1 and 2 have the same id_column 'id'"),
        ("id,age,sex\na,1,f\n ,2,m\n", "record 2: id_column 'id' is empty"),
        ("id,age,sex\na,x,f\nb,2,m\n", "record 1: 'x' is not one of its states"),
        ("id,age,sex\na,1\n", "line 2: 2 fields"),
        (
            'id,age,sex\na,1,f\nb,2,"m\nor f"\n',
            r"records.csv: the column 'sex', record 2: 'm\nor f' has control characters",
        ),
        (
            "id,age,sex\na,1,f\nb,2,\x1b[2J\n",
            r"the column 'sex', record 2: '\x1b[2J' has control characters; replace line breaks",
        ),
    ],
)
def test_mistakes_in_the_data_are_named_in_the_words_of_the_file(site, content, reason):
    (site.parent / "records.csv").write_text(content)
    with pytest.raises(DataError) as caught:
        read_data(SiteFile.read(site))
    assert reason in str(caught.value) and "--" not in str(caught.value)


def column(values):
    return "id,age,sex\n" + "".join(f"{i},1,{v}\n" for i, v in enumerate(values))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["f"] * 30, "one value, 'f', in all 30 records"),
        (range(30), 'if they match records, id_column = "sex"; "sex" = { cut = [...] } keeps'),
        ([*range(20), *range(20), "n.v."], 'missing_codes = ["n.v."]; "sex" = { categorical = tr'),
        ([f"s{i % 120}" for i in range(240)], "120 states, more than 100; max_states = 120 keeps"),
        ([i / 7 for i in range(17)], "17 numbers in 17 records, too few for two bins"),
        ([""] * 3, "no values"),
    ],
)
def test_a_variable_that_tells_nothing_is_left_out_or_refused_if_the_file_is_strict(
    site, values, reason
):
    (site.parent / "records.csv").write_text(column(values))
    data = read_data(SiteFile.read(site))
    assert list(data.variables) == ["age"] and "sex: left out: " in data.report.message()
    assert reason in data.report.message() and "--" not in data.report.message()
    change(site, 'id_column = "id"', 'id_column = "id"\nstrict = true')
    with pytest.raises(DataError) as caught:
        read_data(SiteFile.read(site))
    said = '1 column cannot be used; leave out with removing "sex" from [variables]\n  sex: '
    assert said in str(caught.value) and reason in str(caught.value)


def test_a_remedy_in_the_words_of_the_file_names_one_variable_or_none(site):
    rows = [f"{i},{'ab'[i % 2]}{i},{'cd'[i % 2]}{i},{i % 3}" for i in range(200)]
    (site.parent / "records.csv").write_text("\n".join(["id,age,sex,other", *rows]))
    change(site, "age = { cut = [30, 50, 70] }", 'age = {}\n"other" = {}')
    message = read_data(SiteFile.read(site)).report.message()
    assert "  age, sex: left out: 200 different values" in message
    assert "id_column = COLUMN; COLUMN = { categorical = true } max_states = 200 keeps" in message


def test_how_a_csv_file_is_written_may_be_in_the_file(site):
    rows = [f"{i:03};1,{i % 50:03};{'NA' if i % 2 else 'Łódź'};u,v" for i in range(200)]
    text = "\n".join(["id;age;sex;a,b", *rows])
    (site.parent / "records.csv").write_text(text, encoding="cp1250")
    with pytest.raises(DataError, match="--encoding cp1250"):
        read_data(SiteFile.read(site))
    lines = ["separator = ';'", "decimal = ','", "encoding = 'cp1250'", "keep_na = true"]
    change(site, 'id_column = "id"', "\n".join(['id_column = "id"', *lines]))
    change(site, "age = { cut = [30, 50, 70] }", "age = { cut = [1.02] }")
    data = read_data(SiteFile.read(site))
    assert data.variables["sex"].states == ("NA", "Łódź")
    assert np.bincount(data.codes["age"]).tolist() == [84, 116]


def test_how_columns_are_read_is_in_the_file(site):
    rows = [f"{i:03},{i % 50}.5, {'Yes' if i % 3 else 'YES'} ,{i % 5}" for i in range(200)]
    (site.parent / "records.csv").write_text("\n".join(["id,age,sex,other", *rows]))
    change(site, "age = { cut = [30, 50, 70] }", 'age = {}\n"other" = {}')
    change(site, '"sex" = {}', '"sex" = { ignore_case = true, states = ["no", "yes"] }')
    change(
        site,
        'id_column = "id"',
        'id_column = "id"\nbinning = "equal-width"\nbins = 0.25\nmissing_codes = ["other=4"]',
    )
    data = read_data(SiteFile.read(site))
    assert data.variables["age"].states == (
        "le_12.8",
        "from_12.8_to_25",
        "from_25_to_37.2",
        "gt_37.2",
    )
    assert data.variables["sex"].states == ("no", "yes") and set(data.codes["sex"]) == {1}
    assert data.variables["other"].states == ("0", "1", "2", "3")
    assert data.variables["other"].missing
    change(site, 'id_column = "id"', 'id_column = "id"\nkeep_spaces = true')
    with pytest.raises(DataError, match="record 1: ' YES ' is not one of its states, no, yes"):
        read_data(SiteFile.read(site))


@pytest.mark.parametrize(
    ("spec", "states"),
    [
        ("{ cut = [30, 50, 70] }", "le_30, from_30_to_50, from_50_to_70, gt_70"),
        ('{ states = ["31", "40"] }', "31, 40"),
    ],
)
def test_a_mistake_is_named_by_the_files_own_record_and_the_states_that_are_known(
    site, spec, states
):
    rows = ["b,31,f", "z,40,m", "a,n.v.,f", "y,40,m"]
    (site.parent / "records.csv").write_text("\n".join(["id,age,sex", *rows]))
    change(site, "{ cut = [30, 50, 70] }", spec)
    with pytest.raises(DataError) as caught:
        read_data(SiteFile.read(site))
    said = f", record 3: 'n.v.' is not one of its states, {states} (1 such records); if it says mi"
    file = site.parent / "records.csv"
    assert str(caught.value).startswith(f"{file}: the column 'age'{said}")


def test_identifiers_are_texts():
    codes = {"x": np.array([0, 1, 2], np.uint8)}
    data = SiteData({"x": Variable("x", tuple("abc"))}, codes, TextColumn.of(["7", "10", "007"]))
    ordered = data.in_order_of_ids()
    assert [ordered.ids.texts[p] for p in ordered.ids.places] == ["007", "10", "7"]
    assert ordered.codes["x"].tolist() == [2, 1, 0]


# ---- other sources, and several rows a person ----------------------------------------------------


def test_a_database_gives_a_site_the_same_data_as_its_file(site):
    duckdb = pytest.importorskip("duckdb")
    expected = read_data(SiteFile.read(site))
    with duckdb.connect(str(site.parent / "records.duckdb")) as connection:
        read = f"read_csv('{site.parent / 'records.csv'}', all_varchar = true)"
        connection.execute(f"create table people as select * from {read}")
    query = "query = 'select id, cast(age as int) as age, sex from people'"
    for table in ("table = 'people'", query):
        text = site.read_text()
        change(site, 'file = "records.csv"', f"database = 'records.duckdb'\n{table}")
        data = read_data(SiteFile.read(site))
        site.write_text(text)
        assert data.variables == expected.variables and list(data.ids.texts) != []
        assert all((data.codes[n] == expected.codes[n]).all() for n in data.codes)
    change(site, 'file = "records.csv"', "database = 'records.duckdb'\nquery = 'select 1 as id'")
    with pytest.raises(DataError, match=r"duckdb: no column age, sex \(\[variables\]\); there"):
        read_data(SiteFile.read(site))


def test_several_rows_a_person_are_refused_or_become_one(site):
    rows = ["id,age,sex,day", "b,30,f,2", "a,,m,1", "b,71,f,1", "c,31,m,7"]
    (site.parent / "records.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"records 1 and 3 have the same id_.*aggregate = \"last"):
        read_data(SiteFile.read(site))
    change(site, '"sex" = {}', '"sex" = { aggregate = "same" }')
    change(site, "[data]", "[data]\naggregate = 'last'\norder_by = 'day'")
    data = read_data(SiteFile.read(site))
    assert [data.ids.texts[place] for place in data.ids.places] == ["a", "b", "c"]
    assert data.codes["age"].tolist() == [4, 0, 1] and data.codes["sex"].tolist() == [1, 0, 1]
    change(site, "order_by = 'day'", "order_by = 'date'")
    with pytest.raises(DataError, match=r"no column 'date' \(order_by\)"):
        read_data(SiteFile.read(site))


def test_rows_of_a_person_whom_an_alignment_matches_become_one(site):
    rows = ["id,age,sex,day", "007,30,f,2", "8,,m,1", "7,71,f,1", "9,31,m,7", "-,40,m,1"]
    (site.parent / "records.csv").write_text("\n".join(rows) + "\n")
    change(site, "# [alignment] ", "[alignment] ")
    change(site, '# rules = ["exact"]', 'rules = ["digits"]')
    with pytest.raises(DataError, match=r"records 1 and 3 have the same id.*aggregate = \"last"):
        read_data(SiteFile.read(site))
    change(site, '"sex" = {}', '"sex" = { aggregate = "same" }')
    change(site, "[data]", "[data]\naggregate = 'last'\norder_by = 'day'")
    data = read_data(SiteFile.read(site))
    people = [data.ids.texts[place] for place in data.ids.places]
    assert people == ["-", "007", "8", "9"] and data.codes["age"].tolist() == [1, 0, 4, 1]
    assert [people[at] for at in data.identifiers.records] == ["007", "8", "9"]
    assert data.identifiers.incomplete == 1 and not data.identifiers.dropped


def test_a_connection_string_is_refused_and_not_quoted(site):
    change(
        site, 'file = "records.csv"', 'database = "host=h dbname=d password=hunter2"\ntable = "t"'
    )
    with pytest.raises(ValueError, match=r"line \d+: data.database: a connection string") as caught:
        SiteFile.read(site)
    assert "hunter2" not in str(caught.value)
