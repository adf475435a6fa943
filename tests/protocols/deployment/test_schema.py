import numpy as np
import pytest

from tests.protocols.deployment.parties import change, deployment
from vertibayes.cli.app import app
from vertibayes_protocols.deployment.checks import Outside, check_files
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.schema import compare_schemas, draft_schema

RECORDS = 200


@pytest.fixture
def site(tmp_path):
    return deployment(tmp_path / "all") / "north" / "site.toml"


@pytest.fixture
def table(site):
    """Write a table with everything that a draft tells of."""
    draw = np.random.default_rng(0)
    ages = draw.integers(18, 90, RECORDS)
    columns = {
        "id": [f"p{place:03}" for place in draw.permutation(RECORDS)],
        "age": ["999" if place % 50 == 7 else age for place, age in enumerate(ages)],
        "sex": ["" if place % 20 == 3 else "fm"[place % 2] for place in range(RECORDS)],
        "smoker": ["unknown" if place % 10 == 3 else "yes" for place in range(RECORDS)],
        "grade": ["?" if place % 10 == 3 else place % 4 for place in range(RECORDS)],
        'a "b"\\c': ["x", 'y"z'] * (RECORDS // 2),
        "lines": ["x", "y\nz"] * (RECORDS // 2),
        "card": draw.permutation(RECORDS) + 5000,
        "always": ["1"] * RECORDS,
    }
    path = site.parent / "other.csv"
    rows = zip(*columns.values(), strict=True)
    import csv

    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_a_draft_has_states_bins_shares_and_comments(table):
    lines = draft_schema(table).splitlines()
    assert lines[0].startswith(f"# A draft from 200 records of {table}: edit it")
    assert 'id_column = "id"    # a different value in every record' in lines
    (age,) = [line for line in lines if line.startswith('"age" = { cut = [')]
    edges = age.partition("[")[2].partition("]")[0].split(", ")
    assert len(edges) == 4 and all(len(edge) == 2 for edge in edges)
    assert '"sex" = { states = ["f", "m"] }    # 5.0% missing' in lines
    assert '"smoker" = { states = ["unknown", "yes"] }' in lines
    assert "# smoker: 'unknown' is taken as a state; if it says missing: " in "\n".join(lines)
    assert 'missing_codes = ["age=999"]' in "\n".join(lines)
    assert '"grade" = {}' in lines
    assert "# grade: '?' among numbers is taken as" in "\n".join(lines)
    assert '"a \\"b\\"\\\\c" = { states = ["x", "y\\"z"] }' in lines
    assert any(line.startswith("# lines: left out: 'y\\nz' has control char") for line in lines)
    assert any(line.startswith("# card: left out: 200 different values") for line in lines)
    assert any(line.startswith("# always: left out: one value, '1'") for line in lines)
    left_out = '"card"', '"always"', '"lines"', '"id" ='
    assert not any(line.startswith(left_out) for line in lines)


def test_a_draft_is_accepted_by_check(site, table):
    text = draft_schema(table)
    whole = site.read_text()
    begin, end = whole.index("[data]"), whole.index("[policy]")
    site.write_text(whole[:begin] + text + "\n" + whole[end:])
    findings = check_files([site], Outside(*[lambda *_: None] * 3))
    assert not findings.wrong, findings.lines
    data = read_data(SiteFile.read(site))
    assert list(data.variables) == ["age", "sex", "smoker", "grade", 'a "b"\\c']
    assert not data.report.left_out


def test_a_sites_file_says_where_its_table_is(site):
    drafted = draft_schema(site)
    assert "[data]" not in drafted and '"age" = { cut = [' in drafted
    change(site, 'id_column = "id"', 'id_column = "person"')
    with pytest.raises(ValueError, match=r"no column 'person' \(id_column\)"):
        draft_schema(site)


def test_no_column_that_can_be_a_variable(tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n1,2\n1,2\n")
    with pytest.raises(ValueError, match="no column can be a variable as it is"):
        draft_schema(tmp_path / "d.csv")


A = """[variables]
same = { states = ["no", "yes"] }
states = { states = ["f", "m"] }
order = { states = ["low", "high"] }
bins = { cut = [18, 65] }
way = { cut = [1.5] }
case = { ignore_case = true }
own = {}
"""
B = """[variables]
same = { states = ["no", "yes"] }
states = { states = ["f", "male"] }
order = { states = ["high", "low"] }
bins = { cut = [18, 60] }
way = { bounds = [0, 3] }
case = {}
"""


def test_two_files_are_compared_variable_by_variable(tmp_path, capsys):
    a, b = tmp_path / "a.toml", tmp_path / "b.toml"
    a.write_text(A)
    b.write_text(B)
    lines, shared = compare_schemas(a, b)
    assert shared == 6 and lines == [
        f'states: states of {a} alone: "m"',
        f'states: states of {b} alone: "male"',
        'order: the same states in another order: "low", "high"; "high", "low"',
        "bins: other bins: cut = [18, 65]; cut = [18, 60]",
        f"way: {a} has cut = [1.5], {b} has bounds = [0, 3]",
        f"case: ignore_case is True in {a}, False in {b}",
    ]
    assert compare_schemas(a, a) == ([], 7)
    assert run("schema", a, b) == 1
    assert capsys.readouterr().out.endswith("6 variables in both files, 5 declared differently\n")
    assert run("schema", a, a) == 0
    assert capsys.readouterr().out == "7 variables in both files, 0 declared differently\n"


def run(*arguments):
    return app(list(map(str, arguments)), standalone_mode=False) or 0
