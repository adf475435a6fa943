"""Mistakes end with 2, one sentence that names what is wrong and where, and no output."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.e2e.command import GOOD, assert_refused, learn, write
from vertibayes.dag import Structure


def bad_data():
    yield "empty", "", "the file is empty"
    yield "header only", "a,b\n", "a header but no records"
    yield "ragged", GOOD + "1\n", "line 22: 1 field, but the header has 2"
    yield "twice", "a,a\n0,1\n", "the column 'a' appears twice"
    yield "nameless", "a,\n0,1\n", "column 2 has no name"
    yield "few", "a,b\n" + "0,x\n1,y\n" * 4, "tables over 8 records, at least 10 are required"


@pytest.mark.parametrize(("text", "reason"), [pytest.param(t, r, id=i) for i, t, r in bad_data()])
def test_bad_data(tmp_path, capsys, text, reason):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert_refused(capsys, tmp_path, reason, "--data", path, "--sites", 2)


def bad_options():
    """Options beside --data good.csv, files to write, and what is said."""
    yield ["--sites", "9"], {}, "--sites must be between 1 and 2 (the number of columns), got 9"
    yield ["--sites", "0"], {}, "--sites must be between 1 and 2 (the number of columns), got 0"
    yield [], {}, "specify --sites K or --partition FILE"
    yield ["--sites", "2", "--exclude", "A"], {}, "there are a, b; did you mean a?"
    yield ["--sites", "2", "--exclude", "zz"], {}, "--exclude zz: no such column; there are a, b"
    yield (
        ["--sites", "2", "--missing-codes", "zz=9"],
        {},
        "--missing-codes zz=9: no column 'zz', and no such value; there are a, b",
    )
    yield ["--sites", "2", "--id-column", "zz"], {}, "no column 'zz' (--id-column)"
    yield (
        ["--sites", "1", "--id-column", "a", "--exclude", "a"],
        {},
        "--exclude a: the identifier (--id-column) cannot be excluded; it is no variable anyway",
    )
    yield (
        ["--sites", "1", "--id-column", "a"],
        {},
        "records 1 and 3 have the same identifier in 'a'",
    )
    yield (
        ["--sites", "2", "--missing", "guess"],
        {},
        "--missing must be em, synthetic, available or state, got guess",
    )
    yield (
        ["--sites", "2", "--missing", "state", "--wider-cells", "9"],
        {},
        "--wider-cells needs --missing em, got state",
    )
    yield ["--sites", "2", "--wider-cells", "-1"], {}, "--wider-cells must be a whole"
    yield ["--sites", "2", "--em-restarts", "1"], {}, "--em-restarts needs --missing syn"
    yield ["--sites", "2", "--synthetic-records", "9"], {}, "--synthetic-records needs --missing"
    yield (
        ["--sites", "2", "--synthetic-records", "0", "--missing", "synthetic"],
        {},
        "--synthetic-records must be a whole number, at least 1, got 0",
    )
    yield (
        ["--sites", "2", "--max-parents", "-1"],
        {},
        "--max-parents must be a whole number, at least 0 and at most 20, got -1",
    )
    yield (
        ["--sites", "2", "--pseudo-count", "-1"],
        {},
        "--pseudo-count must be a number, at least 0, got -1",
    )
    yield (
        ["--sites", "2", "--bins", "1"],
        {},
        "above 0 and at most 0.5, or a number of bins, as 10, got 1",
    )
    yield (
        ["--sites", "2", "--max-states", "1"],
        {},
        "--max-states must be a whole number, at least 2",
    )
    yield (
        ["--sites", "2", "--structure-records", "99"],
        {},
        "must be between 1 and 20, the number of records, got 99",
    )
    yield ["--sites", "2", "--structure-records", "15"], {}, "leave out 5, and at least 10"
    yield (
        ["--sites", "2", "--ordering", "o.json"],
        {"o.json": '["a"]'},
        "does not have the variables: b",
    )
    yield (
        ["--sites", "2", "--ordering", "o.json"],
        {"o.json": '["a", "b", "c"]'},
        "--ordering c: no such column; there are a, b",
    )
    yield (
        ["--sites", "2", "--ordering", "o.json"],
        {"o.json": '{"a": 1}'},
        "o.json: not an ordering; expected a JSON list",
    )
    yield ["--sites", "2", "--ordering", "o.json"], {"o.json": "[\n1,"}, "o.json, line 2: not JSON"
    yield ["--sites", "2", "--ordering", "none.json"], {}, "none.json: no such file"
    structure = ["--sites", "2", "--structure", "s.json"]
    yield (
        structure,
        {"s.json": '{"nodes": ["a", "b"], "edges": [["a", "b"], ["b", "a"]]}'},
        "a cycle: ",
    )
    yield (
        structure,
        {"s.json": '{"nodes": ["a", "b"], "edges": [["a", "q"]]}'},
        "a -> q has an unknown",
    )
    yield structure, {"s.json": '{"nodes": ["a"], "edges": []}'}, "the structure lacks variables: b"
    yield (
        structure,
        {"s.json": '{"nodes": ["a", "b", "c"], "edges": []}'},
        "--structure c: no such column; there are a, b",
    )
    yield structure, {"s.json": "[]"}, "s.json: not a structure; expected {"
    yield structure, {"s.json": b"\xff\xfe"}, "s.json: not JSON: it is not text in UTF-8"
    known = ["--sites", "2", "--constraints", "c.json"]
    yield known, {"c.json": '{"tiers": [["a"], ["b"],]}'}, "not JSON (remove the comma before the"
    yield known, {"c.json": ""}, "vertibayes: c.json, line 1: not JSON (the file is empty)"
    yield known, {"c.json": '{"require": []}'}, "unknown keys of the constraints: require; the keys"
    yield known, {"c.json": '{"tiers": ["a", "b"]}'}, '[["age", "sex"], ["cancer"]], got ["a", "b"]'
    yield known, {"c.json": '{"required": [["a", "b", "c"]]}'}, '[["parent", "child"]], got [["a",'
    yield known, {"c.json": '{"required": ["a", "b"]}'}, '[["parent", "child"]], got ["a", "b"]'
    yield known, {"c.json": '{"roots": "a"}'}, 'such as ["age", "sex"], got "a"'
    yield known, {"c.json": '{"required": [["a", "a"]]}'}, "a -> a is from a variable to itself"
    yield ["--sites", "2", "--algorithm", "tan"], {}, "--algorithm tan needs --class-variable: the"
    yield (
        ["--sites", "2", "--class-variable", "a"],
        {},
        "--class-variable needs --algorithm tan, got hybrid",
    )
    yield (
        ["--sites", "2", "--algorithm", "pc", "--max-seconds", "1"],
        {},
        "--algorithm pc has no structure before its end: remove --max-seconds, or use one of "
        "hybrid, hill_climbing, tabu",
    )
    yield (
        [*structure, "--bootstrap", "5"],
        {"s.json": '{"nodes": ["a", "b"], "edges": []}'},
        "--structure excludes --bootstrap: no structure is learned",
    )
    partition = ["--partition", "p.json"]
    yield partition, {"p.json": '{"x": ["a"], "y": ["a", "b"]}'}, "'a' is at two sites, x and y"
    yield partition, {"p.json": '{"x": ["a"], "y": ["q"]}'}, "'q', which is not a column"
    yield partition, {"p.json": '{"x": ["a"]}'}, "no site holds b"
    yield partition, {"p.json": '{"x": ["a", "b"], "y": []}'}, "'y' holds no column"
    yield partition, {"p.json": '{"dealer": ["a"], "y": ["b"]}'}, "'dealer' is the dealer: no site"
    yield [*partition, "--sites", "2"], {"p.json": '{"x": ["a", "b"]}'}, "specify one"


@pytest.mark.parametrize(("options", "files", "reason"), list(bad_options()))
def test_bad_options(tmp_path, capsys, monkeypatch, options, files, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_refused(capsys, tmp_path, reason, "--data", "good.csv", *options)


def bad_sites():
    yield {"a": "id,x\n1,0\n", "b": "id,x\n1,0\n"}, "the column 'x' is at two sites, a and b"
    yield {"a": "id,x\n1,0\n2,1\n", "b": "id,y\n1,0\n"}, "different numbers of records: a 2, b 1"
    yield {"a": "id,x\n1,0\n2,1\n", "b": "id,y\n1,0\n3,1\n"}, "record 2 of a is not at b"
    yield (
        {"a": "id,x\n1,0\n1,1\n", "b": "id,y\n1,0\n3,1\n"},
        "records 1 and 2 have the same identifier in 'id'",
    )
    yield (
        {"a": "id,x\n1,0\n,1\n", "b": "id,y\n1,0\n3,1\n"},
        "a.csv, record 2: identifier in 'id'",
    )
    yield {"a": "id,x\n1,0\n", "b": "y\n1\n"}, "b.csv: no column 'id'"


@pytest.mark.parametrize(("files", "reason"), list(bad_sites()))
def test_sites_that_do_not_fit(tmp_path, capsys, files, reason):
    data = []
    for site, text in files.items():
        (tmp_path / f"{site}.csv").write_text(text)
        data += ["--data", f"{site}={tmp_path / site}.csv"]
    assert_refused(capsys, tmp_path, reason, *data, "--id-column", "id")


def test_files_that_are_not_there(tmp_path, capsys):
    assert_refused(
        capsys, tmp_path, "none.csv: no such file", "--data", tmp_path / "none.csv", "--sites", 2
    )
    assert_refused(capsys, tmp_path, "a folder, not a file", "--data", tmp_path, "--sites", 2)


def test_a_folder_that_is_not_empty(folder, tmp_path, capsys):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine").write_text("kept")
    assert_refused(
        capsys, tmp_path, "a new or empty folder", "--data", folder / "all.csv", "--sites", 2
    )


def test_a_table_that_cannot_be_held(tmp_path, capsys):
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 70, (3000, 5)).astype(str)
    path = write(tmp_path / "wide.csv", list("abcde"), [[f"s{v}" for v in row] for row in rows])
    assert_refused(
        capsys, tmp_path, "a table may have at most", "--data", path, "--sites", 2, "--structure",
        _chain(tmp_path, "abcde"),
    )  # fmt: skip


def _chain(folder, names):
    structure = Structure.of(list(names), [(p, names[-1]) for p in names[:-1]])
    (folder / "s.json").write_text(
        json.dumps({"nodes": list(structure.nodes), "edges": [list(e) for e in structure.edges]})
    )
    return folder / "s.json"


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--max-parents", "must be between 0 and 7 (the sites allow tables of 8 variables), got 8"),
        (
            "--structure",
            "the structure has a node with too many parents: j has 9; the sites allow tables of 8 "
            "variables, so at most 7 parents",
        ),
    ],
)
def test_tables_wider_than_the_sites_allow_are_refused(tmp_path, capsys, option, reason):
    generator = np.random.default_rng(1)
    names = "abcdefghij"
    path = write(tmp_path / "f.csv", list(names), generator.integers(0, 2, (60, 10)).tolist())
    value = 8 if option == "--max-parents" else _chain(tmp_path, names)
    assert_refused(capsys, tmp_path, reason, "--data", path, "--sites", 2, option, value)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--max-parents", 20], "--max-parents must be between 0 and 7"),
        (["--ordering", "o.json"], "--ordering q: no such column; there are a, b"),
        (["--structure", "s.json"], "--structure q: no such column; there are a, b"),
        (
            ["--structure-records", 21],
            "structure_records must be between 1 and 20, the number of records, got 21",
        ),
        (["--structure-records", 15], "they would leave out 5"),
        (
            ["--memory", "100B"],
            "take 25: allow more memory or fewer parents (it fits with --memory of 1MiB)",
        ),
        (["--validate", "scv", "--target", "q"], "--target q: no such column; there are a, b"),
    ],
)
def test_an_error_in_the_arguments_comes_without_warnings_of_the_data(
    tmp_path, capsys, monkeypatch, options, reason
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text("a,b\n" + "n,x\n?,y\n" * 10)
    (tmp_path / "o.json").write_text('["a", "b", "q"]')
    (tmp_path / "s.json").write_text('{"nodes": ["a", "b", "q"], "edges": []}')
    data = ["--data", "f.csv", "--sites", 2]
    assert_refused(capsys, tmp_path, reason, *data, *options)
    assert "  a: '?' is taken as a state" in learn(capsys, tmp_path / "results", *data)[2]


@pytest.mark.parametrize("way", ["masked-tables", "scalar-product", "paillier"])
def test_tables_that_do_not_fit_are_refused_before_a_cost_is_promised(tmp_path, capsys, way):
    path = write(
        tmp_path / "f.csv", "abcd", np.random.default_rng(1).integers(0, 12, (300, 4)).tolist()
    )
    source = ["--data", path, "--sites", 2, "--categorical", "a,b,c,d", "--count-by", way]
    little = ["--memory", "40KiB" if way == "masked-tables" else "2MiB"]
    code, _, errors = learn(capsys, tmp_path / "no", *source, *little)
    assert code == 2 and "expected:" not in errors and not (tmp_path / "no").exists()
    memory = re.search(r"it fits with --memory of (\d+MiB)", errors)[1]
    assert (int(memory[:-3]) > 100) == (way == "paillier")  # where a run takes too long here
    if way != "paillier":
        assert learn(capsys, tmp_path / "x", *source, "--memory", memory)[0] == 0
    fewer = "; --max-parents 2 fits as it is)" in errors
    assert fewer == (way == "scalar-product")  # otherwise a table of a pair is as large
    if fewer:
        assert learn(capsys, tmp_path / "y", *source, *little, "--max-parents", 2)[0] == 0
        tan = "--algorithm", "tan", "--class-variable", "a", "--memory", "200kB"
        assert "fits with --memory of 1MiB)" in learn(capsys, tmp_path / "z", *source, *tan)[2]


def test_constraints_about_columns_that_are_left_out_are_named(tmp_path, capsys):
    path = write(tmp_path / "f.csv", "abc", [(i % 2, i % 3 % 2, 1) for i in range(30)])
    (tmp_path / "c.json").write_text('{"forbidden": [["c", "a"]], "roots": ["a"]}')
    known = ["--constraints", tmp_path / "c.json"]
    for name, more in (("out", ()), ("excluded", ("--exclude", "c"))):
        source = ["--data", path, "--sites", 2, *known, *more]
        code, _, errors = learn(capsys, tmp_path / name, *source)
        assert code == 0 and "--constraints: unused for c, left out of the data" in errors


def test_files_without_identifiers_are_not_matched(folder, tmp_path, capsys):
    files = ["--data", f"a={folder / 'a.csv'}", "--data", f"b={folder / 'b.csv'}"]
    assert_refused(capsys, tmp_path, "specify --id-column", *files)


def test_a_separator_that_is_unclear_is_named(tmp_path, capsys):
    (tmp_path / "s.csv").write_text("a;b,c\nx;y,z\n")
    data = ["--data", tmp_path / "s.csv", "--sites", 2]
    assert_refused(
        capsys,
        tmp_path,
        "s.csv: the separator is unclear: the header 'a;b,c' has ';' and ','; specify it, as "
        "--separator ';' or --separator ','",
        *data,
    )
    assert_refused(
        capsys, tmp_path, "--separator must be ,, ;, tab or |", *data, "--separator", "x"
    )
    assert_refused(capsys, tmp_path, "encoding must be one of Python's", *data, "--encoding", "x")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--validate", "scv"],
            "--validate tests the prediction of a variable: name it by --target",
        ),
        (["--target", "z"], "--target z: no such column; there are a, b"),
        (
            ["--validate", "x", "--target", "a"],
            "--validate must be a list of holdout, public, scv or svdg, got x",
        ),
        (["--validate", "public", "--target", "a"], "--public FILE belong together"),
        (["--holdout", "0.3", "--target", "a"], "add holdout to --validate, or remove --holdout"),
        (["--validate", "scv", "--target", "z"], "--target z: no such column; there are a, b"),
        (
            ["--validate", "svdg", "--target", "a", "--folds", "1"],
            "--folds must be a whole number, at least 2, got 1",
        ),
        (["--validate", "svdg", "--target", "a", "--folds", "4"], "svdg has at most 2 folds here"),
    ],
)
def test_validations_that_cannot_be(tmp_path, capsys, monkeypatch, options, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    assert_refused(capsys, tmp_path, reason, "--data", "good.csv", "--sites", 2, *options)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\n0\n", "p.csv: no column 'b', the target"),
        ("A,B\n0,x\n", "has no column of the model's variables: it has A, B; the model has a, b"),
        ("b\nz\nz\n", "p.csv has no value that the model knows: b has 'z'; the model has x, y"),
    ],
)
def test_public_files_that_do_not_fit(tmp_path, capsys, monkeypatch, text, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "p.csv").write_text(text)
    options = ["--validate", "public", "--public", "p.csv", "--target", "b"]
    assert_refused(capsys, tmp_path, reason, "--data", "good.csv", "--sites", 2, *options)


def test_a_run_that_fails_after_tables_were_opened_keeps_the_ledger(tmp_path, capsys):
    """The structure's sample ends five records within the second fold, which the sites refuse."""
    codes = np.random.default_rng(0).integers(0, 2, (100, 3))
    path = write(tmp_path / "f.csv", list("abc"), codes.tolist())
    code, told, error = learn(
        capsys, tmp_path / "out", "--data", path, "--sites", 2, "--structure-records", 55,
        "--validate", "svdg", "--target", "a", "--folds", 2,
    )  # fmt: skip
    assert code == 2 and told == "" and "tables were revealed" in error
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["ledger.json"]
    assert json.loads((tmp_path / "out" / "ledger.json").read_text())["tables"]
