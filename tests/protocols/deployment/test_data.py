import numpy as np
import pytest

from protocols.deployment.data import read_data
from protocols.deployment.files import SiteFile
from protocols.errors import DataError
from protocols.site.alignment import in_order
from protocols.site.text import TextColumn
from tests.protocols.deployment.parties import SITES, change, deployment


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
    assert data.variables["age"].states == ("(-inf,30]", "(30,50]", "(50,70]", "(70,inf)")
    assert data.variables["age"].missing and data.codes["age"].tolist() == [1, 0, 4, 3]
    assert list(data.variables) == ["age", "sex"] and data.codes["sex"].tolist() == [1, 0, 1, 0]
    change(site, '"sex" = {}', 'sex = { states = ["m", "f", "x"] }')
    again = read_data(SiteFile.read(site))
    assert again.variables["sex"].states == ("m", "f", "x")
    assert again.codes["sex"].tolist() == [0, 1, 0, 1]


def test_numbers_in_bins_of_a_share_and_numbers_that_are_names(site):
    change(site, "age = { edges = [30, 50, 70] }", "age = { bins = 0.4 }")
    assert len(read_data(SiteFile.read(site)).variables["age"].states) == 2
    change(site, "age = { bins = 0.4 }", "age = { categorical = true }")
    assert len(read_data(SiteFile.read(site)).variables["age"].states) > 60


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("id,age\na,1\n", "no column sex ([variables]); there are id, age"),
        ("ID,age,sex\na,1,f\n", "no column 'id' (record_key)"),
        ("id,age,sex\na,1,f\na,2,m\n", "records 1 and 2 have one record_key 'id'"),
        ("id,age,sex\na,1,f\n ,2,m\n", "record 2: no record_key 'id'"),
        ("id,age,sex\na,x,f\nb,2,m\n", "record 1: 'x' is none of its states"),
        ("id,age,sex\na,1,f\nb,2,f\n", "one state, 'f'; leave it out of [variables]"),
        ("id,age,sex\na,1\n", "line 2: 2 fields"),
        ("id,age,sex\na,1,f\nb,2,\x1b[2J\n", r"variable 'sex': '\x1b[2J' has control characters"),
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
    ("values", "key"),
    [
        (range(30), "it is no variable"),
        ([*range(20), *range(19), "NA"], "name it in missing_codes if it says missing, or make"),
        ([f"s{i % 120}" for i in range(240)], "raise most_states, or leave it out of [variables]"),
        (
            [i / 7 for i in range(17)],
            "on too few records for two bins; leave it out of [variables]",
        ),
        ([""] * 3, "has no values; leave it out of [variables]"),
    ],
)
def test_hints_of_the_command_line_become_keys_of_the_file(site, values, key):
    (site.parent / "records.csv").write_text(column(values))
    with pytest.raises(DataError) as caught:
        read_data(SiteFile.read(site))
    assert key in str(caught.value) and "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "states"),
    [
        ("{ edges = [30, 50, 70] }", "(-inf,30], (30,50], (50,70], (70,inf)"),
        ('{ states = ["31", "40"] }', "31, 40"),
        ("{}", None),
    ],
)
def test_a_mistake_is_named_by_the_files_own_record_and_the_states_that_are_known(
    site, spec, states
):
    rows = ["b,31,f", "z,40,m", "a,NA,f", "y,40,m", *(f"c{i},{i % 30},f" for i in range(30))]
    (site.parent / "records.csv").write_text(
        "\n".join(["id,age,sex", *rows[: 4 if states else 34]])
    )
    change(site, "{ edges = [30, 50, 70] }", spec)
    with pytest.raises(DataError) as caught:
        read_data(SiteFile.read(site))
    file = site.parent / "records.csv"
    said = f", record 3: 'NA' is none of its states, {states} (1 such records); if it says missing"
    told = said if states else " has numbers but for 'NA' (1 records, first 3): "
    assert str(caught.value).startswith(f"{file}: the column 'age'{told}")


def test_identifiers_are_texts():
    columns = {"x": TextColumn.of("abc")}
    ordered, ids = in_order(columns, TextColumn.of(["7", "10", "007"]))
    assert [ids.texts[p] for p in ids.places] == ["007", "10", "7"]
    assert [ordered["x"].texts[p] for p in ordered["x"].places] == ["c", "b", "a"]
    assert np.array_equal(np.sort(ids.places), np.arange(3))
