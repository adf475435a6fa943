"""A drafted data dictionary takes the place of many options."""

import json

import pytest

from tests.e2e.test_cli import learn, outputs, read_rows
from vertibayes.cli import main
from vertibayes.data_dictionary import as_text, draft_dictionary, read_dictionary
from vertibayes_protocols.site.text import read_columns

ANSWERS = "stimme nicht zu", "stimme eher nicht zu", "stimme eher zu", "stimme zu"
ROWS = [
    [f"P{place}", f"{place % 28 + 1:02}.0{place % 9 + 1}.{2020 + place % 3}",
     ("m", "männlich", "w", "weiblich", "weiblich")[place % 5], 999 if place % 50 == 9 else
     20 + place % 61, ANSWERS[place % 4], "?" if place % 20 == 7 else ("ja", "JA", "nein", "nein",
     "nein", "ja", "ja")[place % 7], "x"]
    for place in range(420)
]  # fmt: skip
NAMES = ["patient", "besuch", "geschlecht", "alter, in Jahren", "meinung", "krank", "immer"]
OPTIONS = [
    "--id-column", "patient", "--exclude", "besuch,immer", "--missing-codes",
    '"alter, in Jahren=999",?', "--ignore-case", "krank", "--cut", "alter, in Jahren=31,43,55,67",
]  # fmt: skip


@pytest.fixture
def data(tmp_path):
    """Write a table as a spreadsheet does: semicolons, cp1252."""
    path = tmp_path / "d.csv"
    lines = [";".join(map(str, row)) + "\r\n" for row in [NAMES, *ROWS]]
    path.write_text("".join(lines), encoding="cp1252", newline="")
    return path


@pytest.fixture
def schema(data, tmp_path, capsys):
    main_at_zero("schema", "--data", data)
    path = tmp_path / "schema.json"
    path.write_text(capsys.readouterr().out)
    return path


def main_at_zero(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(map(str, arguments)))
    assert stop.value.code in (0, None)


def test_a_draft_has_years_orders_codes_merges_and_what_is_left_out(schema):
    drafted = json.loads(schema.read_text())
    assert drafted["id_column"] == "patient"
    columns = {name: {**of} for name, of in drafted["columns"].items()}
    assert columns["besuch"] == {"year": True, "states": ["2020", "2021", "2022"]}
    assert columns["geschlecht"] == {
        "merge": {"m": "männlich", "w": "weiblich"}, "states": ["männlich", "weiblich"]
    }  # fmt: skip
    assert columns["alter, in Jahren"] == {"missing_codes": ["999"], "cut": [31, 43, 55, 67]}
    assert columns["meinung"] == {"states": [*ANSWERS]}
    assert columns["krank"] == {
        "merge": {"JA": "ja"}, "missing_codes": ["?"], "states": ["nein", "ja"]
    }  # fmt: skip
    assert columns["immer"]["exclude"] and "one value, 'x'" in columns["immer"]["note"][0]


def test_a_dictionary_learns_as_the_options_that_it_replaces(data, schema, tmp_path, capsys):
    (tmp_path / "own.json").write_text(json.dumps({
        **json.loads(schema.read_text()),
        "columns": {**json.loads(schema.read_text())["columns"],
                    "geschlecht": {}, "besuch": {"exclude": True}},
    }))  # fmt: skip
    by_options = learn(capsys, tmp_path / "1", "--data", data, "--sites", 2, *OPTIONS)
    by_schema = learn(capsys, tmp_path / "2", "--data", data, "--sites", 2, "--schema",
                      tmp_path / "own.json")  # fmt: skip
    assert by_options[0] == by_schema[0] == 0
    one, other = (json.loads((tmp_path / n / "model.json").read_text()) for n in "12")
    assert one == other


def test_a_whole_draft_learns_and_predicts(data, schema, tmp_path, capsys):
    code, *_ = learn(capsys, tmp_path / "1", "--data", data, "--sites", 2, "--schema", schema)
    assert code == 0
    variables = outputs(tmp_path / "1")[1]["variables"]
    assert variables["besuch"]["states"] == ["2020", "2021", "2022"]
    assert variables["geschlecht"]["states"] == ["männlich", "weiblich"]
    assert variables["meinung"]["states"] == [*ANSWERS]
    main_at_zero("predict", "--model", tmp_path / "1" / "model.json", "--schema", schema, "--data",
                 data, "--target", "krank", "--out", tmp_path / "p.csv")  # fmt: skip
    assert "does not know, taken as missing" not in capsys.readouterr().err
    assert len(read_rows(tmp_path / "p.csv")) == len(ROWS) + 1


def test_options_count_in_place_of_the_dictionary(data, schema, tmp_path, capsys):
    given = "--data", data, "--sites", 2, "--schema", schema
    code, _, said = learn(capsys, tmp_path / "1", *given, "--cut",
          "alter, in Jahren=50", "--states", "meinung=" + ",".join(reversed(ANSWERS)),
          "--exclude", "krank")  # fmt: skip
    assert code == 0, said
    variables = outputs(tmp_path / "1")[1]["variables"]
    assert variables["alter, in Jahren"]["states"] == ["le_50", "gt_50"]
    assert variables["meinung"]["states"] == [*reversed(ANSWERS)] and "krank" not in variables


def test_what_is_written_is_read_again(data, tmp_path):
    drafted = draft_dictionary(read_columns(data))
    (tmp_path / "s.json").write_text(as_text(drafted))
    assert read_dictionary(tmp_path / "s.json") == drafted


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], "not a data dictionary"),
        ({"columns": {"krank": {"stats": ["a"]}}}, "the column 'krank' has other entries: states"),
        ({"columns": {"krank": {"cut": ["a"]}}}, "the column 'krank': cut cannot be ['a']"),
        ({"columns": {"kran": {}}}, "--schema kran: no such column"),
        ({"columns": {}, "id_column": 5}, "id_column must be the name of a column"),
    ],
)
def test_a_wrong_dictionary_is_refused(data, tmp_path, capsys, content, reason):
    (tmp_path / "s.json").write_text(json.dumps(content))
    code, _, said = learn(capsys, tmp_path / "1", "--data", data, "--sites", 2, "--schema",
                          tmp_path / "s.json")  # fmt: skip
    assert code == 2 and reason in said


def test_a_draft_reads_a_file_as_the_options_say(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_bytes("x;ça\nè;ja\né;nein\n".encode("cp1252"))
    with pytest.raises(SystemExit):
        main(["schema", "--data", str(path)])
    assert "--encoding cp1252" in capsys.readouterr().err
    told = ["--encoding", "cp1252", "--separator", ";", "--decimal", ","]
    main_at_zero("schema", "--data", path, *told)
    drafted = json.loads(capsys.readouterr().out)
    assert drafted["id_column"] == "x" and list(drafted["columns"]) == ["ça"]
    with pytest.raises(SystemExit):
        main(["schema", str(path), *told])
    assert "say how --data is written" in capsys.readouterr().err


def test_one_column_may_be_a_separator_that_was_not_recognized(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("a:b\n1:2\n2:1\n")
    with pytest.raises(SystemExit):
        main(["learn", "--data", str(path), "--sites", "2", "--out", str(tmp_path / "o")])
    assert (
        "the data have one column, 'a:b'; if they have more, --separator" in capsys.readouterr().err
    )
